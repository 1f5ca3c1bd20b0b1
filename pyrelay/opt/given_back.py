"""Which arrays functions give back of those that they are given.

In: functions of Core that call each other. Out: for each of their results the parameter of which it
is a version, made by updates alone: where the function may store into that one's buffer, the result
is in this buffer.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TypeAlias

from pyrelay.ir.nodes import Atom, Block, Const, FnCall, Function, If, Let, Loop, OpCall, Var
from pyrelay.opt import places
from pyrelay.opt.shapes import is_array

GivenBack: TypeAlias = Mapping[str, tuple[int | None, ...]]
"""Of each function for each result the number of the parameter that it is a version of; None for
scalars, and for arrays that are none, or different ones from case to case."""

NO_CALLS: GivenBack = MappingProxyType({})
_OTHER = -1  # no parameter, or different ones


def given_back(functions: Mapping[str, Function], longer: bool = False) -> GivenBack:
    """What the functions give back; what makes an array longer counts as an update if `longer`.

    What a function gives back that calls itself hangs on itself: unknown is what agrees with all,
    until no more is learnt (a greatest fixpoint).
    """
    found: dict[str, tuple[int | None, ...]] = {
        name: (None,) * len(f.body.results) for name, f in functions.items()
    }
    while True:
        now = {name: _Origins(f, found, longer).results() for name, f in functions.items()}
        if now == found:
            break
        found = now
    return {
        name: tuple(None if k == _OTHER else k for k in numbers)
        for name, numbers in found.items()
    }


def of_one(function: Function) -> tuple[int | None, ...]:
    """What a function gives back that calls no others."""
    return given_back({function.name: function})[function.name]


class _Origins:
    """Which parameter each array of a function is a version of; not in `of` if unknown yet."""

    def __init__(self, function: Function, calls: GivenBack, longer: bool) -> None:
        self.function, self.calls = function, calls
        self.updates = places.UPDATES | {"pad"} if longer else places.UPDATES
        self.of: dict[Atom, int] = {p: k for k, p in enumerate(function.params) if is_array(p)}

    def results(self) -> tuple[int | None, ...]:
        """The same for each result."""
        self._block(self.function.body)
        return tuple(map(self._origin, self.function.body.results))

    def _origin(self, atom: Atom) -> int | None:
        return _OTHER if isinstance(atom, Const) and is_array(atom) else self.of.get(atom)

    def _block(self, block: Block) -> None:
        for let in block.lets:
            rhs = let.rhs
            match rhs:
                case OpCall():
                    updates = rhs.op.name in self.updates
                    for out in filter(is_array, let.outs):
                        self._is(out, rhs.args[0]) if updates else self.of.update({out: _OTHER})
                case If():
                    self._block(rhs.then)
                    self._block(rhs.orelse)
                    arms = zip(rhs.then.results, rhs.orelse.results, strict=True)
                    for out, pair in zip(let.outs, arms, strict=True):
                        self._is(out, *pair)
                case Loop():
                    self._loop(let, rhs)
                case FnCall():
                    given = self.calls[rhs.function]
                    for out, k in zip(let.outs, given, strict=True):
                        if k == _OTHER:
                            self.of[out] = _OTHER
                        elif k is not None:
                            self._is(out, rhs.args[k])

    def _loop(self, let: Let, loop: Loop) -> None:
        results = loop.body.results[1:] if loop.exits else loop.body.results
        for var, first in zip(loop.carried, loop.init, strict=True):
            self._is(var, first)
        while True:
            if loop.test is not None:
                self._block(loop.test)
                for var, atom in zip(loop.handed, loop.test.results[1:], strict=True):
                    self._is(var, atom)
            self._block(loop.body)
            wrong = [
                var for var, result in zip(loop.carried, results, strict=True)
                if (var in self.of and self.of[var] != _OTHER
                    and self._origin(result) not in (None, self.of[var]))
            ]
            if not wrong:
                break
            self.of.update(dict.fromkeys(wrong, _OTHER))
        for out, var in zip(let.outs, loop.carried, strict=True):
            self._is(out, var)

    def _is(self, var: Var, *atoms: Atom) -> None:
        """A variable is a version of what all of some atoms are that are known."""
        known = {k for k in map(self._origin, atoms) if k is not None}
        if known:
            self.of[var] = known.pop() if len(known) == 1 else _OTHER
