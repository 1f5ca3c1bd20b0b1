"""bytes and bytearray, in plain Python."""

from __future__ import annotations

import pyrelay


def word(n):
    data = bytearray(n)
    data.append(n)
    return int.from_bytes(data[n - 2 :], "little")


def test_bytes_that_are_only_read_are_not_copied() -> None:
    """Three lists were: by what goes through them, by `list`, and in the other order."""
    f = pyrelay.jit(word)
    assert f(5) == word(5)
    assert f.ir(5).count(" loop ") == 1


def joined(message):
    data = bytearray(message)
    data.extend(message)
    other = data + message
    other += b"!"
    return bytes(other), data.startswith(message), b"-".join([bytes(data), message])


def test_what_is_made_of_bytes_shares_nothing_with_them() -> None:
    assert pyrelay.jit(joined)(b"abc") == joined(b"abc")
