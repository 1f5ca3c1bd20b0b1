"""`x.shape = shape`: an array object is another view of its elements from there on.

In: an array of the program. Out: every name and container that has the object has a reshaped view.
Of two views of the same elements only the one that is meant has another shape.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pyrelay import errors
from pyrelay.infer import values as V
from pyrelay.infer.interpreter import Interpreter
from pyrelay.records import dataclass


def assign(it: Interpreter, array: V.ArrayRef, shape: V.Value) -> None:
    """`array.shape = shape`.

    Raises UnsupportedOperationError for an array of the caller, where only some paths come by, and
    where a copy would be needed.
    """
    from pyrelay.infer.names.shape import reshape

    root = array.root
    if (root.leaf is not None and not array.view) or root.may_be or root.rivals or root.stored:
        raise _refused(it, array, "the object is the caller's, or may be one of several")
    if it.conditional or it.handling:
        raise _refused(it, array, "other paths would have it in its old shape")
    made = reshape(it, array, shape)
    if not isinstance(made, V.ArrayRef) or made.root is not root:
        raise _refused(it, array, "its elements do not lie so: NumPy raises here")
    change = _Change(it, array, made)
    if any(change.of(v) is not v for frame in it.frames[:-1] for v in frame.env.values()):
        raise _refused(it, array, "the function that calls this one would have it in its old shape")
    env = it.frame.env
    changed = {var: new for var, v in env.items() if (new := change.of(v)) is not v}
    contents = {r: n for r, c in it.heap.contents.items() if (n := change.of_content(c)) is not c}
    env.update(changed)
    it.heap.contents.update(contents)


def _refused(it: Interpreter, array: V.Value, why: str) -> errors.PyrelayError:
    return it.failure(
        errors.UnsupportedOperationError,
        f"the shape of {V.describe(array)} cannot be assigned here",
        notes=(why,), hints=("write x = x.reshape(shape)",),
    )


@dataclass(frozen=True)
class _Change:
    """Values in which an array object is replaced."""

    it: Interpreter
    old: V.ArrayRef
    new: V.ArrayRef

    def is_it(self, value: V.Value) -> bool:
        """Whether a value is the object."""
        old = self.old
        return isinstance(value, V.ArrayRef) and value.root is old.root and value.view == old.view

    def of(self, value: Any) -> Any:
        """A value with the new object for the old one; itself if it does not have that."""
        if self.is_it(value):
            return self.new
        if isinstance(value, V.Tuple):
            items = tuple(map(self.of, value.items))
            same = all(a is b for a, b in zip(items, value.items, strict=True))
            return value if same else replace(value, items=items)
        if any(map(self.is_it, V.leaves_of((value,)))):
            raise _refused(self.it, self.old, f"{V.describe(value)} has it in its old shape")
        return value

    def of_content(self, content: Any) -> Any:
        """What an object of the heap holds."""
        if type(content) is tuple:
            items = tuple(map(self.of, content))
            same = all(a is b for a, b in zip(items, content, strict=True))
            return content if same else items
        if type(content) is dict:
            held = {key: self.of(value) for key, value in content.items()}
            return content if all(held[k] is content[k] for k in held) else held
        return self.of(content) if isinstance(content, (V.ArrayRef, V.Tuple)) else content
