"""Rows of columns made objects again by native code.

In: an llvmlite module. Out: in it, `pyrelay_unpack`: (walk) -> 1 where the nodes at the roots were
made, else 0, with no Python error set; `pyrelay_unpack_all` makes those of many places.

The record and its tables are those of `packing_fields`, filled by `unpacking.py`. Classes are such
that no code of the user's runs: objects are made by `object.__new__`, their fields set as
`object.__setattr__` does. Whatever is below a node is made before it, on a stack of the walk's own;
a node that is met while what is below it is made contains itself, and ends the walk.
"""

from __future__ import annotations

from collections.abc import Callable

from pyrelay.devices.compiler import llvm_ir as ir
from pyrelay.devices.compiler.llvm_writer import DOUBLE, INT32, VOID, Function, Word
from pyrelay.devices.compiler.llvm_writer import WORD as WORD_TYPE
from pyrelay.devices.runtime.packing_fields import (
    LIST_ITEMS,
    READINGS,
    SORTS,
    STACK_WORDS,
    WORD,
    Arrays,
    Column,
    Field,
    Group,
    Kind,
    Nodes,
    Sort,
    Walk,
)
from pyrelay.devices.runtime.packing_rows import STACK_ENTRY, Rows
from pyrelay.devices.runtime.texts_native import text_making

_TUPLE_ITEMS = tuple.__basicsize__
_BEGUN, _MADE = 1, 2  # 0 before


class Unpacking:
    """Writes the walk and its parts. Values are new references, 0 where there is none."""

    def __init__(self, module: ir.Module, rows: Rows) -> None:
        self.module, self.rows = module, rows
        self.state = self._state()
        self.object = self._object()
        self.text = text_making(module, "pyrelay_unpacking_text")
        self.value = self._function("value", 3)
        self.sequence = self._sequence()
        self._write_value()
        self.visit = self._visit()
        self.make = self._make()
        self.unpack = self._unpack()
        self._unpack_all()

    def _function(self, name: str, parameters: int) -> Function:
        return Function(self.module, f"pyrelay_unpacking_{name}", parameters)

    # -- nodes

    def _nodes(self, f: Function, walk: Word, kind: Word) -> Word:
        return f.load(walk, Walk.LISTS) + kind * (Nodes.WORDS * WORD)

    def _state(self) -> Function:
        """(walk, kind, row): the address of a new node's state, 0 for rows that there are not."""
        f = self._function("state", 3)
        walk, kind, row = f.parameters
        self.rows.refuse(f, (kind < 1) | (kind >= f.load(walk, Walk.KIND_COUNT)))
        nodes = self._nodes(f, walk, kind)
        place = row - f.load(nodes, Nodes.KNOWN_COUNT)
        count = f.load(nodes, Nodes.COUNT)
        self.rows.refuse(f, (place < 0) | (place >= count))
        f.ret(f.load(nodes, Nodes.STATES) + place)
        return f

    def _object(self) -> Function:
        """(walk, kind, row): the node there, borrowed, 0 where it is not made."""
        f = self._function("object", 3)
        walk, kind, row = f.parameters
        with f.when(kind.equals(0)):
            f.ret(f.load(walk, Walk.NONE))
        self.rows.refuse(f, (kind < 0) | (kind >= f.load(walk, Walk.KIND_COUNT)) | (row < 0))
        nodes = self._nodes(f, walk, kind)
        known = f.load(nodes, Nodes.KNOWN_COUNT)
        with f.when(row < known):
            f.ret(f.load(f.load(f.load(nodes, Nodes.KNOWN), LIST_ITEMS) + (row << 3)))
        state = f.call(self.state, walk, kind, row)
        self.rows.refuse(f, state.equals(0))
        self.rows.refuse(f, f.load_narrow(state, 8, False).differs(_MADE))
        f.ret(f.load(f.load(f.load(nodes, Nodes.LIST), LIST_ITEMS) + ((row - known) << 3)))
        return f

    def _place(self, f: Function, walk: Word, sort: Word, row: Word) -> tuple[Word, Word]:
        """The kind and the row that a child's columns have in a row."""
        column = f.load(sort, Sort.A)
        kind, own = (self.rows.cell(f, walk, column + k, row) for k in range(2))
        return f.load(kind), f.load(own)

    def _range(self, f: Function, walk: Word, sort: Word, row: Word) -> tuple[Word, Word]:
        """Where the items of a sequence begin, and how many there are; refuses what is not there.
        """
        column = f.load(sort, Sort.A)
        start, count = (f.load(self.rows.cell(f, walk, column + k, row)) for k in range(2))
        there = f.load(self.rows.group(f, walk, f.load(sort, Sort.C)), Group.COUNT)
        self.rows.refuse(f, (start < 0) | (count < 0) | (start + count > there))
        return start, count

    def _case(self, f: Function, walk: Word, sort: Word, row: Word) -> Word:
        """The sort of the case that a row holds."""
        case = f.load(self.rows.cell(f, walk, f.load(sort, Sort.A), row))
        self.rows.refuse(f, (case < 0) | (case >= f.load(sort, Sort.C)))
        return f.load(sort, Sort.B) + case * (Sort.WORDS * WORD)

    # -- values

    def _shared(self, f: Function, value: Word) -> Word:
        f.c("Py_IncRef", value, returns=VOID)
        return value

    def _float(self, f: Function, name: str, *words: Word) -> Word:
        native = f.symbol(name, [DOUBLE] * len(words), WORD_TYPE)
        return Word(f, f.b.call(native, [word.double() for word in words]))

    def _sequence(self) -> Function:
        """(walk, sort, start, count, is a tuple, step in sorts): a list or tuple of values, of rows
        that follow each other or, with a step, of sorts in one row."""
        f = self._function("sequence", 6)
        walk, sort, start, count, is_tuple, step = f.parameters
        made = f.variable(0)
        with f.either(is_tuple.differs(0)) as (yes, no):
            with yes:
                made.set(f.c("PyTuple_New", count))
            with no:
                made.set(f.c("PyList_New", count))
        self.rows.refuse(f, made.now.equals(0))
        items = f.variable(made.now + _TUPLE_ITEMS)
        with f.when(is_tuple.equals(0) & count.differs(0)):
            items.set(f.load(made.now, LIST_ITEMS))
        own, row = f.variable(sort), f.variable(start)
        with f.counting(count) as index:
            value = f.call(self.value, walk, own.now, row.now)
            with f.when(value.equals(0), likely=False):
                f.c("Py_DecRef", made.now, returns=VOID)
                f.ret(0)
            f.store(items.now + (index << 3), 0, value)
            own.set(own.now + step * (Sort.WORDS * WORD))
            row.set(row.now + step.equals(0).word())
        f.ret(made.now)
        return f

    def _write_value(self) -> None:
        """(walk, sort, row): the value of a field."""
        f = self.value
        walk, sort, row = f.parameters

        def cell(size: int) -> Word:
            column = self.rows.column(f, walk, f.load(sort, Sort.A))
            return f.load(column, Column.DATA) + row * size

        def boolean() -> None:
            false, true = (f.load(walk, place) for place in (Walk.FALSE, Walk.TRUE))
            chosen = f.load_narrow(cell(1), 8, False).differs(0).choose(true, false)
            f.ret(self._shared(f, chosen))

        def scalar(size: int) -> Callable[[], None]:
            def write() -> None:
                made = f.load(walk, Walk.NEW_SCALAR)
                f.ret(f.call_address(made, cell(size), f.load(sort, Sort.C), 0))
            return write

        def child() -> None:
            found = f.call(self.object, walk, *self._place(f, walk, sort, row))
            self.rows.refuse(f, found.equals(0))
            f.ret(self._shared(f, found))

        def items() -> None:
            start, count = self._range(f, walk, sort, row)
            is_tuple = f.load(sort, Sort.B).equals(f.load(walk, Walk.TUPLE)).word()
            inner = f.load(sort, Sort.D)
            f.ret(f.call(self.sequence, walk, inner, start, count, is_tuple, 0))

        def text() -> None:
            found = f.load(walk, Walk.ARRAYS) + f.load(sort, Sort.A) * (Arrays.WORDS * WORD)
            width = f.load(found, Arrays.WIDTH)
            own = f.load(found, Arrays.ROWS) + ((row * width) << 3)
            count = f.load(own)
            self.rows.refuse(f, (count < 0) | (count >= width))
            f.ret(f.call(self.text, own + WORD, count))

        self.rows.cases(f, f.load(sort, Sort.KIND), {
            "int": lambda: f.ret(f.c("PyLong_FromLongLong", f.load(cell(8)))),
            "float": lambda: f.ret(self._float(f, "PyFloat_FromDouble", f.load(cell(8)))),
            "bool": boolean,
            "complex": lambda: f.ret(self._float(
                f, "PyComplex_FromDoubles", f.load(cell(16)), f.load(cell(16), WORD)
            )),
            "raw8": scalar(1), "raw16": scalar(2), "raw32": scalar(4), "raw64": scalar(8),
            "pair": scalar(16),
            "constant": lambda: f.ret(self._shared(f, f.load(sort, Sort.A))),
            "child": child, "items": items, "text": text,
            "struct": lambda: f.ret(f.call(
                self.sequence, walk, f.load(sort, Sort.A), row, f.load(sort, Sort.B), 1, 1
            )),
            "choice": lambda: f.ret(f.call(f, walk, self._case(f, walk, sort, row), row)),
        }, SORTS)  # fmt: skip

    def _visit(self) -> Function:
        """(walk, sort, row): push the nodes of a field that are not made yet; 0 where that fails.
        """
        f = self._function("visit", 3)
        walk, sort, row = f.parameters

        def child() -> None:
            kind, own = self._place(f, walk, sort, row)
            made = f.call(self.object, walk, kind, own)
            with f.when(made.differs(0)):
                f.ret(1)
            f.ret(f.call(self.rows.push, walk, kind, own, 0))

        def items() -> None:
            start, count = self._range(f, walk, sort, row)
            with f.counting(count) as index:
                done = f.call(f, walk, f.load(sort, Sort.D), start + index)
                self.rows.refuse(f, done.equals(0))

        def struct() -> None:
            part = f.variable(f.load(sort, Sort.A))
            with f.counting(f.load(sort, Sort.B)):
                self.rows.refuse(f, f.call(f, walk, part.now, row).equals(0))
                part.set(part.now + Sort.WORDS * WORD)

        others = ("int", "float", "bool", "complex", "pair", "constant", "text")
        self.rows.cases(f, f.load(sort, Sort.KIND), {
            **{name: lambda: f.ret(1) for name in (*others, "raw8", "raw16", "raw32", "raw64")},
            "child": child, "items": items, "struct": struct,
            "choice": lambda: f.ret(f.call(f, walk, self._case(f, walk, sort, row), row)),
        }, SORTS)  # fmt: skip
        return f

    def _make(self) -> Function:
        """(walk, kind, row): 1 where the node was made and entered among those of its kind."""
        f = self._function("make", 3)
        walk, kind, row = f.parameters
        entry = f.load(walk, Walk.KINDS) + kind * (Kind.WORDS * WORD)
        first, count = f.load(entry, Kind.FIRST), f.load(entry, Kind.COUNT)
        made = f.variable(0)
        reading = f.load(entry, Kind.READING)
        is_tuple, is_dict, is_list = (
            reading.equals(READINGS.index(name)) for name in ("items", "row", "list")
        )
        with f.when(is_tuple):
            made.set(f.c("PyTuple_New", count))
        with f.when(is_dict):
            made.set(f.c("PyDict_New"))
        with f.when(is_list):
            made.set(f.c("PyList_New", count))
        with f.when(~(is_tuple | is_dict | is_list)):
            cls = f.load(entry, Kind.CLASS)
            made.set(f.c("PyObject_CallOneArg", f.load(walk, Walk.NEW_OBJECT), cls))
        self.rows.give_up(f, made.now.equals(0).word())
        node = made.now
        items = f.variable(node + _TUPLE_ITEMS)
        with f.when(is_list):
            items.set(f.load(node, LIST_ITEMS))
        field = f.variable(first)
        with f.counting(count) as index:
            value = f.call(self.value, walk, f.load(field.now, Field.SORT), row)
            failed = f.variable(1)
            with f.when(value.differs(0)), f.either(is_tuple | is_list) as (in_place, others):
                with in_place:
                    f.store(items.now + (index << 3), 0, value)
                    failed.set(0)
                with others:
                    name = f.load(field.now, Field.NAME)
                    for kind_of, write in (
                        (is_dict, "PyDict_SetItem"), (~is_dict, "PyObject_GenericSetAttr")
                    ):
                        with f.when(kind_of):
                            failed.set(f.c(write, node, name, value, returns=INT32))
                    f.c("Py_DecRef", value, returns=VOID)
            with f.when(failed.now.differs(0), likely=False):
                f.c("Py_DecRef", node, returns=VOID)
                f.c("PyErr_Clear", returns=VOID)
                f.ret(0)
            field.set(field.now + Field.WORDS * WORD)
        nodes = self._nodes(f, walk, kind)
        place = row - f.load(nodes, Nodes.KNOWN_COUNT)
        f.do("PyList_SetItem", f.load(nodes, Nodes.LIST), place, node)
        f.store_narrow(f.load(nodes, Nodes.STATES) + place, 8, f.number(_MADE))
        f.ret(1)
        return f

    def _unpack(self) -> Function:
        """(walk): make the node whose kind and row are the words of the roots, and all below it."""
        f = Function(self.module, "pyrelay_unpack", 1)
        (walk,) = f.parameters
        with f.when(f.load(walk, Walk.STACK).equals(0)):
            size = f.load(walk, Walk.STACK_SIZE) * STACK_ENTRY
            data = f.call(self.rows.enlarge, f.load(walk, Walk.STACK_OWNER), 0, size)
            self.rows.refuse(f, data.equals(0))
            f.store(walk, Walk.STACK, data)
        f.store(walk, Walk.DEPTH, 0)
        root = (f.load(walk, place) for place in (Walk.ROOTS, Walk.ROOT_COUNT))
        self.rows.refuse(f, f.call(self.rows.push, walk, *root, 0).equals(0))
        with f.while_(lambda: f.load(walk, Walk.DEPTH).differs(0)):
            depth = f.load(walk, Walk.DEPTH) - 1
            entry = f.load(walk, Walk.STACK) + depth * STACK_ENTRY
            kind, row = (f.load(entry, k * WORD) for k in range(STACK_WORDS - 1))
            state = f.call(self.state, walk, kind, row)
            self.rows.refuse(f, state.equals(0))
            now = f.load_narrow(state, 8, False)
            with f.either(f.load(entry, 2 * WORD).differs(0)) as (ready, met):
                with ready:
                    f.store(walk, Walk.DEPTH, depth)
                    self.rows.refuse(f, f.call(self.make, walk, kind, row).equals(0))
                with met:
                    self.rows.refuse(f, now.equals(_BEGUN))
                    with f.either(now.equals(_MADE)) as (done, new):
                        with done:
                            f.store(walk, Walk.DEPTH, depth)
                        with new:
                            f.store(entry, 2 * WORD, 1)
                            f.store_narrow(state, 8, f.number(_BEGUN))
                            self._visit_all(f, walk, kind, row)
        f.ret(1)
        return f

    def _unpack_all(self) -> None:
        """(walk, kinds, rows, count, list): 1 where the list has the nodes of so many places."""
        f = Function(self.module, "pyrelay_unpack_all", 5)
        walk, kinds, rows, count, into = f.parameters
        with f.counting(count) as index:
            place = f.load(kinds + (index << 3)), f.load(rows + (index << 3))
            with f.when(f.call(self.object, walk, *place).equals(0)):
                f.store(walk, Walk.ROOTS, place[0])
                f.store(walk, Walk.ROOT_COUNT, place[1])
                self.rows.refuse(f, f.call(self.unpack, walk).equals(0))
            node = self._shared(f, f.call(self.object, walk, *place))
            f.do("PyList_SetItem", into, index, node)
        f.ret(1)

    def _visit_all(self, f: Function, walk: Word, kind: Word, row: Word) -> None:
        table = f.load(walk, Walk.KINDS) + kind * (Kind.WORDS * WORD)
        field = f.variable(f.load(table, Kind.FIRST))
        with f.counting(f.load(table, Kind.COUNT)):
            done = f.call(self.visit, walk, f.load(field.now, Field.SORT), row)
            self.rows.refuse(f, done.equals(0))
            field.set(field.now + Field.WORDS * WORD)
