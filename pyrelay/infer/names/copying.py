"""The functions of Python's `copy`, as handlers.

In: values. Out: others of the same content. A shallow copy shares what a container holds; a deep
one shares nothing, and what two places of the original share, those places of the copy share.
"""

from __future__ import annotations

import copy

from pyrelay import errors
from pyrelay.infer import protocols
from pyrelay.infer import values as V
from pyrelay.infer.attributes import call_method
from pyrelay.infer.calls import call
from pyrelay.infer.containers import growing, lists
from pyrelay.infer.flow.generators import is_generator
from pyrelay.infer.in_python import lists as in_python
from pyrelay.infer.in_python.containers import standing_for
from pyrelay.infer.interpreter import Interpreter
from pyrelay.infer.names.handlers import handles


@handles(copy.copy)
def copy_(it: Interpreter, x: V.Value) -> V.Value:
    """copy.copy: another list, dict, set, array or object that holds the same."""
    own = protocols.special(it, x, "__copy__")
    if own is not None:
        return own
    match x:
        case V.ArrayRef():
            return it.new_array(it.atom(x))
        case V.Ref(root, None) if root.kind in ("list", "dict", "set"):
            return call_method(it, V.Method(x, "copy"), (), {})
        case V.Ref(_, cls) if cls in standing_for and hasattr(cls, "copy"):  # not only its parts
            return call(it, V.Known(cls.copy), (x,), {})
        case V.Ref(root, cls) if root.kind == "object" and not is_generator(x):
            return it.new_ref("object", dict(it.content(root)), cls)
        case _ if _never_changes(x):
            return x
    raise _not_copied(it, "copy", x)


@handles(copy.deepcopy)
def deepcopy(it: Interpreter, x: V.Value, memo: V.Value = V.NONE) -> V.Value:
    """copy.deepcopy: another of everything that can change."""
    if memo != V.NONE:
        raise it.failure(
            errors.UnsupportedOperationError, "deepcopy() with a memo cannot be compiled",
            hints=("leave it out",),
        )
    return _deep(it, x, {})


def unshared(it: Interpreter, x: V.Value) -> V.Value:
    """A deep copy; of what has none, itself."""
    try:
        return _deep(it, x, {})
    except errors.UnsupportedOperationError:
        return x


def _deep(it: Interpreter, x: V.Value, made: dict[V.Root, V.Ref]) -> V.Value:
    """The copy; `made` are those of the containers met so far."""
    match x:
        case V.ArrayRef(root, view):
            if root in made and not view:
                return made[root]
            found = it.new_array(it.atom(x))
            if not view:
                made[root] = found  # type: ignore[assignment]
            return found
        case V.Tuple(items, cls):
            return V.Tuple(tuple(_deep(it, i, made) for i in items), cls)
        case V.Ref(root) if root in made:
            return made[root]
        case V.Ref(cls=cls) if cls is not None and hasattr(cls, "__deepcopy__"):
            raise _not_copied(it, "deepcopy", x)
        case V.Ref(root, cls) if root.kind in ("list", "dict", "set", "object"):
            if is_generator(x):
                raise _not_copied(it, "deepcopy", x)
            content = it.content(root)
            if isinstance(content, V.Growing):
                if growing.inner_lists(content.template):
                    if cls is not None:
                        raise _not_copied(it, "deepcopy", x)
                    rows = call(it, V.Known(in_python.copied_rows), (x,), {})
                    assert isinstance(rows, V.Ref)
                    return made.setdefault(root, rows)
                content = lists.copied(it, content, deep=True)
                return made.setdefault(root, it.new_ref(root.kind, content, cls))
            copied = made[root] = it.new_ref(root.kind, content, cls)
            parts: object = content
            if isinstance(content, dict):
                parts = {k: _deep(it, v, made) for k, v in content.items()}
            elif root.kind == "list":
                parts = tuple(_deep(it, v, made) for v in content)
            it.heap.write(copied.root, parts, it.let.span if it.let else None)
            return copied
        case _ if _never_changes(x):
            return x
    raise _not_copied(it, "deepcopy", x)


def _never_changes(x: V.Value) -> bool:
    """Numbers, texts, functions and the like, which are copies of themselves."""
    known = isinstance(x, V.Known) and not isinstance(x.value, (list, dict, set))
    return known or isinstance(x, (V.Scalar, V.Text, V.Tuple, V.Range, V.Slice, V.Closure))


def _not_copied(it: Interpreter, name: str, x: V.Value) -> errors.PyrelayError:
    return it.failure(
        errors.UnsupportedOperationError, f"{name}() of {V.describe(x)} cannot be compiled",
        hints=("make the copy from its parts, as with [row.copy() for row in rows]",),
    )
