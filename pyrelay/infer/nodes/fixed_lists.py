"""Lists of known length: values on the heap, or nodes with a field for each item.

In: items. Out: a list of the program, or, where the expression at hand makes lists that are items
of others (`Program.keyed`), a node (in_python/fixed_lists.py).
"""

from __future__ import annotations

from collections.abc import Sequence

from pyrelay.infer import values as V
from pyrelay.infer.in_python.fixed_lists import fixed_class, is_fixed
from pyrelay.infer.in_python.nested_lists import NestedList
from pyrelay.infer.interpreter import Interpreter


def new_list(it: Interpreter, items: Sequence[V.Value]) -> V.Value:
    """The list that the expression at hand makes."""
    from pyrelay.infer.calls import call

    if it.let is None or it.let in it.program.nested:
        made = it.new_ref("list", items)
        return made if it.let is None else call(it, V.Known(NestedList), (made,), {})
    if not items or it.let not in it.program.keyed:
        made = it.new_ref("list", items)
        made.root.made = it.let
        return made
    from pyrelay.infer.nodes.building import build

    families = it.program.families
    site = families.sites.setdefault(it.let, len(families.sites) + 1)
    cls = fixed_class(len(items), site)
    if families.of(cls) is None:  # all such lists of a program are of one data type
        families.declare([*filter(is_fixed, families.entered), cls])
    return build(it, cls, {f"_{k}": value for k, value in enumerate(items)})
