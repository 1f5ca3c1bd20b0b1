"""Calls whose functions declare their arrays: arguments and results have to be as declared.

In: what annotations say (signatures.py), the abstract values of a call. Out: a ShapeError or
TypeMismatchError at the parameter of what does not fit. Extents of arguments that have to be equal
are guards of the program, as where an operation asks: later calls for which they hold run it,
others come here again. Extents that only the running program knows are compared there.

A name is one extent in a call of a function, and may be another one in the next. Of objects that
are nodes only the arrays are compared, of lists of nodes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

import numpy as np

from pyrelay import errors
from pyrelay.annotations import ANY_AXES, ANY_AXIS, Declaration, is_name, is_several, names_of
from pyrelay.errors import PyrelayError, Span
from pyrelay.infer import values as V
from pyrelay.infer.interpreter import Interpreter
from pyrelay.infer.layout import LPlace
from pyrelay.infer.signatures import Each, Either, Fields, Fixed, OfItself, Signature, signature
from pyrelay.ir import dims, types
from pyrelay.ir.dims import Extent
from pyrelay.ir.types import TensorType
from pyrelay.records import dataclass

_KINDS: dict[type, str] = {list: "a list", tuple: "a tuple", dict: "a dict"}


class _Misfit(Exception):
    """A value is not as declared: `why`, and what to write instead."""

    def __init__(
        self, cls: type[PyrelayError], value: _Place, said: object, why: str, label: object,
        hint: str, earlier: _Named | None = None, *, near: int = 0,
    ) -> None:
        super().__init__(why)
        self.cls, self.value, self.said, self.why = cls, value, said, why
        self.label, self.hint, self.earlier = str(label), hint, earlier
        self.near = near  # how much of it is as declared, to tell which of several was meant


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a value is: the parameter, the result if that is "", and the way from there."""

    parameter: str
    way: str
    span: Span | None

    def inside(self, step: str) -> _Place:
        """The place of a part."""
        return _Place(self.parameter, self.way + step, self.span)

    def __str__(self) -> str:
        if self.parameter:
            return self.parameter + self.way
        return f"{self.way} of the result" if self.way else "the result"


@dataclass(frozen=True, slots=True)
class _Named:
    """What a name stands for, one extent or several, and the value that said so first."""

    extents: tuple[Extent, ...]
    value: _Place
    type: TensorType


@dataclass(frozen=True, slots=True)
class _Array:
    """An array, and what is said of it."""

    said: Declaration
    type: TensorType
    value: _Place


def begun(it: Interpreter, closure: V.Closure, bound: Sequence[V.Value]) -> Call | None:
    """A call with these arguments, which fit what is declared; None if nothing is. Raises
    ShapeError or TypeMismatchError."""
    said = signature(it, closure)
    if said is None:
        return None
    call = Call(it, closure, said)
    call.arguments(bound)
    return call


@dataclass
class Call:
    """A call of a function with declared arrays: what the names of axes stand for."""

    it: Interpreter
    closure: V.Closure
    said: Signature
    names: dict[str, _Named] = field(default_factory=dict)
    #: axes that are computed of names which no array had yet
    waiting: list[tuple[str, int, _Array]] = field(default_factory=list)
    sure: bool = True  # False where another case may be meant

    def arguments(self, bound: Sequence[V.Value]) -> None:
        """Compare the arguments."""
        function = self.closure.function
        for k, said in self.said.parameters.items():
            parameter = function.signature[k]
            if not (parameter.has_default and bound[k] == V.NONE):
                place = _Place(parameter.name, "", function.params[k].span)
                self._compare(said, bound[k], place)
        self._compare_computed()

    def result(self, value: V.Value) -> None:
        """Compare what the function returns."""
        if self.said.result is not None:
            self._compare(self.said.result, value, _Place("", "", self.closure.function.span))
            self._compare_computed()

    def _compare(self, said: Any, value: V.Value, place: _Place) -> None:
        try:
            self._fit(said, value, place)
        except _Misfit as misfit:
            raise self._failure(misfit) from None

    def _compare_computed(self) -> None:
        waiting, self.waiting = self.waiting, []
        for computed, axis, array in waiting:
            try:
                missing = [n for n in names_of(computed) if n not in self.names]
                if missing:
                    raise _Misfit(
                        errors.TypeMismatchError, array.value, array.said,
                        f"no axis is named {missing[0]}, of which {computed} is computed",
                        array.type, f"name an axis of another array {missing[0]!r}",
                    )
                self._computed(computed, axis, array)
            except _Misfit as misfit:
                raise self._failure(misfit) from None

    def _failure(self, misfit: _Misfit) -> PyrelayError:
        related = []
        earlier = misfit.earlier
        before = earlier.value.span if earlier is not None else None
        if earlier is not None and before is not None and before != misfit.value.span:
            related.append((before, str(earlier.type)))
        return self.it.failure(
            misfit.cls, f"{self._declared(misfit.value, misfit.said)}, and {misfit.why}",
            span=misfit.value.span, label=misfit.label, related=related, hints=(misfit.hint,),
        )

    def _declared(self, value: _Place, said: object) -> str:
        name = V.function_name(self.closure.function)
        return f"{value} of {name} is declared as {said}"

    # -- structures --------------------------------------------------------------------------------

    def _fit(self, said: Any, value: V.Value, place: _Place) -> None:
        if isinstance(value, V.Union):
            for case in value.possible:  # one of them at run time: none names axes for what follows
                names = dict(self.names)
                self._fit(said, case, place)
                self.names = names
            return
        match said:
            case Declaration():
                self._array(said, value, place)
            case Either():
                self._either(said, value, place)
            case Fixed(items):
                self._fixed(items, value, place)
            case Each(kind, item):
                self._each(kind, item, value, place)
            case Fields(fields):
                self._fields(fields, value, place)
            case OfItself():
                cls = value.cls if isinstance(value, (V.Ref, V.Data)) else None
                self._fit(said.fields(cls) if cls is not None else None, value, place)

    def _either(self, said: Either, value: V.Value, place: _Place) -> None:
        if said.arrays if isinstance(value, V.ArrayRef) else said.others:
            return
        best: _Misfit | None = None
        names, waiting, sure = dict(self.names), list(self.waiting), self.sure
        self.sure = sure and len(said.cases) == 1
        for case in said.cases:
            try:
                self._fit(case, value, place)
            except _Misfit as misfit:
                best = misfit if best is None or misfit.near > best.near else best
                self.names, self.waiting = dict(names), list(waiting)
            else:
                best = None
                break
        self.sure = sure
        if best is not None:
            raise best

    def _fixed(self, items: Sequence[Any], value: V.Value, place: _Place) -> None:
        if not isinstance(value, V.Tuple):
            if isinstance(value, V.OpenTuple):
                return  # how many items it has only the running program knows
            raise _misfit(value, place, "a tuple", "give it a tuple")
        if len(value.items) != len(items):
            raise _Misfit(
                errors.TypeMismatchError, place, f"a tuple of {_counted(len(items), 'item')}",
                f"it has {_counted(len(value.items), 'item')}", V.describe(value),
                "declare tuple[Tensor[...], ...] for any number of items",
            )
        for k, (said, item) in enumerate(zip(items, value.items, strict=True)):
            self._fit(said, item, place.inside(f"[{k}]"))

    def _each(self, kind: type, said: Any, value: V.Value, place: _Place) -> None:
        match value:
            case V.Tuple(items) if kind is tuple:
                for k, item in enumerate(items):
                    self._fit(said, item, place.inside(f"[{k}]"))
            case V.OpenTuple(items) if kind is tuple:
                self._items(said, items, place)
            case V.Ref(root, None) if root.kind == "list" and kind in (list, tuple):
                self._items(said, value, place)
            case V.Ref(root, None) if root.kind == "dict" and kind is dict:
                content = self.it.content(root)
                for key, item in content.items() if isinstance(content, dict) else ():
                    self._fit(said, item, place.inside(f"[{key!r}]"))
            case V.Ref(root, cls) if cls is not None or root.kind not in ("list", "dict", "set"):
                pass  # an object that behaves as a container
            case V.Items() | V.Data():
                pass
            case _:
                raise _misfit(value, place, f"{_KINDS[kind]} of arrays", f"give it {_KINDS[kind]}")

    def _items(self, said: Any, value: V.Ref, place: _Place) -> None:
        """The items of a list."""
        content = self.it.content(value.root)
        if isinstance(content, tuple):
            for k, item in enumerate(content):
                self._fit(said, item, place.inside(f"[{k}]"))
        elif isinstance(content, V.Growing) and isinstance(said, Declaration):
            template = content.template
            if isinstance(template, LPlace) and isinstance(template.content, TensorType):
                self._typed(_Array(said, template.content, place.inside("[...]")))

    def _fields(self, fields: Mapping[str, Any], value: V.Value, place: _Place) -> None:
        content: Any = None
        match value:
            case V.Tuple(items, cls) if cls is not None and hasattr(cls, "_fields"):
                content = dict(zip(cls._fields, items, strict=True))
            case V.Ref(root) if root.kind in ("object", "dict"):
                content = self.it.content(root)
            case V.Data():
                from pyrelay.infer.attributes import get_attribute

                arrays = [n for n, s in fields.items() if isinstance(s, Declaration)]
                content = {n: get_attribute(self.it, value, n) for n in arrays}
        if not isinstance(content, dict):
            return
        is_dict = isinstance(value, V.Ref) and value.root.kind == "dict"
        for name, said in fields.items():
            if name in content:
                step = f"[{name!r}]" if is_dict else f".{name}"
                self._fit(said, content[name], place.inside(step))

    # -- arrays ------------------------------------------------------------------------------------

    def _array(self, said: Declaration, value: V.Value, place: _Place) -> None:
        ty = V.tensor_type(value)
        if isinstance(value, V.Known) and isinstance(value.value, np.ndarray):
            dtype = types.from_numpy(value.value.dtype)
            ty = None if dtype is None else TensorType(dtype, value.value.shape)
        if ty is None:
            raise _misfit(value, place, said, "give it an array")
        self._typed(_Array(said, ty, place))

    def _typed(self, array: _Array) -> None:
        said, ty = array.said, array.type
        if not _has_dtype(ty.dtype, said.dtype):
            own = Declaration(said.axes, np.dtype(ty.dtype.numpy))
            raise _Misfit(
                errors.TypeMismatchError, array.value, said, f"its dtype is {ty.dtype.numpy_name}",
                ty, f"convert it with .astype, or declare {own}",
            )
        several = next((k for k, a in enumerate(said.axes) if is_several(a)), None)
        rest = ty.rank - len(said.axes) + 1  # axes that one word for several stands for
        if rest < 0 or (several is None and rest != 1):
            raise _Misfit(
                errors.ShapeError, array.value, said, f"it has {_counted(ty.rank, 'axis', 'axes')}",
                ty, f"declare {_of_rank(said, ty.rank)} if that is meant", near=1,
            )
        for k, word in enumerate(said.axes):
            if several is None or k < several:
                self._axis(word, k, array)
            elif k > several:
                self._axis(word, k + rest - 1, array)
            elif word != ANY_AXES:
                self._named(str(word), ty.shape[k : k + rest], array)

    def _axis(self, word: int | str, axis: int, array: _Array) -> None:
        if isinstance(word, int):
            self._equal(word, axis, array, "")
        elif word != ANY_AXIS and is_name(word):
            self._named(word, (array.type.shape[axis],), array)
        elif word != ANY_AXIS:
            self.waiting.append((word, axis, array))

    def _named(self, name: str, extents: tuple[Extent, ...], array: _Array) -> None:
        known = self.names.get(name)
        if known is None:
            self.names[name] = _Named(extents, array.value, array.type)
            return
        first, place = known.extents, array.value
        equal = self.it.program.guards.equal
        if len(first) == len(extents):
            answers = [(a, b, equal(a, b)) for a, b in zip(first, extents, strict=True)]
            if all(answer is not False for _, _, answer in answers):
                for one, other, answer in answers:
                    if answer is None:
                        said = f"{name} is {{}} by {known.value} and {{}} by {place}"
                        self._later(one, other, array, said)
                return
        before, now = self._spelled(name, first), self._spelled(name, extents)
        raise _Misfit(
            errors.ShapeError, place, array.said,
            f"{name} is both {before} and {now}" if known.value == place
            else f"{name} is {before} by {known.value} and {now} by {place}",
            array.type, "give the axes names of their own if they may differ", known, near=2,
        )

    def _computed(self, word: str, axis: int, array: _Array) -> None:
        known = {n: self.names[n].extents[0] for n in names_of(word)}
        wanted: Extent = eval(word, {"__builtins__": {}}, known)
        self._equal(wanted, axis, array, word)

    def _equal(self, wanted: Extent, axis: int, array: _Array, word: str) -> None:
        """Compare an axis with a number, or with what a word computes."""
        extent = array.type.shape[axis]
        answer = self.it.program.guards.equal(wanted, extent)
        if answer is None:
            told = f"{word} is {{}}, but its axis {axis} is {{}}" if word else (
                f"its axis {axis} is {{1}}"
            )
            self._later(wanted, extent, array, told)
        elif not answer:
            told = f"{word} is {self._number(wanted)}, but " if word else ""
            raise _Misfit(
                errors.ShapeError, array.value, array.said,
                f"{told}its axis {axis} is {self._number(extent)}", array.type,
                "declare a name, or '_', for an axis that may differ", near=2,
            )

    def _later(self, one: Extent, other: Extent, array: _Array, told: str) -> None:
        """Compare two extents when the program runs."""
        if self.sure:
            declared = self._declared(array.value, array.said).replace("{", "{{")
            text = f"{declared.replace('}', '}}')}, and {told}"
            with self.it.builder.at(array.value.span):
                self.it.emit("check_equal", left=one, right=other, text=text)

    # -- texts -------------------------------------------------------------------------------------

    def _spelled(self, name: str, extents: Sequence[Extent]) -> str:
        shown = [self._number(e) for e in extents]
        return f"({', '.join(shown)})" if name[0] == "*" else shown[0]

    def _number(self, extent: Extent) -> str:
        """An extent as its number in the call at hand, if it has one."""
        guards = self.it.program.guards
        extent = guards.resolve(extent)
        known = all(s in guards.hints for s in dims.symbols(extent))
        return str(dims.evaluate(extent, guards.hints)) if known else dims.show(extent)


def _misfit(value: V.Value, place: _Place, said: object, hint: str) -> _Misfit:
    shown = V.describe(value)
    return _Misfit(errors.TypeMismatchError, place, said, f"it is {shown}", shown, hint)


def _counted(count: int, one: str, many: str = "items") -> str:
    return f"{count} {one if count == 1 else many}"


def _has_dtype(dtype: types.DType, wanted: Any) -> bool:
    if isinstance(wanted, np.dtype):
        return types.from_numpy(wanted) is dtype
    own: Any = np.floating if dtype.own is None else dtype.own  # bfloat16 is none of NumPy's
    return wanted is None or bool(np.issubdtype(own, wanted))


def _of_rank(said: Declaration, rank: int) -> Declaration:
    """A declaration of as many axes."""
    axes = [a for a in said.axes if not is_several(a)][:rank]
    return Declaration((*axes, *[ANY_AXIS] * (rank - len(axes))), said.dtype)
