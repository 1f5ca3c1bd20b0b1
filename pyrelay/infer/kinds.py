"""Numbers that are Python's or NumPy's, ints or floats, as the path taken says.

`x = 1 if c else 2.0` is computed as a float on both paths, as ops do it. Which kind of number it
is in Python is kept beside it: a `Scalar` has the `kinds` that it may be, in order, and the atom
`kind`, the number of the one it is (`code`). Arithmetic says the kinds of its results; where a kind
can be seen (a result, a text, `isinstance`) `told_apart` makes a union of the number.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from pyrelay.infer import values as V
from pyrelay.infer.spellings import MIRRORED, OP_NAMES, PYTHON
from pyrelay.ir import types
from pyrelay.ir.build import Builder, Handle, constant
from pyrelay.ir.nodes import Atom, Const
from pyrelay.ir.op import OPS
from pyrelay.ir.types import DType, TensorType

if TYPE_CHECKING:
    from pyrelay.infer.interpreter import Interpreter

_CODES: dict[TensorType, int] = {
    TensorType(dtype, (), weak): 2 * k + weak
    for k, dtype in enumerate(types.DTYPES.values()) for weak in (False, True)
}


#: The binary digits of floats: ints of no more are held as they are.
_DIGITS = {"f64": 53, "f32": 24, "f16": 11, "bf16": 8}


def code(ty: TensorType) -> int:
    """The number that says that a number is of this type."""
    return _CODES[ty]


def _each_once(kinds: Iterable[TensorType]) -> tuple[TensorType, ...]:
    return tuple(sorted(set(kinds), key=code))


def joined(kinds: Iterable[TensorType], common: TensorType) -> tuple[TensorType, ...]:
    """The kinds of a number that is computed as `common`; () if its type says all there is to say.

    Also where the common type does not hold what the kinds do, to the last digit.
    """
    found = _each_once(kinds)
    return found if len(found) > 1 and all(_holds(common, k) for k in found) else ()


def _holds(common: TensorType, kind: TensorType) -> bool:
    """Whether a dtype holds all real numbers of another one, ints of 64 bits where it is looked."""
    mine, theirs = common.dtype, kind.dtype
    if mine is theirs or (theirs is types.bool_ and mine.kind != "c"):
        return True
    if types.bf16 in (mine, theirs):
        return mine in (types.f32, types.f64)
    if mine.kind == "c" or types.u64 in (mine, theirs):
        return False
    return bool(np.can_cast(theirs.numpy, mine.numpy, "safe"))


def _as_computed(common: TensorType, kind: TensorType) -> bool:
    """Whether what is computed of numbers held as one type is what is computed of the kind."""
    mine, theirs = common.dtype, kind.dtype
    if mine is theirs:
        return True
    return theirs in (types.bool_, types.i64) and mine in (types.i64, types.f64)


def mixed(value: V.Value) -> bool:
    """Whether a number is computed with as none of the types that it may have is."""
    return isinstance(value, V.Scalar) and not all(
        _as_computed(value.type, kind) for kind in value.kinds
    )


def told(it: Interpreter, value: V.Value) -> V.Value:
    """The value; a mixed number as a union of its kinds."""
    return told_apart(it, value) if isinstance(value, V.Scalar) and mixed(value) else value


@functools.lru_cache(maxsize=1024, typed=True)
def holders(value: object) -> frozenset[DType]:
    """NumPy's types of real numbers that hold a Python number as it is."""
    if not isinstance(value, (bool, int, float)):
        return frozenset()
    return frozenset(dtype for dtype in types.DTYPES.values() if _is_held(dtype, value))


def _is_held(dtype: DType, value: float) -> bool:
    is_int = not isinstance(value, float)
    if dtype.kind in "iu":
        bounds = np.iinfo(dtype.numpy)
        return is_int and bounds.min <= value <= bounds.max
    if dtype.kind != "f" or (is_int and abs(value) > 2**53):
        return False
    if math.isnan(value):
        return True
    wide = np.float64(value)
    with np.errstate(over="ignore"):
        if dtype is types.bf16:  # the upper half of a float32
            single = wide.astype(np.float32)
            return float(single) == value and not int(single.view(np.uint32)) & 0xFFFF
        return float(wide.astype(dtype.numpy)) == value


def differ(fn: np.ufunc, args: Sequence[V.Value]) -> bool:
    """Whether NumPy's function of these numbers gives ints of some of their kinds, else floats."""
    of_each = [of(a) for a in args]
    if max(map(len, of_each), default=0) < 2 or not all(of_each):
        return False
    dtypes = {types.promote_computed(kinds)[0] for kinds in product(*of_each)}
    return len(dtypes) > 1 and len({_result(fn, dtype.numpy) for dtype in dtypes}) > 1


def _result(fn: np.ufunc, dtype: np.dtype[Any]) -> object:
    try:
        return fn.resolve_dtypes((dtype,) * fn.nin + (None,) * fn.nout)[-1]
    except TypeError:
        return None


def numbers_as(
    common: TensorType, numbers: Sequence[tuple[TensorType, Sequence[TensorType], frozenset[DType]]]
) -> tuple[TensorType, tuple[TensorType, ...]]:
    """The type that numbers of several paths are held as, and their kinds, if that does not say it.

    Of each it is said what it is held as, of which kinds it is, and which types hold the constants
    that it comes of: constants are held as NumPy's numbers beside them. What common type and kinds
    do not say is lost.
    """
    kinds = _each_once(kind for _, several, _ in numbers for kind in several)
    if len(kinds) < 2:
        return common, ()
    if common.dtype.kind != "c" and all(
        common.dtype in holding or _holds(common, held) for held, _, holding in numbers
    ):
        return common, kinds
    dtype, _ = types.promote(TensorType(kind.dtype) for kind in kinds)
    wider = TensorType(dtype, (), common.weak)
    return (wider, kinds) if all(_holds(wider, kind) for kind in kinds) else (common, ())


def of(value: V.Value) -> tuple[TensorType, ...]:
    """The kinds that a number may be."""
    if isinstance(value, V.Scalar) and value.kinds:
        return value.kinds
    ty = V.number_type(value)
    return () if ty is None else (ty,)


def exact(b: Builder, number: Atom, dtype: DType) -> Atom:
    """A number cast to the dtype that it has beside numbers of other kinds.

    The running program raises OverflowError for an int of more digits than a float of it has.
    """
    ty = number.type
    assert isinstance(ty, TensorType)
    if isinstance(number, Const) or ty.dtype is not types.i64 or dtype.kind != "f":
        return b.cast(number, dtype)
    bits = 63 - _DIGITS[dtype.name]
    larger = b.call(OPS["multiply"], b.cast(number, types.i64, weak=True), 2**bits)
    return b.cast(b.call(OPS["right_shift"], larger, bits), dtype)


def kind_of(value: V.Value) -> Atom:
    """The number of the kind that a number is."""
    if isinstance(value, V.Scalar) and value.kind is not None:
        return value.kind
    ty = V.number_type(value)
    assert ty is not None
    return constant(code(ty))


def told_apart(it: Interpreter, value: V.Scalar) -> V.Union:
    """The number as a union of its kinds."""
    b, kind = it.builder, kind_of(value)
    tag: Atom = constant(0)
    for k, ty in enumerate(value.kinds[1:], 1):
        tag = b.call(OPS["where"], b.call(OPS["equal"], kind, code(ty)), k, tag).atom
    tag = b.cast(tag, types.i64, weak=True)
    return V.Union(tag, tuple(V.Scalar(ty, _as(b, it.atom(value), ty)) for ty in value.kinds))


def as_numbers(it: Interpreter, tag: Atom, cases: Sequence[V.Value]) -> V.Value:
    """One of several values, the numbers among them as one number that says of which kind it is."""
    b = it.builder
    numbers = {k: v for k, v in enumerate(cases) if isinstance(v, V.Scalar) and not v.kinds}
    if len(numbers) < 2:
        return V.Union(tag, tuple(cases))
    dtype, weak = types.promote(v.type for v in numbers.values())
    common = TensorType(dtype, (), weak)
    common, kinds = numbers_as(common, [(v.type, (v.type,), v.holders) for v in numbers.values()])
    if not kinds:
        return V.Union(tag, tuple(cases))
    dtype, weak = common.dtype, common.weak
    first, *others = numbers.items()
    atom, kind = exact(b, it.atom(first[1]), dtype), constant(code(first[1].type))
    for k, v in others:
        here = b.call(OPS["equal"], tag, k)
        atom = b.call(OPS["where"], here, exact(b, it.atom(v), dtype), atom).atom
        kind = b.call(OPS["where"], here, code(v.type), kind).atom
    number = V.Scalar(
        common, b.cast(atom, dtype, weak=weak), kinds=kinds,
        kind=b.cast(kind, types.i64, weak=True),
    )
    left = [k for k in range(len(cases)) if k not in numbers]
    if not left:
        return number
    new = constant(len(left))
    for place, k in enumerate(left):
        new = b.call(OPS["where"], b.call(OPS["equal"], tag, k), place, new).atom
    return V.Union(b.cast(new, types.i64, weak=True), (*(cases[k] for k in left), number))


def surely(value: V.Value, made: V.Value) -> TensorType | None:
    """The kind of a number of several that is what was made, if that is of one of them."""
    if not isinstance(value, V.Scalar) or not value.kinds:
        return None
    few = of(made)
    return few[0] if len(few) == 1 and few[0] in value.kinds else None


def as_kind(it: Interpreter, value: V.Value, ty: TensorType) -> V.Value:
    """A number of several kinds as one of them, whether it is of this one or not."""
    return V.Scalar(ty, _as(it.builder, it.atom(value), ty))


def _as(b: Builder, atom: Atom, ty: TensorType) -> Atom:
    """A number that is of this kind, cast without looking whether it fits, where it is not."""
    plain = b.cast(atom, ty.dtype, weak=False)
    return b.cast(plain, ty.dtype, weak=ty.weak)


def matches(it: Interpreter, value: V.Scalar, wanted: Sequence[TensorType]) -> V.Value:
    """Whether a number is one of some of its kinds."""
    from pyrelay.infer.operators import either

    if len(wanted) in (0, len(value.kinds)):
        return V.Known(bool(wanted))
    found: V.Value = V.Known(False)
    for ty in wanted:
        same = it.builder.call(OPS["equal"], kind_of(value), code(ty))
        found = either(it, found, it.result(same))
    return found


def computed(it: Interpreter, op: str, x: V.Value, y: V.Value, result: V.Value) -> V.Value:
    """The result of arithmetic, with the kinds that it may be."""
    left, right = of(x), of(y)
    if not isinstance(result, V.Scalar) or result.atom is None or len(left) * len(right) < 2:
        return result
    if op not in _ARITHMETIC:
        return result
    given = {(a, b): _arithmetic(op, a, b) for a, b in product(left, right)}
    if op in ("/", "//", "%") and not result.type.weak:
        for ta, tb in given:
            if ta.weak and tb.weak:
                _refuse_zero(it, op, (x, ta), (y, tb))
    return of_pairs(it, x, y, given, result)


def of_pairs(
    it: Interpreter, x: V.Value, y: V.Value, given: dict[tuple[TensorType, TensorType], TensorType],
    result: V.Scalar,
) -> V.Scalar:
    """The number computed of two with the kinds that it may be, as these may be of."""
    kinds = joined(given.values(), result.type)
    if not kinds:
        return result
    found = list(given.values())
    usual = max(kinds, key=found.count)
    kind: Atom = constant(code(usual))
    for (ta, tb), ty in given.items():
        if ty == usual:
            continue
        here = _are(it.builder, ((x, ta), (y, tb)))
        kind = it.builder.call(OPS["where"], here, code(ty), kind).atom
    kind = it.builder.cast(kind, types.i64, weak=True)
    _check_digits(it.builder, result, kinds, kind)
    return replace(result, kinds=kinds, kind=kind)


def apart(it: Interpreter, op: str, x: V.Value, y: V.Value) -> V.Value | None:
    """`x op y` where it is another computation for some of the kinds that numbers may be.

    None if it is the one that their types say. Sums, products and comparisons of floats are made of
    each kind, and one is chosen; others stand behind a branch.
    """
    tx, ty = V.tensor_type(x), V.tensor_type(y)
    if tx is None or ty is None or not (mixed(x) or mixed(y)):
        return None
    left, right = of(x) or (tx,), of(y) or (ty,)
    compares = op in _COMPARISONS
    if compares and not (_wide(x) or _wide(y)):
        return None
    if compares or op in _ARITHMETIC:
        given = {(a, b): _arithmetic(op, a, b) for a, b in product(left, right)}
        if all(_as_computed(_arithmetic(op, tx, ty), r) for r in given.values()):
            return None
        dtypes = {r.dtype for r in given.values()}
        raising = op in ("/", "//", "%") and any(a.weak and b.weak for a, b in given)
        if (tx.shape or ty.shape) and len(dtypes) > 1:
            return None
        if all(d.kind == "f" for d in dtypes) and not raising and op not in _BITS:
            return _chosen(it, op, x, y, given)
    elif tx.shape or ty.shape:
        return None
    from pyrelay.infer.operators import binary, compare, over_cases

    use = compare if compares else binary
    return over_cases(
        it, told(it, x), told(it, y), lambda a, b: use(it, op, a, b), PYTHON[op]
    )


_COMPARISONS = frozenset(["<", "<=", ">", ">=", "==", "!="])


def _wide(value: V.Value) -> bool:
    """Whether a number may be a float of less digits than it is held with."""
    return isinstance(value, V.Scalar) and any(
        kind.dtype.kind == "f" and kind.dtype is not value.type.dtype and not kind.weak
        for kind in value.kinds
    )


def _chosen(
    it: Interpreter, op: str, x: V.Value, y: V.Value,
    given: dict[tuple[TensorType, TensorType], TensorType],
) -> V.Value:
    """`x op y` as computed with floats of each dtype, that of the kinds at hand."""
    b, made = it.builder, {}
    for r in given.values():
        if r.dtype not in made:
            ty = TensorType(r.dtype, (), r.weak)
            one, other = (as_kind(it, v, ty) if len(of(v)) > 1 else v for v in (x, y))
            made[r.dtype] = it.call(OP_NAMES[op], one, other)
    (first, value), *others = made.items()
    if not others:
        return truths(it, x, y, value) if op in _COMPARISONS else value
    dtype, _ = types.promote(TensorType(d) for d in made)
    compares = op in _COMPARISONS
    chosen = it.atom(value) if compares else b.cast(it.atom(value), dtype, weak=False)
    for pair, r in given.items():
        if r.dtype is not first:
            here, number = _are(b, tuple(zip((x, y), pair, strict=True))), it.atom(made[r.dtype])
            number = number if compares else b.cast(number, dtype, weak=False)
            chosen = b.call(OPS["where"], here, number, chosen).atom
    if compares:
        return truths(it, x, y, it.result(b.handle(chosen)))
    weak = all(r.weak for r in given.values())
    ty = TensorType(dtype, (), weak)
    return of_pairs(it, x, y, given, V.Scalar(ty, b.cast(chosen, dtype, weak=weak)))


def _check_digits(
    b: Builder, result: V.Scalar, kinds: Sequence[TensorType], kind: Atom
) -> None:
    """The running program raises OverflowError for a result that is an int of too many digits."""
    if result.type.dtype.kind != "f" or result.atom is None:
        return
    for ty in kinds:
        if ty.dtype is types.i64:
            is_int = b.call(OPS["equal"], kind, code(ty))
            number = b.call(OPS["where"], is_int, result.atom, 0.0)
            exact(b, b.cast(number, types.i64, weak=True), result.type.dtype)


def truths(it: Interpreter, x: V.Value, y: V.Value, result: V.Value) -> V.Value:
    """The result of a comparison, which is Python's of Python's numbers and else NumPy's."""
    left, right = of(x), of(y)
    if not isinstance(result, V.Scalar) or result.atom is None or len(left) * len(right) < 2:
        return result
    given = {
        (a, b): types.PY_BOOL if a.weak and b.weak else TensorType(types.bool_)
        for a, b in product(left, right)
    }
    return of_pairs(it, x, y, given, result)


def compared(it: Interpreter, op: str, x: V.Value, y: V.Value) -> V.Value | None:
    """A comparison of a Python int and a Python float, which is exact; None for other values.

    Ops compare both as floats. What is made one float may differ by the digits that the int lost.
    """
    if not isinstance(x, V.Scalar) or x.type != types.PY_INT or x.kinds:
        turned = isinstance(y, V.Scalar) and y.type == types.PY_INT and not y.kinds
        return compared(it, MIRRORED.get(op, op), y, x) if turned else None
    python, name, b = PYTHON[op], OP_NAMES[op], it.builder
    if isinstance(y, V.Known):
        if type(y.value) is not float or not 2.0**53 <= abs(y.value) < math.inf:
            return None
        if not -(2.0**63) <= y.value < 2.0**63:
            return V.Known(python(0.0, y.value))
        return it.call(name, x, V.Known(int(y.value)))
    if not isinstance(y, V.Scalar) or y.type != types.PY_FLOAT or y.kinds:
        return None
    as_op = OPS[name]
    number, whole = b.cast(it.atom(y), types.f64), b.cast(it.atom(x), types.i64)
    rounded = b.cast(whole, types.f64)
    same, far = b.call(OPS["equal"], rounded, number), b.call(OPS["less_equal"], 2.0**63, number)
    inside = b.call(OPS["logical_and"], same, b.call(OPS["logical_not"], far))
    exact = b.cast(b.call(OPS["where"], inside, number, b.cast(0.0, types.f64)), types.i64)
    found = b.call(OPS["where"], far, python(0, 1), b.call(as_op, whole, exact))
    answer = b.call(OPS["where"], same, found, b.call(as_op, rounded, number))
    return V.Scalar(types.PY_BOOL, b.cast(answer, types.bool_, weak=True))


def _are(b: Builder, pairs: Sequence[tuple[V.Value, TensorType]]) -> Handle:
    """Whether numbers are of these kinds."""
    found: Handle | None = None
    for value, ty in pairs:
        if len(of(value)) > 1:
            same: Handle = b.call(OPS["equal"], kind_of(value), code(ty))
            found = same if found is None else b.call(OPS["logical_and"], found, same)
    assert found is not None
    return found


def _refuse_zero(
    it: Interpreter, op: str, left: tuple[V.Value, TensorType], right: tuple[V.Value, TensorType]
) -> None:
    """Raise as Python does where both are Python's and the divisor is 0, which NumPy divides by."""
    from pyrelay.infer.flow.effects import raise_where

    one, zero = (types.python_type(ty)(k) for k, (_, ty) in ((1, left), (0, right)))
    try:
        {"/": operator.truediv, "//": operator.floordiv, "%": operator.mod}[op](one, zero)
    except ZeroDivisionError as error:
        divisor = it.builder.call(OPS["equal"], it.atom(right[0]), 0)
        test = it.builder.call(OPS["logical_and"], _are(it.builder, (left, right)), divisor)
        raise_where(it, test.atom, ZeroDivisionError, *map(V.Known, error.args))


def signed(x: V.Value, result: V.Value, b: Builder) -> V.Value:
    """The result of `-x`, `+x` or `abs(x)`, with the kinds that it may be."""
    if not isinstance(x, V.Scalar) or not x.kinds or not isinstance(result, V.Scalar):
        return result
    found = {ty: types.PY_INT if ty == types.PY_BOOL else ty for ty in x.kinds}
    kinds = _each_once(found.values())
    kind = kind_of(x)
    if types.PY_BOOL in found:
        test = b.call(OPS["equal"], kind, code(types.PY_BOOL))
        kind = b.call(OPS["where"], test, code(types.PY_INT), kind).atom
        kind = b.cast(kind, types.i64, weak=True)
    return replace(result, kinds=kinds, kind=kind) if len(kinds) > 1 else result


_BITS = frozenset(["&", "|", "^", "<<", ">>"])
_ARITHMETIC = frozenset(["+", "-", "*", "//", "%", "/"]) | _BITS


def _arithmetic(op: str, a: TensorType, b: TensorType) -> TensorType:
    """What an operator gives of two kinds of numbers, as what comparisons compare them."""
    dtype, weak = types.promote_computed((a, b))
    if op == "/" and not dtype.is_float and dtype.kind != "c":
        dtype = types.f64
    elif dtype is types.bool_ and weak and op not in _COMPARISONS and op not in "&|^":
        dtype = types.i64
    return TensorType(dtype, (), weak)
