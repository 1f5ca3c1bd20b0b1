"""Fields of nodes that are assigned: `node.name = value`, also those that no `__init__` assigned.

In: a node in a growing pool, and the value. Out: the row of the pool has it. A field that a class
gets behind its `__init__` is UNSET in the nodes that do not have it yet (flow/unset.py).
"""

from __future__ import annotations

from pyrelay import errors
from pyrelay.infer import values as V
from pyrelay.infer.containers import found_items
from pyrelay.infer.interpreter import Interpreter
from pyrelay.infer.nodes import trees
from pyrelay.infer.nodes.annotations import expected_fields, is_record_class
from pyrelay.infer.nodes.anonymous import refuse_deeper_fields
from pyrelay.infer.nodes.building import NodeBuilder
from pyrelay.infer.nodes.constructing import begun
from pyrelay.infer.nodes.datatypes import Array, Constant, Family, Grows, merged
from pyrelay.infer.nodes.plans import NeedsPool
from pyrelay.infer.nodes.pool_tables import is_growing, table_of
from pyrelay.ir.nodes import UNSET

_UNSET = Constant(UNSET, type(UNSET))
"""What a node has in place of an attribute that it does not have yet."""


def assign(it: Interpreter, node: V.Data, name: str, value: V.Value) -> None:
    """`node.name = value`. Raises NeedsPool if the pool cannot be written or cannot hold it."""
    family = it.program.families.of(node.cls)
    assert family is not None
    value = begun(it, value)
    if not is_growing(it, node.pool):
        if family in it.pools and it.program.plans[family].unified:
            raise it.failure(
                errors.UnsupportedOperationError,
                f"the field {name!r} of this {node.cls.__name__} cannot be assigned, beside nodes "
                "of another tree",
                hints=("pass the trees that are changed as arguments of one call",),
            )
        raise NeedsPool(family, unified=True)
    if node.schema.fields[node.kind] is None:
        raise it.program.lacking.ended()  # nothing is known of its fields yet
    known = node.schema.of(node.kind)
    if name not in known:
        _assign_first(it, family, node, name, value)
        return
    if isinstance(known[name], Array):
        table, leaf = table_of(node.pool.cls, f"{node.kind}.{name}")
        owner = it.content(node.pool.root)[table].root
        if found_items.stands_at(it, value, owner, node.row, leaf):
            return
    if isinstance(known[name], Grows):
        from pyrelay.infer.containers.lists_in_nodes import replace_list

        replace_list(it, node, name, value)
        return
    builder = NodeBuilder(it, family, node.pool, node.cls)
    own = builder.sort_of(value, expected_fields(node.cls).get(name), name)
    joined = builder.joined(((name, known[name]),), ((name, own),))[0][1]
    refuse_deeper_fields(known, ((name, joined),), {name: value})
    if joined != known[name]:
        fields = tuple((n, joined if n == name else s) for n, s in known.items())
        it.program.lacking.note(NeedsPool(family, node.kind, fields))
        return
    it.program.plans[family].assigned.add((node.kind, name))
    leaves: dict[str, V.Value] = {}
    builder.write(known[name], f"{node.kind}.{name}", value, leaves)
    builder.overwrite(str(node.kind), node.row, leaves)


def _assign_first(
    it: Interpreter, family: Family, node: V.Data, name: str, value: V.Value
) -> None:
    """`node.name = value`, of an attribute that no node has had when it was made, and none of the
    caller's has: each is without it, UNSET, at first. Raises AttributeMissingError where there can
    be none."""
    slots = not node.cls.__dictoffset__ and not hasattr(node.cls, name)
    if slots or not is_record_class(node.cls):
        raise trees.missing(it, node, name)
    sort = NodeBuilder(it, family, node.pool, node.cls).sort_of(
        value, expected_fields(node.cls).get(name), name
    )
    fields = (*node.schema.of(node.kind).items(), (name, merged(_UNSET, sort)))
    it.program.lacking.note(NeedsPool(family, node.kind, fields))
