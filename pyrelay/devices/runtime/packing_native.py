"""Trees of Python objects collected into columns by native code.

In: an llvmlite module. Out: in it, `pyrelay_pack`: (walk) -> 1 where everything fitted, else 0.

The walk and its tables are records of `packing_fields`, which Python fills for a schema and a call
(`packing.py`). Objects are compared with what the tables expect, by the addresses of their classes,
and read where CPython keeps their fields: nothing is called that may run Python code, so nothing
changes while the walk lasts, and whoever calls holds the interpreter's lock. All memory is
Python's: columns, stack and table are bytearrays that are made larger, nodes are appended to lists.
What is unlike what the tables say ends the walk.

A node to which there is a single reference is met once. Others are looked up in a table, where they
stand before what is below them is gone through: links back to a parent are like any others. Trees
of any depth: nodes wait on a stack of the walk's own.
"""

from __future__ import annotations

from collections.abc import Callable

from pyrelay.devices.compiler import llvm_ir as ir
from pyrelay.devices.compiler.llvm_writer import INT32, VOID, Function, Word
from pyrelay.devices.runtime.packing_fields import (
    ARRAY_DESCR,
    ARRAY_EXTENTS,
    ARRAY_FLAGS,
    ARRAY_NDIM,
    COUNT,
    INSTANCE_DICT,
    INSTANCE_VALUES,
    INT_DIGITS,
    INT_SIZE,
    LIST_ITEMS,
    OBJECT_CLASS,
    READABLE,
    READINGS,
    REFERENCES,
    ROW,
    SORTS,
    STACK_WORDS,
    TABLE_WORDS,
    VALUE,
    VALUES_COUNT,
    WORD,
    Arrays,
    Column,
    Field,
    Group,
    Kind,
    Sort,
    Walk,
)
from pyrelay.devices.runtime.packing_rows import STACK_ENTRY, Rows
from pyrelay.infer.nodes.instances import CLASS_KEYS

_RAW = {"raw8": 8, "raw16": 16, "raw32": 32, "raw64": 64}
_TUPLE_ITEMS = tuple.__basicsize__


class Packing(Rows):
    """Writes the walk and its parts, which give 0 where something is unlike the tables."""

    def __init__(self, module: ir.Module) -> None:
        super().__init__(module)
        self.fits = self._fits()
        self.number = self._number().expanded()
        self.array = self._array()
        self.text = self._text()
        self.put = self.function("put", 5)
        self.items = self._items()
        self._write_put()
        self.named = self._named()
        self.fill = self._fill().expanded()
        self.arrive = self._arrive()
        self.pack = self._pack()

    # -- values

    def _fits(self) -> Function:
        """(walk, sort, object): 1 where an object is of this sort, as far as its class tells."""
        f = self.function("fits", 3)
        walk, sort, value = f.parameters
        cls = f.load(value, OBJECT_CLASS)

        def of_class() -> None:
            f.ret(cls.equals(f.load(sort, Sort.B)).word())

        def child() -> None:
            kind = f.call(self.kind_of, walk, value)
            self.refuse(f, kind < 0)
            f.ret((f.load(sort, Sort.B) >> kind) & 1)

        def array() -> None:
            ndim = f.load_narrow(value + ARRAY_NDIM, 32, True)
            self.refuse(f, cls.differs(f.load(sort, Sort.D)))
            self.refuse(f, f.load(value, ARRAY_DESCR).differs(f.load(sort, Sort.B)))
            f.ret(ndim.equals(f.load(sort, Sort.C)).word())

        def struct() -> None:
            self.refuse(f, cls.differs(f.load(sort, Sort.C)))
            self.refuse(f, f.load(value, COUNT).differs(f.load(sort, Sort.B)))
            part = f.variable(f.load(sort, Sort.A))
            with f.counting(f.load(sort, Sort.B)) as index:
                item = f.load(value + _TUPLE_ITEMS + (index << 3))
                self.refuse(f, f.call(f, walk, part.now, item).equals(0))
                part.set(part.now + Sort.WORDS * WORD)

        def choice() -> None:
            case = f.variable(f.load(sort, Sort.B))
            with f.counting(f.load(sort, Sort.C)):
                with f.when(f.call(f, walk, case.now, value).differs(0)):
                    f.ret(1)
                case.set(case.now + Sort.WORDS * WORD)
            f.ret(0)

        self.cases(f, f.load(sort, Sort.KIND), {
            **dict.fromkeys(("int", "float", "bool", "complex", "pair", "text", *_RAW), of_class),
            "constant": lambda: f.ret(self._is_constant(f, walk, sort, value)),
            "child": child, "items": of_class, "struct": struct, "choice": choice, "array": array,
        }, SORTS)  # fmt: skip
        return f

    def _is_constant(self, f: Function, walk: Word, sort: Word, value: Word) -> Word:
        """1 for the very object, and for a text of the same characters."""
        known = f.load(sort, Sort.A)
        with f.when(value.equals(known)):
            f.ret(1)
        text = f.load(walk, Walk.TEXT)
        self.refuse(f, f.load(value, OBJECT_CLASS).differs(text))
        self.refuse(f, f.load(known, OBJECT_CLASS).differs(text))
        return f.c("PyUnicode_Compare", value, known, returns=INT32).equals(0).word()

    def _number(self) -> Function:
        """(walk, sort, object, row): 1 where a number was written into its column."""
        f = self.function("number", 4)
        walk, sort, value, row = f.parameters
        cls = f.load(value, OBJECT_CLASS)
        column = self.column(f, walk, f.load(sort, Sort.A))
        data = f.load(column, Column.DATA)
        self.refuse(f, cls.differs(f.load(sort, Sort.B)))

        def as_int() -> None:
            size = f.load(value, INT_SIZE)
            with f.when((size + 1).unsigned_below(3), likely=True):
                digit = f.load_narrow(value + INT_DIGITS, 32, False)
                f.store(data + (row << 3), 0, digit * size)
                f.ret(1)
            overflow = f.address(f.local_words(1))
            f.store(overflow, 0, 0)
            found = f.c("PyLong_AsLongLongAndOverflow", value, overflow)
            self.refuse(f, (f.load(overflow) & 0xFFFFFFFF).differs(0))
            f.store(data + (row << 3), 0, found)

        def as_float() -> None:
            f.store(data + (row << 3), 0, f.load(value, VALUE))

        def narrow(bits: int) -> Callable[[], None]:
            def write() -> None:
                place = data + row * (bits // 8)
                f.store_narrow(place, bits, f.load_narrow(value + VALUE, bits, False))
            return write

        def as_bool() -> None:
            f.store_narrow(data + row, 8, value.equals(f.load(walk, Walk.TRUE)).word())

        def pair() -> None:
            f.store(data + (row << 4), 0, f.load(value, VALUE))
            f.store(data + (row << 4), WORD, f.load(value, VALUE + WORD))

        self.cases(f, f.load(sort, Sort.KIND), {
            "int": as_int, "float": as_float, "bool": as_bool, "complex": pair, "pair": pair,
            **{name: narrow(bits) for name, bits in _RAW.items()},
        }, SORTS)  # fmt: skip
        return f

    def _array(self) -> Function:
        """(walk, sort, object, row): 1 where an array was taken, of the extents of the others."""
        f = self.function("array", 4)
        walk, sort, value, row = f.parameters
        flags = f.load_narrow(value + ARRAY_FLAGS, 32, False)
        self.refuse(f, f.call(self.fits, walk, sort, value).equals(0))
        self.refuse(f, (flags & READABLE).differs(READABLE))
        found = f.load(walk, Walk.ARRAYS) + f.load(sort, Sort.A) * (Arrays.WORDS * WORD)
        shape, known = f.load(value, ARRAY_EXTENTS), f.load(found, Arrays.KNOWN)
        with f.counting(f.load(sort, Sort.C)) as axis:
            extent = f.load(shape + (axis << 3))
            place = found + Arrays.EXTENTS + (axis << 3)
            with f.when(known.differs(0)):
                self.refuse(f, extent.differs(f.load(place)))
            # an axis of extent 1 is one in all trees of the schema, and no other is
            first = f.load(place)
            with f.when(known.equals(0)):
                self.refuse(f, extent.equals(1).word().differs(first.equals(1).word()))
                f.store(place, 0, extent)
        f.store(found, Arrays.KNOWN, 1)
        self._collect(f, walk, found, value, row)
        return f

    def _text(self) -> Function:
        """(walk, sort, object, row): 1 where a text was taken."""
        f = self.function("text", 4)
        walk, sort, value, row = f.parameters
        self.refuse(f, f.load(value, OBJECT_CLASS).differs(f.load(sort, Sort.B)))
        found = f.load(walk, Walk.ARRAYS) + f.load(sort, Sort.A) * (Arrays.WORDS * WORD)
        self._collect(f, walk, found, value, row)
        return f

    def _collect(self, f: Function, walk: Word, found: Word, value: Word, row: Word) -> None:
        """Put an object into the list of those of a field, at its row."""
        objects = f.load(found, Arrays.LIST)
        with f.when(row < f.load(objects, COUNT), likely=True):
            self.replace(f, f.load(objects, LIST_ITEMS) + (row << 3), value)
            f.ret(1)
        with f.while_(lambda: f.load(objects, COUNT) <= row):
            failed = f.c("PyList_Append", objects, f.load(walk, Walk.NONE), returns=INT32)
            self.give_up(f, failed)
        f.c("Py_IncRef", value, returns=VOID)
        f.do("PyList_SetItem", objects, row, value)
        f.ret(1)

    def _items(self) -> Function:
        """(walk, sort, object, row, shared): 1 where a list or tuple of any length was written."""
        f = self.function("items", 5)
        walk, sort, value, row, shared = f.parameters
        cls = f.load(sort, Sort.B)
        self.refuse(f, f.load(value, OBJECT_CLASS).differs(cls))
        column, group = f.load(sort, Sort.A), self.group(f, walk, f.load(sort, Sort.C))
        count = f.load(value, COUNT)
        f.store(self.cell(f, walk, column, row), 0, f.load(group, Group.COUNT))
        f.store(self.cell(f, walk, column + 1, row), 0, count)
        is_tuple = cls.equals(f.load(walk, Walk.TUPLE))
        items = f.variable(value + _TUPLE_ITEMS)
        with f.when(~is_tuple):
            items.set(f.load(value, LIST_ITEMS))
        several = shared | (f.load(value, REFERENCES) > 1).word()
        first = f.load(group, Group.COUNT)
        with f.counting(count):
            self.refuse(f, f.call(self.new_row, group) < 0)
        inner = f.load(sort, Sort.D)
        with f.counting(count) as index:
            item = f.load(items.now + (index << 3))
            done = f.call(self.put, walk, inner, item, first + index, several)
            self.refuse(f, done.equals(0))
        f.ret(1)
        return f

    def _write_put(self) -> None:
        """(walk, sort, object, row, shared): 1 where an object was written into a row; `shared` is
        not 0 where what holds it may be met again."""
        f = self.put
        walk, sort, value, row, shared = f.parameters

        def child() -> None:
            kind = f.call(self.kind_of, walk, value)
            allowed = (f.load(sort, Sort.B) >> (kind & 63)) & 1
            self.refuse(f, (kind < 0) | allowed.equals(0))
            with f.when(kind.equals(0)):
                f.ret(1)
            column = f.load(sort, Sort.A)
            single = f.load(value, REFERENCES).equals(1) & shared.equals(0)
            with f.when(~single):
                f.ret(f.call(self.push, walk, value, f.number(-1) - column, row))
            own = f.call(self.new_node, walk, kind, value)
            self.refuse(f, own < 0)
            self._write_place(f, walk, column, row, kind, own)
            f.ret(f.call(self.push, walk, value, kind, own))

        def struct() -> None:
            self.refuse(f, f.load(value, OBJECT_CLASS).differs(f.load(sort, Sort.C)))
            self.refuse(f, f.load(value, COUNT).differs(f.load(sort, Sort.B)))
            several = shared | (f.load(value, REFERENCES) > 1).word()
            part = f.variable(f.load(sort, Sort.A))
            with f.counting(f.load(sort, Sort.B)) as index:
                item = f.load(value + _TUPLE_ITEMS + (index << 3))
                done = f.call(f, walk, part.now, item, row, several)
                self.refuse(f, done.equals(0))
                part.set(part.now + Sort.WORDS * WORD)

        def choice() -> None:
            case = f.variable(f.load(sort, Sort.B))
            with f.counting(f.load(sort, Sort.C)) as index:
                with f.when(f.call(self.fits, walk, case.now, value).differs(0)):
                    f.store(self.cell(f, walk, f.load(sort, Sort.A), row), 0, index)
                    f.ret(f.call(f, walk, case.now, value, row, shared))
                case.set(case.now + Sort.WORDS * WORD)
            f.ret(0)

        numbers = dict.fromkeys(
            ("int", "float", "bool", "complex", "pair", *_RAW),
            lambda: f.ret(f.call(self.number, walk, sort, value, row)),
        )
        self.cases(f, f.load(sort, Sort.KIND), {
            **numbers, "child": child, "struct": struct, "choice": choice,
            "constant": lambda: f.ret(self._is_constant(f, walk, sort, value)),
            "items": lambda: f.ret(f.call(self.items, walk, sort, value, row, shared)),
            "array": lambda: f.ret(f.call(self.array, walk, sort, value, row)),
            "text": lambda: f.ret(f.call(self.text, walk, sort, value, row)),
        }, SORTS)  # fmt: skip

    # -- nodes

    def _fill(self) -> Function:
        """(walk, object, kind, row): 1 where all fields of a node were written."""
        f = self.function("fill", 4)
        walk, node, kind, row = f.parameters
        entry = f.load(walk, Walk.KINDS) + kind * (Kind.WORDS * WORD)
        first, count = f.load(entry, Kind.FIRST), f.load(entry, Kind.COUNT)

        def each(place: Callable[[Word], Word]) -> None:
            """Write the fields, each from where its place says."""
            field = f.variable(first)
            with f.counting(count):
                value = f.load(place(f.load(field.now, Field.PLACE)))
                self.refuse(f, value.equals(0))
                done = f.call(self.put, walk, f.load(field.now, Field.SORT), value, row, 0)
                self.refuse(f, done.equals(0))
                field.set(field.now + Field.WORDS * WORD)

        def attributes() -> None:
            values = f.load(node - INSTANCE_VALUES)
            with f.when(values.differs(0)):
                there = f.load_narrow(values - VALUES_COUNT, 8, False)
                self.refuse(f, there.differs(count))
                each(lambda place: values + place)
                f.ret(1)
            own_dict()

        def own_dict() -> None:
            self.refuse(f, f.load(node - INSTANCE_VALUES).differs(0))
            found = f.load(node - INSTANCE_DICT)
            self.refuse(f, found.equals(0))
            self._from_dict(f, walk, found, first, count, row)

        def items() -> None:
            self.refuse(f, f.load(node, COUNT).differs(count))
            each(lambda place: node + place)

        def listed() -> None:
            self.refuse(f, f.load(node, COUNT).differs(count))
            each(lambda place: f.load(node, LIST_ITEMS) + place)

        self.cases(f, f.load(entry, Kind.READING), {
            "attributes": attributes, "dict": own_dict,
            "slots": lambda: each(lambda place: node + place),
            "items": items, "list": listed,
            "row": lambda: self._from_dict(f, walk, node, first, count, row),
        }, READINGS)  # fmt: skip
        return f

    def _from_dict(
        self, f: Function, walk: Word, found: Word, first: Word, count: Word, row: Word
    ) -> None:
        """Write the fields from a dict of as many entries, whose names are the very texts."""
        self.refuse(f, f.c("PyDict_Size", found).differs(count))
        shared = (f.load(found, REFERENCES) > 1).word()
        place, name, value = (f.address(f.local_words(1)) for _ in range(3))
        f.store(place, 0, 0)
        last = first + count * (Field.WORDS * WORD)
        expected = f.variable(last)
        with f.counting(count):
            with f.when(expected.now.equals(last)):
                expected.set(first)
            there = f.c("PyDict_Next", found, place, name, value, returns=INT32)
            self.refuse(f, there.equals(0))
            with f.when(f.load(expected.now, Field.NAME).differs(f.load(name)), likely=False):
                expected.set(f.call(self.named, first, count, f.load(name)))
                self.refuse(f, expected.now.equals(0))
            sort = f.load(expected.now, Field.SORT)
            done = f.call(self.put, walk, sort, f.load(value), row, shared)
            self.refuse(f, done.equals(0))
            expected.set(expected.now + Field.WORDS * WORD)

    def _named(self) -> Function:
        """(fields, count, name): the field of a name, 0 if there is none."""
        f = self.function("named", 3)
        first, count, name = f.parameters
        with f.counting(count) as index:
            field = first + index * (Field.WORDS * WORD)
            with f.when(f.load(field, Field.NAME).equals(name)):
                f.ret(field)
        f.ret(0)
        return f

    def _arrive(self) -> Function:
        """(walk, object, column, row): write where a node is that may be met again; go through it
        the first time."""
        f = self.function("arrive", 4)
        walk, node, column, row = f.parameters
        entry = f.call(self.find, f.load(walk, Walk.TABLE), f.load(walk, Walk.TABLE_SIZE), node)
        code = f.variable(f.load(entry, WORD))
        with f.when(f.load(entry).equals(0)):
            kind = f.call(self.kind_of, walk, node)
            self.refuse(f, kind < 1)
            own = f.call(self.new_node, walk, kind, node)
            self.refuse(f, own < 0)
            code.set(own * ROW + kind)
            self.refuse(f, f.call(self.enter, walk, node, code.now).equals(0))
            self.refuse(f, f.call(self.push, walk, node, kind, own).equals(0))
        self._write_place(f, walk, column, row, code.now & (ROW - 1), code.now >> 16)
        f.ret(1)
        return f

    def _write_place(
        self, f: Function, walk: Word, column: Word, row: Word, kind: Word, own: Word
    ) -> None:
        """Write the kind and the row of a node where it was found."""
        f.store(self.cell(f, walk, column, row), 0, kind)
        f.store(self.cell(f, walk, column + 1, row), 0, own)

    def _pack(self) -> Function:
        """(walk): go through the trees; the places of their roots are the rows of column 0."""
        f = Function(self.module, "pyrelay_pack", 1)
        (walk,) = f.parameters
        self._begin(f, walk)
        roots = f.load(walk, Walk.ROOTS)
        with f.counting(f.load(walk, Walk.ROOT_COUNT)) as index:
            root = f.load(roots + (index << 3))
            self.refuse(f, f.call(self.new_row, f.load(walk, Walk.GROUPS)) < 0)
            with f.either(f.load(root, REFERENCES).equals(1)) as (single, other):
                with single:  # the caller's list has it, and nothing else
                    kind = f.call(self.kind_of, walk, root)
                    self.refuse(f, kind < 1)
                    own = f.call(self.new_node, walk, kind, root)
                    self.refuse(f, own < 0)
                    self._write_place(f, walk, f.number(0), index, kind, own)
                    self.refuse(f, f.call(self.push, walk, root, kind, own).equals(0))
                with other:
                    self.refuse(f, f.call(self.arrive, walk, root, f.number(0), index).equals(0))
            with f.while_(lambda: f.load(walk, Walk.DEPTH).differs(0)):
                depth = f.load(walk, Walk.DEPTH) - 1
                f.store(walk, Walk.DEPTH, depth)
                entry = f.load(walk, Walk.STACK) + depth * STACK_ENTRY
                node, what, row = (f.load(entry, k * WORD) for k in range(STACK_WORDS))
                done = f.variable(1)
                with f.either(what >= 0) as (entered, other):
                    with entered:
                        done.set(f.call(self.fill, walk, node, what, row))
                    with other:
                        column = f.number(-1) - what
                        done.set(f.call(self.arrive, walk, node, column, row))
                self.refuse(f, done.now.equals(0))
        f.ret(1)
        return f

    def _begin(self, f: Function, walk: Word) -> None:
        """Make room in all columns; see that classes keep their attributes where the tables say."""
        groups = f.load(walk, Walk.GROUPS)
        with f.counting(f.load(walk, Walk.GROUP_COUNT)) as index:
            group = groups + index * (Group.WORDS * WORD)
            rows = f.load(group, Group.FIRST_ROOM)
            self.refuse(f, f.call(self.make_room, group, rows).equals(0))
        for size, place, owner, words in (
            (Walk.STACK_SIZE, Walk.STACK, Walk.STACK_OWNER, STACK_WORDS),
            (Walk.TABLE_SIZE, Walk.TABLE, Walk.TABLE_OWNER, TABLE_WORDS),
        ):
            count = f.load(walk, size) * (words * WORD)
            data = f.call(self.enlarge, f.load(walk, owner), 0, count)
            self.refuse(f, data.equals(0))
            f.store(walk, place, data)
        kinds = f.load(walk, Walk.KINDS)
        with f.counting(f.load(walk, Walk.KIND_COUNT)) as index:
            kind = kinds + index * (Kind.WORDS * WORD)
            with f.when(f.load(kind, Kind.READING).equals(READINGS.index("attributes"))):
                keys = f.load(f.load(kind, Kind.CLASS), CLASS_KEYS)
                self.refuse(f, keys.differs(f.load(kind, Kind.KEYS)))
