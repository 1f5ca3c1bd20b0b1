"""Scalar control flow, and whether the arrays in it can be updated in their own buffers.

In: Lets of Core. Out: which of them compute with scalars and array elements only, so that they can
become a part of one kernel; and whether such a group uses every array linearly: an array that has
been updated is not read in its old state afterwards.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pyrelay.ir import walk
from pyrelay.ir.nodes import Atom, Block, If, Let, Loop, OpCall, Var
from pyrelay.ir.op import Fusion
from pyrelay.ir.types import TensorType
from pyrelay.opt import places

#: Ops without an element rule that mean the same inside a kernel.
_ALSO_IN_KERNELS = frozenset(["extent", "undef", "raise"])
#: How deep loops and branches of one kernel may nest: Python refuses 20 nested loops.
_DEEPEST = 15


def is_array(atom: Atom) -> bool:
    """Whether an atom has axes."""
    return isinstance(atom.type, TensorType) and bool(atom.type.shape)


def is_scalar_op(rhs: OpCall) -> bool:
    """Whether an op takes scalars, or an element of an array, to a scalar or an updated array."""
    if places.updates_element(rhs):
        return not any(map(is_array, rhs.args[1:]))
    if places.reads_element(rhs):
        return True
    if any(not isinstance(a.type, TensorType) or a.type.shape for a in rhs.args):
        return False
    if rhs.op.name in _ALSO_IN_KERNELS:
        return not is_undefined_array(rhs)
    return rhs.op.element is not None and rhs.op.fusion is Fusion.ELEMENTWISE


def is_undefined_array(rhs: OpCall) -> bool:
    """Whether an op makes an array (or tape) that nobody reads."""
    ty = rhs.attrs.get("type")
    return rhs.op.name == "undef" and not (isinstance(ty, TensorType) and not ty.shape)


def scalar_lets(block: Block) -> set[Let]:
    """Lets in a block and inside it that compute with scalars and elements only."""
    depth: dict[Let, int] = {}
    for let in reversed(list(walk.nested_lets(block))):
        rhs = let.rhs
        if let.dims or any(not isinstance(v.type, TensorType) for v in let.outs):
            continue
        if isinstance(rhs, OpCall):
            if is_scalar_op(rhs) or (places.is_view(rhs) and is_array(let.outs[0])):
                depth[let] = 0
            continue
        if not isinstance(rhs, (If, Loop)) or (isinstance(rhs, Loop) and rhs.dims):
            continue
        inner = [each for b in walk.blocks(rhs) for each in b.lets]
        if all(each in depth for each in inner):
            deepest = 1 + max((depth[each] for each in inner), default=0)
            if deepest <= _DEEPEST:
                depth[let] = deepest
    return set(depth)


def uses_linearly(lets: Sequence[Let], results: Iterable[Atom] = ()) -> bool:
    """Whether scalar Lets, run in order, can update arrays where they are.

    `results` are the arrays that are needed in the end, in the state they then have.
    """
    return _Linearity().run(lets, results)


class _Linearity:
    """Follows which variable stands for the present content of each buffer.

    A buffer is known by the first variable that stood for it; a view shows the content of the
    variable that it is a view of.
    """

    def __init__(self) -> None:
        self.buffer: dict[Var, Var] = {}
        self.present: dict[Var, Var] = {}
        self.shown: dict[Var, Var] = {}

    def reads(self, atom: Atom) -> bool:
        """Reads an array; False if what it stands for has been overwritten."""
        assert isinstance(atom, Var)
        content = self.shown.get(atom, atom)
        buffer = self.buffer.setdefault(atom, content)
        return self.present.setdefault(buffer, content) is content

    def views(self, new: Var, old: Atom) -> bool:
        """`new` is a view of `old`; False if that is overwritten already."""
        if not self.reads(old):
            return False
        assert isinstance(old, Var)
        self.buffer[new] = self.buffer[old]
        self.shown[new] = self.shown.get(old, old)
        return True

    def becomes(self, new: Var, old: Atom) -> bool:
        """`new` takes over the buffer of `old`; False if that is overwritten already."""
        if not self.reads(old):
            return False
        assert isinstance(old, Var)
        self.buffer[new] = self.buffer[old]
        self.present[self.buffer[old]] = new
        return True

    def run(self, lets: Sequence[Let], results: Iterable[Atom]) -> bool:
        """Runs Lets of a block."""
        for let in lets:
            rhs = let.rhs
            match rhs:
                case OpCall():
                    fine = self._op(let, rhs)
                case If():
                    fine = self._if(let, rhs)
                case Loop():
                    fine = self._loop(let, rhs)
                case _:
                    fine = False
            if not fine:
                return False
        return all(self.reads(a) for a in results if is_array(a))

    def _op(self, let: Let, call: OpCall) -> bool:
        args = call.args
        if let.outs and is_array(let.outs[0]):
            takes = self.views if places.is_view(call) else self.becomes
            return takes(let.outs[0], args[0])
        return all(self.reads(a) for a in args if is_array(a))

    def _if(self, let: Let, rhs: If) -> bool:
        before = dict(self.present)
        for out_of in (rhs.then, rhs.orelse):
            self.present = dict(before)
            if not self.run(out_of.lets, out_of.results):
                return False
        for out, a, b in zip(let.outs, rhs.then.results, rhs.orelse.results, strict=True):
            if not is_array(out):
                continue
            assert isinstance(a, Var)
            assert isinstance(b, Var)
            if self.buffer[a] is not self.buffer[b]:
                return False
        after = {self.buffer[a] for a in rhs.then.results if is_array(a) and isinstance(a, Var)}
        if len(after) != sum(map(is_array, let.outs)):
            return False
        # A buffer that an arm has updated must be handed on, or nobody knows what it holds.
        for arm_lets in (rhs.then, rhs.orelse):
            for buffer in self._updated(arm_lets):
                if buffer not in after:
                    return False
        self.present = before
        for out, a in zip(let.outs, rhs.then.results, strict=True):
            if is_array(out):
                assert isinstance(a, Var)
                self.buffer[out] = self.buffer[a]
                self.present[self.buffer[a]] = out
        return True

    def _loop(self, let: Let, rhs: Loop) -> bool:
        carried = [k for k, v in enumerate(rhs.carried) if is_array(v)]
        if any(not self.becomes(rhs.carried[k], rhs.init[k]) for k in carried):
            return False
        buffers = [self.buffer[rhs.carried[k]] for k in carried]
        if len(set(buffers)) != len(buffers):
            return False
        if rhs.test is not None and not self.run(rhs.test.lets, rhs.test.results):
            return False
        if any(map(is_array, rhs.handed)):
            return False
        results = rhs.body.results[1:] if rhs.exits else rhs.body.results
        if not self.run(rhs.body.lets, results):
            return False
        for k, buffer in zip(carried, buffers, strict=True):
            result = results[k]
            if not isinstance(result, Var) or self.buffer[result] is not buffer:
                return False
            self.buffer[let.outs[k]] = buffer
            self.present[buffer] = let.outs[k]
        inside = set(self._updated(rhs.body))
        if rhs.test is not None:
            inside.update(self._updated(rhs.test))
        return inside.issubset(buffers)

    def _updated(self, block: Block) -> Iterable[Var]:
        for let in walk.nested_lets(block):
            if isinstance(let.rhs, OpCall) and places.updates_element(let.rhs):
                yield self.buffer[let.outs[0]]
