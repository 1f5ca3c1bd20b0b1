"""Arrays that inner loops fill for one row of an outer array are that row."""

from __future__ import annotations

import numpy as np
from passes import after, assert_same_runs, lets, ops

from pyrelay.ir.nodes import Module, OpCall
from pyrelay.ir.text import read
from pyrelay.opt.rows import rows

NEST = """
def @main[n, m](x: f64[n, m]) -> (f64[n, m], f64[]) {{
  v0: int = extent(size=n)
  v1: int = extent(size=m)
  v2: f64[n, m] = undef(type=f64[n, m])
  v3: f64[n, m], v4: f64[] = loop (r: f64[n, m] = v2, s: f64[] = f64(0.0)) index i: int count v0 {{
    v5: f64[m] = undef(type=f64[m])
    v6: f64[m], v7: f64[] = loop (q: f64[m] = v5, t: f64[] = s) index j: int count v1 {{
      v8: f64[] = index(x, i, j, axes=(0, 1))
      v9: f64[] = add(t, v8)
      {inside}
      v10: f64[m] = index_update(q, v8, j, axes=(0,))
      next v10, {sum}
    }}
    {between}
    v11: f64[n, m] = index_update({base}, v6, i, axes=(0,))
    {behind}
    next v11, {total}
  }}
  return v3, v4
}}
"""
PLAIN = {"inside": "", "sum": "v9", "between": "", "base": "r", "behind": "", "total": "v7"}


def _module(**changes: str) -> Module:
    return read(NEST.format(**{**PLAIN, **changes}))


def _after(before: Module) -> Module:
    module = after(before, rows)
    assert_same_runs(before, module, (np.arange(6.0).reshape(2, 3),))
    return module


def _axes(module: Module) -> list[tuple[int, ...]]:
    calls = [let.rhs for let in lets(module) if isinstance(let.rhs, OpCall)]
    return [call.attrs["axes"] for call in calls if call.op.name == "index_update"]


def test_the_row_is_filled_where_it_lies() -> None:
    module = _after(_module())
    assert _axes(module) == [(0, 1)]
    assert ops(module)["undef"] == 1


def test_a_row_that_is_read_beside_the_store_keeps_its_memory() -> None:
    within = {"inside": "v12: f64[] = index(q, 0, axes=(0,))\n v13: f64[] = add(v9, v12)"}
    behind = {"behind": "v12: f64[] = index(v6, 0, axes=(0,))\n v13: f64[] = add(v7, v12)"}
    for module in (_module(**within), _module(**behind, total="v13")):
        assert _axes(_after(module)) == [(0,), (0,)]


def test_an_array_that_is_read_while_its_row_is_filled_is_not_written_early() -> None:
    reading = {"between": "v12: f64[] = index(r, 0, 0, axes=(0, 1))\n v13: f64[] = add(v7, v12)"}
    module = _module(**reading, total="v13")
    assert after(module, rows) is module


def test_a_module_without_rows_is_given_back() -> None:
    module = _module()
    done = rows(module)
    assert rows(done) is done
