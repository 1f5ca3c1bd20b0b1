"""`zip(*rows)` of rows whose number only the running program knows.

In: what the star spreads. Out: the iterator over the columns. Of tuples of a known length these are
a tuple, one of two cases: where there are no rows, there are no columns.
"""

from __future__ import annotations

from pyrelay.infer import layout as L
from pyrelay.infer import values as V
from pyrelay.infer.containers import lists
from pyrelay.infer.containers.starred import is_open
from pyrelay.infer.in_python import lists as in_python
from pyrelay.infer.interpreter import Interpreter
from pyrelay.ir import types
from pyrelay.ir.op import OPS


def columns(it: Interpreter, rows: V.Value) -> V.Ref | None:
    """The iterator that `zip(*rows)` is; None if it can be known how many rows there are."""
    from pyrelay.infer.calls import call
    from pyrelay.infer.flow.generators import iterator

    if not is_open(it, rows):
        return None
    content = lists.growing_content(it, rows)
    if content is not None and isinstance(content.template, L.LUnion):
        rows = call(it, V.Known(in_python.tuples), (rows,), {})
        content = lists.growing_content(it, rows)
    match content and content.template:
        case L.LNode(("tuple", *_), items):
            assert content is not None
            found = V.Tuple(tuple(
                call(it, V.Known(in_python.column), (rows, V.Known(k)), {})
                for k in range(len(items))
            ))
            any_row = it.builder.call(OPS["greater"], lists.count_of(it, content), 0)
            tag = it.builder.cast(any_row.atom, types.i64, weak=True)
            turned: V.Value = V.Union(tag, (V.Tuple(()), found))
        case _:
            turned = call(it, V.Known(in_python.columns), (rows,), {})
    return iterator(it, turned)
