"""What random programs call: helpers that take numbers and arrays, write into them, recurse.

`EXACT` keeps every number a multiple of 1/4 in [-4, 4): all operations of the programs are exact on
those, whatever their order, so that plain, interpreted and compiled runs agree bit for bit and no
branch flips. `SMOOTH` has a derivative instead.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable
from typing import Any

EXACT = '''
import numpy as np

def tame(v):
    return np.floor(v * 4.0) % 32.0 * 0.25 - 4.0
'''

SMOOTH = '''
import numpy as np

def tame(v):
    return np.tanh(v * 0.4)
'''

HELPERS = '''
def stir(v, target, k):
    target[k % len(target)] += v
    if v > 2.0:
        return v - 2.0
    return v + target[0]

def down(k, v):
    if k <= 0:
        return v
    return tame(down(k - 1, v * 0.5 + 1.0) - v)

def evens(k, v):
    return v if k <= 0 else odds(k - 1, v + 0.25)

def odds(k, v):
    return -v if k <= 0 else evens(k - 1, v * 0.5)

def mixed(first, *rest, by=0.5, **named):
    for value in rest:
        first = first - value * by
    return tame(first + named.get("extra", 0.25))

def positive(values, limit):
    for value in values:
        if value > limit:
            yield value
        elif value < -3.0:
            return

def strict(v, what):
    if v > 2.5:
        raise ValueError(f"too large in {what}")
    if v < -3.5:
        raise KeyError(what)
    return v * 0.5

class Cell:
    scale = 0.5

    def __init__(self, v, w):
        self.v = v
        self.w = w

    def bump(self, by):
        self.v = tame(self.v + by * self.scale)
        self.w[0] = self.v
        return self

    @property
    def total(self):
        return self.v + np.sum(self.w)
'''


def _namespace(text: str, name: str) -> dict[str, Any]:
    filename = f"<{name}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
    made: dict[str, Any] = {"__name__": name}
    exec(compile(text, filename, "exec"), made)
    return made


_EXACT = _namespace(EXACT + HELPERS, "exact_prelude")
_SMOOTH = _namespace(SMOOTH + HELPERS, "smooth_prelude")
_made = 0


def function_of(text: str, name: str = "program", smooth: bool = False) -> Callable[..., Any]:
    """A function of a module's text, with one of the preludes in scope; its source can be found."""
    global _made
    _made += 1
    filename = f"<random program {_made}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
    namespace = dict(_SMOOTH if smooth else _EXACT)
    exec(compile(text, filename, "exec"), namespace)
    made: Callable[..., Any] = namespace[name]
    return made
