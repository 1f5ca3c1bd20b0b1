"""`Tensor`: what users write in annotations to say which axes an array has.

In: what stands between the brackets of `Tensor[...]`. Out: a `Declaration`, which Python ignores
and compiled functions check before they are compiled (infer/declared.py). `annotations_of` is what
stands in annotations, `signature_of` the parameters of what they may stand in.

The words for axes are jaxtyping's (github.com/patrick-kidger/jaxtyping), whose annotations are read
as well; so is the way in which static checkers see the array alone: to them, `Tensor` is
`typing.Annotated`.
"""

from __future__ import annotations

import ast
import inspect
import operator
import re
import sys
from typing import TYPE_CHECKING, Any, Union

import numpy as np

from pyrelay.errors import TypeMismatchError
from pyrelay.records import dataclass

ANY_AXES = "..."
ANY_AXIS = "_"

_SEVERAL: tuple[Any, ...] = (
    np.generic, np.number, np.integer, np.signedinteger, np.unsignedinteger, np.inexact,
    np.floating, np.complexfloating,
)  # fmt: skip
"""Classes of NumPy's numbers that stand for several dtypes."""

_COMPUTED = (
    ast.Expression, ast.BinOp, ast.UnaryOp, ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod,
    ast.USub, ast.Name, ast.Load, ast.Constant,
)  # fmt: skip


def annotations_of(owner: Any) -> dict[str, Any]:
    """What stands in the annotations of a function, or of a class itself; of names that nothing has
    yet, which Python asks for only when somebody reads them (PEP 649), what is written."""
    if sys.version_info >= (3, 14):
        import annotationlib

        return annotationlib.get_annotations(owner, format=annotationlib.Format.FORWARDREF)
    return inspect.get_annotations(owner)


def signature_of(function: Any) -> inspect.Signature:
    """The parameters of what can be called, whatever names stand in its annotations.

    Raises TypeError and ValueError as `inspect.signature` does.
    """
    if sys.version_info >= (3, 14):
        import annotationlib

        return inspect.signature(function, annotation_format=annotationlib.Format.FORWARDREF)
    return inspect.signature(function)


@dataclass(frozen=True, slots=True)
class Declaration:
    """What an annotation says of an array.

    axes: for each an int, a name, `ANY_AXIS`, or a text that computes it of names; one of them may
    be `ANY_AXES`, or a name behind a star: any number of axes. dtype: None for any; a NumPy dtype,
    or a class of several, as np.floating. written: how users see it, if that is otherwise.
    """

    axes: tuple[int | str, ...]
    dtype: Any = None
    written: str = ""

    def __repr__(self) -> str:
        if self.written:
            return self.written
        words = [word if word == ANY_AXES else repr(word) for word in self.axes] or ["()"]
        if isinstance(self.dtype, np.dtype):
            words.append(self.dtype.name if self.dtype.kind == "V" else f"np.{self.dtype.name}")
        elif self.dtype is not None:
            words.append(f"np.{self.dtype.__name__}")
        return f"Tensor[{', '.join(words)}]"

    def __or__(self, other: Any) -> Any:
        return Union[self, other]  # noqa: UP007 -- an object, not a class, on the left

    def __ror__(self, other: Any) -> Any:
        return Union[other, self]  # noqa: UP007


def is_several(axis: int | str) -> bool:
    """Whether a word of a declaration stands for any number of axes."""
    return isinstance(axis, str) and (axis == ANY_AXES or axis[0] == "*")


def is_name(axis: int | str) -> bool:
    """Whether a word of a declaration names one axis."""
    return isinstance(axis, str) and axis.isidentifier() and axis != ANY_AXIS


def names_of(axis: str) -> list[str]:
    """The names of which a word computes an extent."""
    return [n.id for n in ast.walk(ast.parse(axis, mode="eval")) if isinstance(n, ast.Name)]


def declaration(items: Any) -> Declaration:
    """The declaration of what stands between the brackets. Raises TypeMismatchError for what says
    nothing of an array."""
    parts = list(items) if isinstance(items, tuple) else [items]
    if parts and isinstance(parts[0], type) and not _is_dtype(parts[0]):
        del parts[0]  # the class of the array, for static checkers
        if not parts:
            raise _refused("says nothing of the axes", "Tensor[np.ndarray, ...] takes any")
    dtype = None
    if parts and _is_dtype(parts[-1]):
        dtype = parts.pop()
        if not parts:
            raise _refused(
                "says nothing of the axes",
                "write Tensor[..., np.float64] for any number of them, Tensor[(), np.float64] for "
                "none",
            )
        if dtype not in _SEVERAL:
            dtype = np.dtype(dtype)
    axes = tuple(axis for part in parts for axis in _axes(part))
    if sum(map(is_several, axes)) > 1:
        raise _refused(
            "has two places for any number of axes", "keep one of them: which axes are whose?"
        )
    return Declaration(axes, dtype)


def _is_dtype(part: Any) -> bool:
    return isinstance(part, np.dtype) or part in (bool, int, float, complex) or (
        isinstance(part, type) and issubclass(part, np.generic)
    )


def _axes(part: Any) -> list[int | str]:
    """The axes that one item between the brackets says."""
    if part is Ellipsis:
        return [ANY_AXES]
    if isinstance(part, str):
        return [_word(word) for word in part.split()]
    if isinstance(part, tuple):
        return [axis for each in part for axis in _axes(each)]
    if not isinstance(part, (bool, np.bool_)):
        try:
            extent = operator.index(part)
        except TypeError:
            pass
        else:
            if extent >= 0:
                return [extent]
    raise _refused(
        f"cannot take {part!r} for an axis",
        "an axis is a name, an int, or ...; a dtype comes last: Tensor['n', 3, np.float32]",
    )


def _word(word: str) -> int | str:
    if word.isdecimal():
        return int(word)
    if word == ANY_AXES or word.isidentifier() or (word[0] == "*" and word[1:].isidentifier()):
        return word
    try:
        tree = ast.parse(word, mode="eval")
    except SyntaxError:
        pass
    else:
        if all(
            isinstance(node, _COMPUTED) and type(getattr(node, "value", 0)) is int
            for node in ast.walk(tree)
        ):
            return word
    raise _refused(
        f"cannot take {word!r} for an axis",
        "an axis is a name, or computed of names with +, -, *, // and %, without spaces: 'n', "
        "'2*n+1'",
    )


_CLASSES: dict[str, Any] = {
    "Float": np.floating, "Int": np.signedinteger, "UInt": np.unsignedinteger,
    "Integer": np.integer, "Complex": np.complexfloating, "Inexact": np.inexact, "Num": np.number,
    "Bool": np.dtype(bool),
}  # fmt: skip
_PRECISE = re.compile(r"(Float|Int|UInt|Complex)(8|16|32|64|128)")


def of_jaxtyping(annotation: Any) -> Declaration | None:
    """What an annotation of jaxtyping's says, `Float[np.ndarray, "n d"]`; None for other objects.

    Axes that broadcast (#n), and what is written there beyond names and numbers, may be any.
    """
    words = getattr(annotation, "dim_str", None)
    if type(annotation).__module__.partition(".")[0] != "jaxtyping" or not isinstance(words, str):
        return None
    name = annotation.dtype.__name__
    dtype = np.dtype(name.lower()) if _PRECISE.fullmatch(name) else _CLASSES.get(name)
    axes = tuple(map(_jaxtypings_word, words.split()))
    return Declaration(axes, dtype, f"{name}[..., {words!r}]")


def _jaxtypings_word(word: str) -> int | str:
    word = word.rpartition("=")[2]
    several = word == ANY_AXES or "*" in word[:2]
    if set(word) & set("#?{") or word.lstrip("*").startswith("_"):
        return ANY_AXES if several else ANY_AXIS
    try:
        return _word(word)
    except TypeMismatchError:
        return ANY_AXIS


def _refused(what: str, hint: str) -> TypeMismatchError:
    return TypeMismatchError(f"the annotation Tensor {what}.", hints=(hint,))


if TYPE_CHECKING:
    from typing import Annotated as Tensor
else:

    class Tensor:
        """The annotation of an array: `Tensor["n", 3, np.float32]` has two axes, the second is 3.

        Items are ints, names of axes, "_" for an axis of any extent, `...` for any number of axes
        ("*names" for any that are the same wherever the name occurs), extents computed of others
        ("n-1", "2*n"); a text may have several of them ("n 3"). `()` is no axis, as of a number.
        Last may come a dtype, or a class of dtypes as `np.floating`; first the class of the array,
        which static checkers then see: `Tensor[np.ndarray, "n d"]`.

        Python ignores it. A compiled function refuses, when it is compiled, arguments and results
        that do not fit: ShapeError, or TypeMismatchError for another dtype or no array. An axis is
        the same extent wherever its name occurs in one call. Under `vmap` a call is of one example.
        Annotations of jaxtyping mean the same. Raises TypeMismatchError for items that say nothing.
        Linters that take the names for types (F722, F821, UP037 of ruff) are to leave such files
        alone, as for jaxtyping.
        """

        def __class_getitem__(cls, items: Any) -> Declaration:
            return declaration(items)


__all__ = ["Tensor", "annotations_of", "signature_of"]
