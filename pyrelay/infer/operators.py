"""Python's operators on abstract values: arithmetic, comparison, boolean; `op=` is in in_place.py.

In: operators and values. Out: the value of the result, for which ops are emitted.
"""

from __future__ import annotations

import enum
import operator
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from pyrelay import errors
from pyrelay.infer import kinds, needs, protocols, unfit_operands, wide
from pyrelay.infer import values as V
from pyrelay.infer.arrays import identity
from pyrelay.infer.containers import (
    absent_keys,
    byte_strings,
    characters,
    open_sequences,
    sets,
    text,
    views,
)
from pyrelay.infer.containers.open_keys import must_be_findable
from pyrelay.infer.flow import narrowing
from pyrelay.infer.interpreter import Interpreter
from pyrelay.infer.powers import power
from pyrelay.infer.spellings import OP_NAMES, PYTHON
from pyrelay.ir import dims, types
from pyrelay.ir.dims import Extent
from pyrelay.ir.nodes import UNSET
from pyrelay.ir.types import TensorType

_PYTHON_UNARY: dict[str, Callable[[Any], Any]] = {
    "-": operator.neg, "+": operator.pos, "~": operator.invert,
}
_EXTENT_OPS: dict[str, Callable[[Extent, Extent], Extent]] = {
    "+": dims.add, "-": lambda a, b: dims.add(a, dims.multiply(-1, b)), "*": dims.multiply,
    "//": dims.quotient, "%": dims.remainder,
}


def extent_of(value: V.Value) -> Extent | None:
    """The value as an extent: a known int, or a number that is a polynomial of extents."""
    match value:
        case V.Known(v) if type(v) is int:
            return v
        case V.Scalar(_, _, extent):
            return extent
    return None


def poly_of(value: V.Value) -> Extent | None:
    """The value as a polynomial of extents and loop indices, None if it is not known as one."""
    known = extent_of(value)
    return value.poly if known is None and isinstance(value, V.Scalar) else known


def raised(it: Interpreter, exception: BaseException) -> needs.Diverges:
    """Emit the raising of an exception that plain Python would raise here."""
    from pyrelay.infer.flow.effects import emit_raise

    emit_raise(it, type(exception), tuple(map(V.Known, exception.args)))
    return needs.Diverges()


def _with_none(it: Interpreter, op: str, x: V.Value, y: V.Value) -> str | None:
    """What Python says of an operation of a number, or of an array's elements, with None."""
    if op not in _WITH_NONE:
        return None
    names, in_place = [], it.let is not None and getattr(it.let.rhs, "kind", "") == "inplace"
    for value in (x, y):
        ty = V.tensor_type(value)
        names.append("NoneType" if ty is None else np.array(0, ty.dtype.numpy).tolist())
    weak = all(ty is None or ty.weak for ty in map(V.tensor_type, (x, y)))
    given = " and ".join(
        repr(n if isinstance(n, str) else type(n).__name__) for n in names
    )
    return f"unsupported operand type(s) for {op}{'=' if in_place and weak else ''}: {given}"


_WITH_NONE = frozenset("+-*/") | {"//"}


def binary(it: Interpreter, op: str, x: V.Value, y: V.Value) -> V.Value:
    """`x op y`."""
    return wide.settled(it, waiting(it, op, x, y))


def waiting(it: Interpreter, op: str, x: V.Value, y: V.Value) -> V.Value:
    """`x op y`, which may be an int that waits for a mask (see wide.py)."""
    if isinstance(x, V.Known) is not isinstance(y, V.Known):
        x, y = _taken_apart(x), _taken_apart(y)
    longer = open_sequences.added(it, x, y) if op == "+" else None
    if longer is not None:
        return longer
    if isinstance(x, V.Union) or isinstance(y, V.Union):
        return over_cases(it, x, y, lambda a, b: binary(it, op, a, b), PYTHON[op])
    if isinstance(x, V.Known) and isinstance(y, V.Known):
        masked = wide.of_known(it, op, x.value, y.value) if it.program.wide else None
        return _fold(it, op, x, y) if masked is None else masked
    x, y = _member_beside(it, x, y), _member_beside(it, y, x)
    x, y = _beside_an_array(it, op, x, y), _beside_an_array(it, op, y, x)
    exact = _on_extents(it, op, x, y)
    if exact is None and it.program.wide is not False:
        exact = wide.binary(it, op, x, y)
    if exact is not None:
        return exact
    special = (
        views.binary(it, op, x, y) or sets.binary(it, op, x, y)
        or protocols.binary(it, op, x, y) or _on_containers(it, op, x, y)
    )
    if special is not None:
        return special
    tx, ty = V.tensor_type(x), V.tensor_type(y)
    if tx is not None and ty == _NUMPY_FLOAT and tx.weak and tx.dtype.kind == "c":
        # np.float64 is a float, so that Python's complex number computes with it by itself.
        y = it.result(it.builder.handle(it.builder.cast(it.atom(y), types.f64, weak=True)))
        ty = types.PY_FLOAT
    if tx is None or ty is None:
        failure = it.failure(
            errors.TypeMismatchError,
            f"'{op}' cannot combine {V.describe(x)} and {V.describe(y)}",
        )
        if V.NONE not in (x, y) or tx is ty:
            raise unfit_operands.of_binary(it, failure, op, x, y)
        from pyrelay.infer.flow.handling import without_words

        # A number, or the elements of an array, and None.
        raise without_words(it, failure, TypeError, _with_none(it, op, x, y))
    several = kinds.apart(it, op, x, y)
    if several is not None:
        return several
    if op == "@":
        from pyrelay.infer.arrays.contraction import matmul

        return matmul(it, x, y)
    if op == "-" and types.promote((tx, ty))[0] is types.bool_ and not (tx.weak and ty.weak):
        raise it.failure(
            errors.TypeMismatchError, "'-' is not defined for arrays of bool",
            hints=("use ^ or np.logical_xor",),
        )
    if op in ("&", "|", "^", "<<", ">>") and (tx.dtype.is_float or ty.dtype.is_float):
        raise it.failure(
            errors.TypeMismatchError, f"'{op}' needs integers or bools, not {tx} and {ty}"
        )
    if op == "**":
        if tx.dtype is types.bool_ and tx.shape and y == V.Known(2):  # np.square gives int8
            x = it.result(it.builder.handle(it.builder.cast(it.atom(x), types.i8)))
        whole = isinstance(y, V.Known) and isinstance(y.value, int) and y.value > 0
        raised_to = power(it, x, y)
        return kinds.computed(it, "*", x, y, raised_to) if whole else raised_to
    result = it.call(OP_NAMES[op], *_python_bools(it, op, x, y))
    return kinds.computed(it, op, x, y, _with_poly(it, op, x, y, result))


_NUMPY_FLOAT = TensorType(types.f64)


def _beside_an_array(it: Interpreter, op: str, value: V.Value, other: V.Value) -> V.Value:
    """A list or tuple whose other operand is NumPy's as the array that NumPy makes of it.

    Times a number of NumPy's it is repeated, as it is times one of Python's.
    """
    listed = V.is_list(value) or isinstance(value, (V.Range, V.OpenTuple)) or (
        isinstance(value, V.Tuple) and value.cls is None
    ) or (isinstance(value, V.Known) and isinstance(value.value, tuple))
    ty = V.tensor_type(other)
    if not listed or ty is None or ty.weak or not (isinstance(other, V.ArrayRef) or op != "*"):
        return value
    from pyrelay.infer.names.adapters import operand

    return operand(it, value)


def number_of_enum(value: V.Value) -> V.Value:
    """The number that a member of an IntEnum, IntFlag or the like is; anything else unchanged."""
    if isinstance(value, V.Known) and isinstance(value.value, enum.Enum):
        member: Any = value.value
        if isinstance(member, int):
            return V.Known(int(member))
        if isinstance(member, float):
            return V.Known(float(member))
    return value


def numbers_of_members(it: Interpreter, value: V.Value) -> V.Value:
    """As `number_of_enum`, also of a value that is one of several members or numbers."""
    if not isinstance(value, V.Union):
        return number_of_enum(value)
    if any(V.number_type(number_of_enum(case)) is None for case in value.possible):
        return value
    from pyrelay.infer.flow.unions import distribute

    return distribute(it, value, number_of_enum)


def _member_beside(it: Interpreter, value: V.Value, other: V.Value) -> V.Value:
    """The number of an enum's member as an operand: beside NumPy's, one of NumPy's of 64 bits.

    NumPy gives way for numbers of Python's own classes only, not for those derived from them.
    """
    own = number_of_enum(value)
    ty = V.tensor_type(other)
    if own is value or ty is None or ty.weak:
        return own
    return it.result(it.builder.handle(it.builder.cast(it.atom(own), it.tensor(own).dtype)))


def number(it: Interpreter, value: V.Value) -> V.Value:
    """The number of an array of no axes or of a member of an IntEnum; anything else unchanged."""
    if isinstance(value, V.ArrayRef) and not value.type.shape:
        return it.result(it.builder.handle(it.atom(value)))
    return number_of_enum(value)


def _with_poly(it: Interpreter, op: str, x: V.Value, y: V.Value, result: V.Value) -> V.Value:
    """A sum, difference or product of loop indices and extents keeps its polynomial."""
    if op not in ("+", "-", "*") or not isinstance(result, V.Scalar):
        return result
    it.program.note_source(result, x, y)
    a, b = poly_of(x), poly_of(y)
    if a is None or b is None or result.type != types.PY_INT:
        return result
    return replace(result, poly=_EXTENT_OPS[op](a, b))


def _python_bools(it: Interpreter, op: str, x: V.Value, y: V.Value) -> tuple[Any, Any]:
    """Python computes with bools as ints, except for & | ^."""
    tx, ty = it.tensor(x), it.tensor(y)
    both = tx.weak and ty.weak and tx.dtype is ty.dtype is types.bool_
    if not both or op in ("&", "|", "^"):
        return x, y
    return it.builder.cast(it.atom(x), types.i64, weak=True), it.builder.cast(
        it.atom(y), types.i64, weak=True
    )


def over_cases(
    it: Interpreter, x: V.Value, y: V.Value, use: Callable[[V.Value, V.Value], V.Value],
    python: Callable[[Any, Any], Any],
) -> V.Value:
    """An operator on two values, one of which is one of several cases."""
    from pyrelay.infer.flow.unions import distribute, python_error, sample

    def with_other(a: V.Value) -> V.Value:
        return use(a, narrowing.narrowed(it, y))

    def beside(a: Any) -> None:
        wrong = python_error(it, y, lambda b: python(a, b))
        if wrong is not None:
            raise wrong

    if isinstance(x, V.Union):
        return distribute(it, x, with_other, beside)
    assert isinstance(y, V.Union)
    return distribute(it, y, lambda b: use(x, b), lambda b: python(sample(it, x), b))


def _is_in(item: Any, container: Any) -> Any:
    return item in container


_PYTHON_BINARY: dict[str, Callable[[Any, Any], Any]] = {**PYTHON, "in": _is_in}


def _fold(it: Interpreter, op: str, x: V.Known, y: V.Known) -> V.Value:
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return V.Known(_PYTHON_BINARY[op](x.value, y.value))
    except (ArithmeticError, ValueError) as error:
        raise raised(it, error) from None
    except TypeError as error:
        from pyrelay.infer.flow.handling import certain

        failure = it.failure(errors.TypeMismatchError, str(error))
        raise certain(it, failure, TypeError, *error.args) from None


def _on_extents(it: Interpreter, op: str, x: V.Value, y: V.Value) -> V.Value | None:
    a, b = extent_of(x), extent_of(y)
    if a is None or b is None or op not in _EXTENT_OPS:
        return None
    if op in ("//", "%") and not (isinstance(b, int) and b > 0):
        return _wrapped(it, a, b) if op == "%" and isinstance(a, int) else None
    return V.Scalar.of_extent(_EXTENT_OPS[op](a, b))


def _wrapped(it: Interpreter, position: int, extent: Extent) -> V.Value | None:
    """A known position modulo the extent of an axis, where it lies on the axis or counts from its
    end: `-1 % n`."""
    compare = it.program.guards.compare
    if position >= 0:
        return V.Known(position) if compare("<", position, extent) else None
    if compare("<=", -position, extent):
        return V.Scalar.of_extent(dims.add(extent, position))
    return None


def _taken_apart(value: V.Value) -> V.Value:
    """A known tuple, as the key of a dict is one, as the tuple of its items."""
    if isinstance(value, V.Known) and type(value.value) is tuple:
        return V.Tuple(tuple(map(V.Known, value.value)))
    return value


def _on_containers(it: Interpreter, op: str, x: V.Value, y: V.Value) -> V.Value | None:
    """Tuple and list concatenation and repetition, operators of strings."""
    if text.is_text(x) or text.is_text(y):
        return text.binary(it, op, x, y)
    if op in ("+", "*") and (byte_strings.is_known(x) or byte_strings.is_known(y)):
        return binary(it, op, byte_strings.opened(it, x), byte_strings.opened(it, y))
    if op in ("+", "*") and (isinstance(x, V.Items) or isinstance(y, V.Items)):
        return binary(it, op, of_its_own(it, x), of_its_own(it, y))
    if op == "+":
        if isinstance(x, V.Tuple) and isinstance(y, V.Tuple):
            return V.Tuple(x.items + y.items)
        if V.is_list(x) and V.is_list(y):
            return _joined_lists(it, x, y)
    if op == "*":
        for container, count in ((x, y), (y, x)):
            if isinstance(container, V.OpenTuple):
                repeated_items = binary(it, op, container.items, count)
                assert isinstance(repeated_items, V.Ref)
                return open_sequences.tuple_of(it, repeated_items)
            if isinstance(container, V.Tuple) or V.is_list(container):
                ty = V.number_type(count)
                if ty is None or not ty.dtype.is_integer:
                    failure = it.failure(
                        errors.TypeMismatchError,
                        f"can't multiply {V.describe(container)} by {V.describe(count)}",
                        hints=("np.array(...) makes numbers of it that can be multiplied",),
                    )
                    raise unfit_operands.of_binary(it, failure, op, x, y)
                if V.is_list(container) and _repeats_at_run_time(it, container, count):
                    from pyrelay.infer.containers.lists import repeated

                    return repeated(it, container, count)
                n = it.static(count, "the number of repetitions")
                if isinstance(container, V.Tuple):
                    return V.Tuple(container.items * n)
                return it.new_ref("list", it.content(container.root) * n)
    if op == "|" and all(isinstance(v, V.Ref) and v.root.kind == "dict" for v in (x, y)):
        from pyrelay.infer.names.containers import table
        from pyrelay.infer.nodes.dicts import new_dict

        if it.let in it.program.tables:
            return table(it, [(True, x, V.NONE), (True, y, V.NONE)])
        return new_dict(it, {**it.content(x.root), **it.content(y.root)})  # type: ignore[union-attr]
    return None


def of_its_own(it: Interpreter, value: V.Value) -> V.Value:
    """A list or tuple in a field of a node as one of the program's; other values unchanged."""
    if not isinstance(value, V.Items):
        return value
    from pyrelay.infer.containers.lists import of_field

    found = of_field(it, value)
    assert isinstance(found, V.Ref)
    return open_sequences.tuple_of(it, found) if value.cls is tuple else found


def _joined_lists(it: Interpreter, x: V.Ref, y: V.Ref) -> V.Value:
    contents = it.content(x.root), it.content(y.root)
    if not any(isinstance(c, V.Growing) for c in contents):
        return it.new_ref("list", contents[0] + contents[1])
    from pyrelay.infer.attributes import call_method

    first = contents[0]
    if isinstance(first, V.Growing):
        from pyrelay.infer.containers.lists import copied

        first = copied(it, first)
    result = it.new_ref("list", first)
    call_method(it, V.Method(result, "extend"), (y,), {})
    return result


def _repeats_at_run_time(it: Interpreter, container: V.Value, count: V.Value) -> bool:
    """Whether `container * count` is a list whose length is not known, or a long one."""
    from pyrelay.infer.containers.lists import MOST_STATIC

    items = it.content(container.root)  # type: ignore[union-attr]
    if isinstance(items, V.Growing):
        return True
    if isinstance(count, V.Known):
        alike = len(items) == 1 and V.tensor_type(items[0]) is not None
        return alike and type(count.value) is int and count.value > MOST_STATIC
    return V.number_type(count) is not None


def unary(it: Interpreter, op: str, x: V.Value) -> V.Value:
    """`-x`, `+x`, `~x`, `not x`."""
    if isinstance(x, V.Scalar) and x.type.dtype.kind != "f":
        x = kinds.told(it, x)
    if isinstance(x, V.Union) and op != "not":
        from pyrelay.infer.flow.unions import distribute

        return distribute(
            it, x, lambda case: unary(it, op, case), _PYTHON_UNARY[op]
        )
    if op == "not":
        from pyrelay.infer.flow.truth import truth

        test = truth(it, x)
        if isinstance(test, V.Known):
            return V.Known(not test.value)
        plain = it.builder.cast(it.atom(test), types.bool_, weak=True)  # `not` gives Python's bool
        opposite = it.call("logical_not", plain)
        narrowing.note(it, opposite, narrowing.fact_of(it, test).negated())
        return opposite
    if isinstance(x, V.Known):
        try:
            return V.Known(_PYTHON_UNARY[op](x.value))
        except TypeError as error:
            failure = it.failure(errors.TypeMismatchError, str(error))
            raise unfit_operands.of_unary(it, failure, op, x) from None
    if it.program.wide:
        whole = wide.unary(it, op, x)
        if whole is not None:
            return whole
    extent = extent_of(x)
    if extent is not None and op in "+-":
        return V.Scalar.of_extent(extent if op == "+" else dims.multiply(-1, extent))
    ty = V.tensor_type(x)
    if ty is None:
        own = protocols.special(it, x, {"-": "__neg__", "+": "__pos__", "~": "__invert__"}[op])
        if own is not None:
            return own
        failure = it.failure(errors.TypeMismatchError, f"'{op}' cannot take {V.describe(x)}")
        raise unfit_operands.of_unary(it, failure, op, x)
    given = x
    if ty.weak and ty.dtype is types.bool_:
        x = it.result(it.builder.handle(it.builder.cast(it.atom(x), types.i64, weak=True)))
    if op == "-" and ty.dtype is types.bool_ and not ty.weak:
        raise it.failure(
            errors.TypeMismatchError, "'-' is not defined for arrays of bool",
            hints=("use ~ or np.logical_not",),
        )
    result = it.call({"-": "negative", "+": "positive", "~": "invert"}[op], x)
    return kinds.signed(given, result, it.builder)


def compare(it: Interpreter, op: str, x: V.Value, y: V.Value) -> V.Value:
    """`x op y` for the comparison operators, `is` and `in`."""
    if op in ("is", "is not"):
        same = _is(it, x, y)
        return same if op == "is" else unary(it, "not", same)
    if op in ("in", "not in"):
        found = _contains(it, y, x)
        absent_keys.note(it, y, x, found)
        return found if op == "in" else unary(it, "not", found)
    if isinstance(x, V.Union) or isinstance(y, V.Union):
        from pyrelay.infer.comparison import of_cases

        decided = of_cases(it, op, x, y)
        if decided is not None:
            return decided
        return over_cases(it, x, y, lambda a, b: compare(it, op, a, b), PYTHON[op])
    if isinstance(x, V.Known) and isinstance(y, V.Known):
        return _fold(it, op, x, y)
    of_views = views.compare(it, op, x, y)
    if of_views is not None:
        return of_views
    x, y = _member_beside(it, x, y), _member_beside(it, y, x)
    if it.program.wide:
        of_ints = wide.compare(it, op, x, y)
        if of_ints is not None:
            return of_ints
    a, b = poly_of(x), poly_of(y)
    if a is not None and b is not None:
        answer = it.program.guards.compare(op, a, b)
        if answer is not None:
            return V.Known(answer)
    if V.tensor_type(x) is None or V.tensor_type(y) is None:
        from pyrelay.infer.comparison import structures

        return structures(it, op, x, y)
    if a is None and b is None:
        of_kinds = kinds.apart(it, op, x, y) or kinds.compared(it, op, x, y)
        if of_kinds is not None:
            return of_kinds
    beside = beside_unsigned(it, op, x, y)
    return kinds.truths(it, x, y, it.call(OP_NAMES[op], x, y) if beside is None else beside)


def beside_unsigned(it: Interpreter, op: str, x: V.Value, y: V.Value) -> V.Value | None:
    """Integers of 64 bits without a sign beside a Python int that the program computes, which may
    be negative; None for others."""
    kinds_of = V.tensor_type(x), V.tensor_type(y)
    for k, number in enumerate((x, y)):
        own, other = kinds_of[k], kinds_of[1 - k]
        if (own is None or other is None or not own.weak or own.dtype is not types.i64
                or other.weak or other.dtype is not types.u64 or isinstance(number, V.Known)):
            continue
        bits = it.emit("cast", number, dtype=types.i64, weak=False)
        bits = it.result(it.emit("cast", bits, dtype=types.u64, weak=False))
        found = it.call(OP_NAMES[op], *((bits, y) if k == 0 else (x, bits)))
        below = it.call("less", number, V.Known(0))
        if op == "!=" or ((op in ("<", "<=")) == (k == 0) and op != "=="):
            return either(it, below, found)
        return both(it, it.call("logical_not", below), found)
    return None


def both(it: Interpreter, x: V.Value, y: V.Value) -> V.Value:
    """Conjunction of two truths."""
    if isinstance(x, V.Known):
        return y if x.value else x
    if isinstance(y, V.Known):
        return x if y.value else y
    return it.call("logical_and", x, y)


def either(it: Interpreter, x: V.Value, y: V.Value) -> V.Value:
    """Disjunction of two truths."""
    if isinstance(x, V.Known):
        return x if x.value else y
    if isinstance(y, V.Known):
        return y if y.value else x
    return it.call("logical_or", x, y)


def _is(it: Interpreter, x: V.Value, y: V.Value) -> V.Value:
    if isinstance(x, V.Union) or isinstance(y, V.Union):
        return over_cases(it, x, y, lambda a, b: _is(it, a, b), operator.is_)
    if kinds.of(x) == kinds.of(y) and kinds.of(x) in ((types.PY_INT,), (types.PY_BOOL,)):
        return compare(it, "==", x, y)  # equal bools and small ints are one object
    if isinstance(x, V.Data) or isinstance(y, V.Data):
        from pyrelay.infer.nodes.trees import is_same

        return is_same(it, x, y)
    if isinstance(x, V.Known) and isinstance(y, V.Known):
        a, b = x.value, y.value
        same = a is b or (a is not UNSET and type(a) is type(b) is not float and a == b
                          and isinstance(a, (bool, int, str, type(None))))
        return V.Known(bool(same))
    if isinstance(x, (V.ArrayRef, V.Ref)) and isinstance(y, (V.ArrayRef, V.Ref)):
        views = getattr(x, "view", ()), getattr(y, "view", ())
        it.program.guards.identity = True
        in_one = identity.same_place(it, x.root, y.root)
        if in_one is not None:
            return in_one
        if x.root is not y.root and x.root.may_alias(y.root):
            if views == ((), ()) and identity.told_apart(x.root, (y.root,)):
                return identity.same_object(it, x.root, y.root)
            raise needs.NeedsIdentity(x.root, it.failure(
                errors.AliasError,
                "whether these are one object depends on a branch or loop of the running program",
            ))
        return V.Known(x.root is y.root and views[0] == views[1])
    return V.Known(x is y)


def _contains(it: Interpreter, container: V.Value, item: V.Value) -> V.Value:
    if isinstance(container, V.View):
        container = views.now(it, container)
    if isinstance(container, V.Ref) and isinstance(item, V.Union):
        from pyrelay.infer.containers.open_keys import note

        note(container, item, it)
    whole = isinstance(container, V.Ref) and container.cls is not None
    if isinstance(container, V.Union) or (isinstance(item, V.Union) and not whole):
        return over_cases(
            it, container, item, lambda c, i: _contains(it, c, i), lambda c, i: i in c
        )
    if text.is_text(container) and text.is_text(item):
        found = characters.contains(it, container, item)
        if found is not None:
            return found
        return text.ask(it, types.PY_BOOL, operator.contains, container, item)
    if text.is_text(container):
        from pyrelay.infer.names.builtins import class_of

        cls = class_of(item) or type(item)
        kind = f"numpy.{cls.__name__}" if cls.__module__ == "numpy" else cls.__name__
        raise raised(it, TypeError(f"'in <string>' requires string as left operand, not {kind}"))
    if isinstance(container, V.OpenTuple):
        container = container.items
    must_be_findable(it, container, item)
    if container == V.NONE or V.number_type(container) is not None:
        raise unfit_operands.of_contains(it, container, item)
    match container:
        case V.Known() if isinstance(item, V.Known):
            return _fold(it, "in", item, container)
        case V.Ref(root) if root.kind == "dict":
            from pyrelay.infer.flow.choice import has_key

            return has_key(it, container, item)
    from pyrelay.infer.flow.generators import is_iterator
    from pyrelay.infer.flow.iteration import iterate
    from pyrelay.infer.flow.truth import as_bool, truth

    if isinstance(container, V.ArrayRef):
        found = it.emit("any", it.call("equal", container, item), axes=tuple(
            range(container.type.rank)), keepdims=False)
        return it.result(it.builder.handle(it.builder.cast(found.atom, types.bool_, weak=True)))
    if isinstance(container, V.Range) and isinstance(container.step, V.Known):
        return _in_range(it, container, item)
    own = protocols.special(it, container, "__contains__", item)
    if own is not None:
        return truth(it, own)
    container = protocols.gone_through(it, container)
    items = None if is_iterator(container) else iterate(it, container)
    if items is None or not isinstance(items.count, V.Known):
        from pyrelay.infer.calls import call
        from pyrelay.infer.in_python.lists import contains

        return call(it, V.Known(contains), (container, item), {})
    result: V.Value = V.Known(False)
    count = it.static(items.count, "the number of items to look through")
    for k in range(count):
        found = items.item(V.Known(k))
        if _is_one_object(found, item):
            return V.Known(True)
        result = either(it, result, truth(it, compare(it, "==", found, item)))
    return as_bool(it, result)


def _is_one_object(a: V.Value, b: V.Value) -> bool:
    """True for the very same number: `in` finds even a NaN if that is the object it looks for."""
    if not (isinstance(a, V.Scalar) and isinstance(b, V.Scalar)) or a.atom is None:
        return False
    return a.atom is b.atom and a.type == b.type


def _in_range(it: Interpreter, container: V.Range, item: V.Value) -> V.Value:
    """`item in range(start, stop, step)` of a step whose sign is known."""
    from pyrelay.infer.flow.truth import truth

    start, stop, step = container.start, container.stop, container.step
    up = isinstance(step, V.Known) and step.value > 0
    low, high = (start, stop) if up else (stop, start)
    result = truth(it, compare(it, "<=" if up else "<", low, item))
    result = both(it, result, truth(it, compare(it, "<" if up else "<=", item, high)))
    distance = binary(it, "-", item, start)
    rest = binary(it, "%", distance, step)
    return both(it, result, truth(it, compare(it, "==", rest, V.Known(0))))
