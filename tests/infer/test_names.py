"""The table of names: each Python object has one handler."""

from __future__ import annotations

import pytest

from pyrelay import errors
from pyrelay.infer import names


def test_an_object_is_not_given_a_second_handler() -> None:
    first = names.lookup(len)
    assert first is not None
    with pytest.raises(errors.InvariantError, match="<built-in function len> has a handler"):
        names.handles(len)(lambda it, x: x)
    names.handles(len)(first)  # the same one again is no second one
    assert names.lookup(len) is first
