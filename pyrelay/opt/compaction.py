"""Where flags are true, by running counts.

In: a module with the op `true_places`. Out: the module with a scan and a scatter in its place, for
devices whose threads share those: one thread by itself would go through all flags (Blelloch,
Prefix Sums and Their Applications, 1990, section 1.4).
"""

from __future__ import annotations

from pyrelay.ir import dims
from pyrelay.ir.build import Builder
from pyrelay.ir.nodes import Let, Module, OpCall
from pyrelay.ir.op import OPS
from pyrelay.ir.types import i64
from pyrelay.opt.elements import integer
from pyrelay.opt.rewrite import Replacement, Scope, rewrite_module


def compaction(module: Module) -> Module:
    """The module without the op `true_places`."""
    return rewrite_module(module, _rule)


def _rule(let: Let, builder: Builder, scope: Scope) -> Replacement:
    rhs = let.rhs
    if not isinstance(rhs, OpCall) or rhs.op.name != "true_places":
        return None
    flags, size = builder.handle(rhs.args[0]), rhs.attrs["size"]
    (length,) = flags.shape
    ones = builder.handle(builder.cast(flags, i64))
    running = builder.call(OPS["cumsum"], ones, axis=0, reverse=False)
    # The k-th true element goes to place k, all others to one place behind, which is cut off.
    beyond = integer(builder, builder.extent(size))
    places = builder.call(OPS["where"], flags, running - 1, beyond)
    room = builder.full(0, (dims.add(size, 1),), i64)
    every = builder.call(OPS["iota"], size=length, dtype=i64)
    spread = builder.call(OPS["scatter_update"], room, every, places, axes=(0,))
    cut = builder.call(OPS["slice"], spread, starts=(0,), sizes=(size,), steps=(1,))
    return (cut.atom,)
