"""Programs with a mistake, by name: source text and the arguments of a call of its last
function."""

from __future__ import annotations

from typing import Any

import numpy as np

A43, A4, A3 = np.ones((4, 3), np.float32), np.ones(4, np.float32), np.ones(3, np.float32)
X = np.arange(4.0)

#: A data type, for programs about trees.
TREE = """
class Leaf:
    def __init__(self, value):
        self.value = value

class Node:
    __match_args__ = ("left", "right")

    def __init__(self, left, right):
        self.left, self.right = left, right

"""

BAD: dict[str, tuple[str, tuple[Any, ...]]] = {
    "shape_mismatch": (
        """
def loss(x, w, c):
    h = np.tanh(x * w + c)
    return h.sum()
""",
        (A43, A4, A3),
    ),
    "shape_mismatch_in_a_helper": (
        """
def layer(x, w):
    return x + w

def model(x, w):
    y = layer(x, w[0])
    return layer(y, w)
""",
        (A3, np.ones((2, 4), np.float32)),
    ),
    "matmul_mismatch": ("\ndef f(x, w):\n    return x @ w\n", (A43, A4)),
    "length_without_axes": ("\ndef f(x):\n    return len(x[0, ...])\n", (X,)),
    "matmul_of_a_scalar": ("\ndef f(x):\n    return x @ 2.0\n", (A43,)),
    "call_of_a_number": (
        "\ndef f(x):\n    scale = 3\n    return scale(x)\n", (X,),
    ),
    "module_that_is_not_imported": ("\ndef f(x):\n    return math.sqrt(x[0])\n", (X,)),
    "concatenate_without_a_list": (
        "\ndef f(x, y):\n    return np.concatenate(x, y)\n", (X, X),
    ),
    "stack_of_two_ranks": ("\ndef f(x, y):\n    return np.stack([x, y])\n", (A4, A43)),
    "stack_of_two_shapes": ("\ndef f(x, y):\n    return np.stack([x, y])\n", (A4, A3)),
    "undefined_name": (
        """
def f(values):
    total = 0.0
    for v in values:
        total += weigth * v
    return total
""",
        (X,),
    ),
    "carried_rank_changes": (
        """
def f(x, n):
    y = x
    for i in range(n):
        y = y[None]
    return y
""",
        (X, 5000),
    ),
    "used_before_set": (
        """
def f(x):
    y = x + z
    z = 1.0
    return y
""",
        (X,),
    ),
    "unknown_attribute": ("\ndef f(x):\n    return x.shpae\n", (X,)),
    "unknown_numpy_function": ("\ndef f(x):\n    return np.tahn(x)\n", (X,)),
    "unsupported_call": ("\ndef f(x):\n    return np.from_dlpack(x)\n", (X,)),
    "ufunc_of_dtype": ("\ndef f(x):\n    return np.add(x, 1j, dtype=np.float32)\n", (X,)),
    "truths_of_dtype": ("\ndef f(x):\n    return np.less(x, 1, dtype=np.float32)\n", (X,)),
    "print_of_a_function": (
        "\ndef f(x):\n    def g(y):\n        return x + y\n    print(g)\n    return g(x)\n", (X,),
    ),
    "print_to_an_argument": ("\ndef f(x, out):\n    print(x, file=out)\n    return x\n", (X, [])),
    "text_split": ("\ndef f(x):\n    return f'{x} m'.format_map({})\n", (1.5,)),
    "method_of_a_generator": (
        "\ndef f(x):\n    return np.random.default_rng(0).multivariate_hypergeometric(x, 3)\n",
        (X,),
    ),
    "einsum_letters": ("\ndef f(x, y):\n    return np.einsum('ij,jk->ik', x, y)\n", (A43, A43)),
    "solve_of_a_rectangle": ("\ndef f(x, y):\n    return np.linalg.solve(x, y)\n", (A43, A4)),
    "mode_of_a_library_function": (
        "\ndef f(x):\n    return np.linalg.qr(x, mode='raw')\n", (A43,),
    ),
    "random_inside": ("\ndef f(x):\n    return x + np.random.bytes(3)\n", (X,)),
    "recursion_without_base_case": (
        """
def f(n):
    return f(n - 1) + 1
""",
        (3,),
    ),
    "recursion_with_growing_argument": (
        """
def f(x, n):
    if n == 0:
        return x.sum()
    return f(x[None], n - 1)
""",
        (X, 3),
    ),
    "grad_of_an_integer": (
        """
def square(x):
    return x * x

def f(n):
    return pyrelay.grad(square)(n)
""",
        (3,),
    ),
    "grad_of_integer_array": (
        """
def f(labels):
    return pyrelay.grad(lambda y: np.sum(y * 1.0))(labels)
""",
        (np.arange(3),),
    ),
    "grad_of_a_vector": (
        """
def f(x):
    return pyrelay.grad(lambda y: y * y)(x)
""",
        (X,),
    ),
    "jvp_along_another_shape": (
        """
def f(x):
    return pyrelay.jvp(lambda p: p["w"] * 2, ({"w": x},), ({"w": np.ones((2, 2))},))
""",
        (X,),
    ),
    "jvp_along_another_structure": (
        """
def f(x):
    return pyrelay.jvp(lambda p: p["w"] * 2, ({"w": x},), ({"v": x},))
""",
        (X,),
    ),
    "jvp_without_a_tuple": (
        """
def f(x):
    return pyrelay.jvp(lambda y: y * 2, x, x)
""",
        (X,),
    ),
    "jvp_with_too_few_tangents": (
        """
def f(x):
    return pyrelay.jvp(lambda y, k: y * k, (x, 2.0), (x,))
""",
        (X,),
    ),
    "a_cotangent_of_another_structure": (
        """
def f(x):
    y, pullback = pyrelay.vjp(lambda y: (y, y * 2), x)
    return pullback(y)[0] + pullback([x, x])[0]
""",
        (X,),
    ),
    "two_cotangents": (
        """
def f(x):
    y, pullback = pyrelay.vjp(lambda y: y * 2, x)
    return pullback(y, y)
""",
        (X,),
    ),
    "hessian_of_integers": (
        """
def f(n):
    return pyrelay.hessian(lambda y: np.sum(y * y))(n)
""",
        (np.arange(3),),
    ),
    "jacobian_by_complex_numbers": (
        """
def f(x):
    return pyrelay.jacobian(lambda z: z * z)(x * 1j)
""",
        (X,),
    ),
    "jacrev_of_a_size_that_is_found": (
        """
def f(x):
    return pyrelay.jacrev(lambda y: y[y > 0])(x)
""",
        (X,),
    ),
    "grad_of_a_tuple": (
        """
def f(x):
    return pyrelay.grad(lambda y: (np.sum(y), y))(x)
""",
        (X,),
    ),
    "grad_of_an_absent_argument": (
        """
def f(x):
    return pyrelay.grad(lambda y: np.sum(y), argnums=1)(x)
""",
        (X,),
    ),
    "too_many_arguments": (
        """
def scale(x, k):
    return x * k

def f(x):
    return scale(x, 2.0, 3.0)
""",
        (X,),
    ),
    "missing_argument": (
        """
def scale(x, k, *, offset):
    return x * k + offset

def f(x):
    return scale(x, 2.0)
""",
        (X,),
    ),
    "unexpected_keyword": ("\ndef f(x):\n    return np.sum(x, axs=0)\n", (X,)),
    "index_out_of_range": ("\ndef f(x):\n    return x[4]\n", (X,)),
    "too_many_indices": ("\ndef f(x):\n    return x[0, 1]\n", (X,)),
    "float_index": ("\ndef f(x):\n    return x[1.0]\n", (X,)),
    "tuple_index_out_of_range": ("\ndef f(x):\n    t = (x, x)\n    return t[2]\n", (X,)),
    "wrong_axis": ("\ndef f(x):\n    return x.sum(axis=1)\n", (X,)),
    "bad_reshape": ("\ndef f(x):\n    return x.reshape(3, 2)\n", (X,)),
    "bad_concatenate": (
        "\ndef f(x, y):\n    return np.concatenate([x, y])\n", (A43, A4),
    ),
    "ambiguous_truth": (
        """
def f(x):
    if x > 0:
        return x
    return -x
""",
        (X,),
    ),
    "alias_begun_anew": (
        """
def f(x):
    run, total = [1.0], 0
    first = run
    for v in x:
        total += len(first)
        if v > 1.0:
            run = []
        run.append(v)
    return total
""",
        (X,),
    ),
    "axis_known_only_at_run_time": (
        """
def f(x):
    return np.sum(x, axis=int(x[0]))
""",
        (X,),
    ),
    "unknown_key": (
        """
def f(params):
    return params["weights"] * 2.0
""",
        ({"weight": X, "bias": 1.0},),
    ),
    "list_items_of_two_kinds": (
        """
def f(x):
    out = []
    while len(out) < x.sum():
        out.append(x)
        out.append(x[0])
    return out
""",
        (X,),
    ),
    "dict_that_grows_on_one_branch_of_a_loop": (
        """
def f(x, n):
    found = {}
    for i in range(n):
        if x[i] > 1.0:
            found["first"] = x[i]
        elif x[i] > 0.0:
            found["second"] = (i, x[i])
    return found
""",
        (X, 3),
    ),
    "list_item_written_in_place": (
        """
def f(x, n):
    rows = []
    state = x.copy()
    for i in range(n):
        rows.append(state)
        state += 1.0
    return rows
""",
        (X, 3),
    ),
    "array_read_after_its_item_was_written": (
        """
def f(x, n):
    rows = [x * i for i in range(n)]
    last = x.copy()
    rows.append(last)
    rows[n][0] = 5.0
    return last
""",
        (X, 3),
    ),
    "one_row_repeated": (
        """
def f(n):
    table = [[0] * n] * n
    table[0][0] = 1
    return table
""",
        (3,),
    ),
    "one_row_in_many_places": (
        """
def f(x, n):
    rows = []
    row = []
    for i in range(n):
        row.append(x[:i])
        rows.append(row)
    return rows
""",
        (X, 3),
    ),
    "none_in_arithmetic": (
        """
def f(x, scale=None):
    return x * scale
""",
        (X,),
    ),
    "string_in_arithmetic": ('\ndef f(x):\n    return x + "1"\n', (X,)),
    "call_of_an_array": ("\ndef f(x):\n    return x(0)\n", (X,)),
    "bits_of_floats": ("\ndef f(x):\n    return x & 1\n", (X,)),
    "write_of_another_shape": (
        """
def f(x, y):
    x[1:3] = y
    return x
""",
        (X, np.ones(3)),
    ),
    "in_place_cast": (
        """
def f(n, x):
    n += x
    return n
""",
        (np.arange(4), X),
    ),
    "tuple_assignment": ("\ndef f(x):\n    t = (x, 1)\n    t[0] = x\n    return t\n", (X,)),
    "unpack_too_many": ("\ndef f(x):\n    a, b = x, x, x\n    return a\n", (X,)),
    "returned_function": ("\ndef f(x):\n    return lambda y: x + y\n", (X,)),
    "unsupported_dtype": ("\ndef f(x):\n    return x.astype(np.longdouble)\n", (X,)),
    "iteration_over_a_number": ("\ndef f(n):\n    for i in n:\n        pass\n    return 0\n", (3,)),
    "range_of_a_float": (
        "\ndef f(n):\n    for i in range(n / 2):\n        pass\n    return 0\n", (3,)
    ),
    "big_integer": ("\ndef f(n):\n    return n * 10**30\n", (3,)),
    "memo_from_outside": (
        """
def f(n, memo):
    if n < 2:
        return n
    if n not in memo:
        memo[n] = f(n - 1, memo) + f(n - 2, memo)
    return memo[n]
""",
        (90, {"calls": None}),
    ),
    "match_misses_a_class": (
        TREE + """
def depth(t):
    match t:
        case Node(left, right):
            return 1 + max(depth(left), depth(right))

def f(x):
    return depth(Node(Node(Leaf(x), Leaf(x)), Leaf(x)))
""",
        (2.0,),
    ),
    "bits_of_floats_so_far": (
        """
def f(x):
    return np.bitwise_or.accumulate(x)
""",
        (X,),
    ),
    "attribute_that_no_node_has": (
        TREE + """
def f(x):
    return Node(Node(Leaf(x), Leaf(x)), Leaf(x)).lefft
""",
        (2.0,),
    ),
    "object_handed_on_while_it_is_made": (
        """
class Chain:
    def __init__(self, n, before=None):
        self.n, self.before = n, before
        self.after = Chain(n - 1, self) if n > 0 else None

def f(n):
    return Chain(n).after.before.n
""",
        (3,),
    ),
    "many_lists_of_the_caller_are_sorted": (
        """
def merged(rows):
    rows.sort(key=lambda row: row[0])
    return len(rows)
""",
        ([[str(k * 7 % 30), *[0.5] * 100] for k in range(30)],),
    ),
    "extents_of_one_name_differ": (
        """
def loss(x: pyrelay.Tensor["n", "d"], w: pyrelay.Tensor["d", 4]):
    return (x @ w).sum()
""",
        (A43, np.ones((5, 4))),
    ),
    "declared_axis_of_another_extent": (
        """
def scale(x: pyrelay.Tensor["n", 3]):
    return x * 2.0

def f(x):
    return scale(x[:, :2])
""",
        (A43,),
    ),
    "declared_with_fewer_axes": (
        "\ndef f(x: pyrelay.Tensor['n', np.float32]):\n    return x * 2\n", (A43,),
    ),
    "declared_of_another_dtype": (
        "\ndef f(x: pyrelay.Tensor[..., np.floating]):\n    return x * 2\n", (np.arange(3),),
    ),
    "declared_result": (
        """
def pairs(x: pyrelay.Tensor["n"]) -> pyrelay.Tensor["2*n"]:
    return np.concatenate([x, x, x])
""",
        (X,),
    ),
    "declared_array_in_a_dict": (
        """
def f(p: dict[str, pyrelay.Tensor["d", "d"]], x: pyrelay.Tensor["d"]):
    return p["a"] @ x
""",
        ({"a": A43[:3], "b": A4}, A3),
    ),
    "declared_list_of_arrays": (
        "\ndef f(x: list[pyrelay.Tensor['n']]):\n    return x[0]\n", (A43,),
    ),
}
