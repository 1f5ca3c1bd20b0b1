"""What a dict takes from a mapping, or from an iterable of keys and values.

In: the content of a dict whose keys are known, and what is given to it. Out: the content then.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pyrelay.infer import values as V
from pyrelay.infer.calls import call
from pyrelay.infer.flow.iteration import sequence_of
from pyrelay.infer.interpreter import Interpreter


def taken(
    it: Interpreter, content: Mapping[Any, V.Value], other: V.Value,
    key_of: Callable[[V.Value], Any],
) -> dict[Any, V.Value]:
    """The content of a dict after `update(other)`: what has keys() is a mapping, as in Python.

    key_of: the Python object of a key, which is known. Raises what it raises.
    """
    from pyrelay.infer.arrays.subscripts import get_item
    from pyrelay.infer.operators import raised

    made = dict(content)
    if isinstance(other, V.Ref) and other.root.kind == "dict":
        return {**made, **it.content(other.root)}
    cls: Any = other.cls if isinstance(other, (V.Ref, V.Data)) else None
    if hasattr(cls, "keys"):
        for key in sequence_of(it, call(it, V.Known(cls.keys), (other,), {})):
            made[key_of(key)] = get_item(it, other, key)
        return made
    for at, pair in enumerate(sequence_of(it, other)):
        parts = sequence_of(it, pair)
        if len(parts) != 2:
            raise raised(it, ValueError(
                f"dictionary update sequence element #{at} has length {len(parts)}; 2 is required"
            ))
        key, value = parts
        made[key_of(key)] = value
    return made
