"""What native packing writes to: rows of columns, a stack, and a table of the nodes met before.

In: an llvmlite module. Out: in it, the functions that make rows, push entries and look nodes up.
All of it lies in bytearrays, which Python owns and the functions enlarge.
"""

from __future__ import annotations

from collections.abc import Callable

from pyrelay.devices.compiler import llvm_ir as ir
from pyrelay.devices.compiler.llvm_writer import INT32, VOID, Flag, Function, Word
from pyrelay.devices.runtime.packing_fields import (
    COUNT,
    LIST_ITEMS,
    OBJECT_CLASS,
    READINGS,
    REFERENCES,
    STACK_WORDS,
    TABLE_WORDS,
    WORD,
    Column,
    Field,
    Group,
    Kind,
    Walk,
)

STACK_ENTRY = STACK_WORDS * WORD


class Rows:
    """Writes the functions. They give 0, or -1 where they give a row, for no memory."""

    def __init__(self, module: ir.Module) -> None:
        self.module = module
        self.is_row = self._is_row()
        self.kind_of = self._kind_of().expanded()
        self.enlarge = self._enlarge()
        self.make_room = self._make_room()
        self.new_row = self._new_row().expanded()
        self.new_node = self._new_node().expanded()
        self.push = self._push().expanded()
        self.find = self._find()
        self.enter = self._enter()

    def function(self, name: str, parameters: int) -> Function:
        return Function(self.module, f"pyrelay_packing_{name}", parameters)

    def refuse(self, f: Function, condition: Flag, value: int = 0) -> None:
        with f.when(condition, likely=False):
            f.ret(value)

    def give_up(self, f: Function, failed: Word, value: int = 0) -> None:
        """Leave the function where there was no memory."""
        with f.when(failed.differs(0), likely=False):
            f.c("PyErr_Clear", returns=VOID)
            f.ret(value)

    def cases(
        self, f: Function, kind: Word, cases: dict[str, Callable[[], None]], names: tuple[str, ...]
    ) -> None:
        """A branch for each kind, which leaves the function; others refuse."""
        other = f.native.append_basic_block("other")
        switch = f.b.switch(kind.raw, other)
        for name, write in cases.items():
            block = f.native.append_basic_block(name)
            switch.add_case(names.index(name), block)
            f.b.position_at_end(block)
            write()
            if not f.b.block.is_terminated:
                f.ret(1)
        f.b.position_at_end(other)
        f.ret(0)

    # -- rows

    def _kind_of(self) -> Function:
        """(walk, object): the kind of an object by its class, -1 for another one."""
        f = self.function("kind_of", 2)
        walk, value = f.parameters
        cls, kinds = f.load(value, OBJECT_CLASS), f.load(walk, Walk.KINDS)
        with f.counting(f.load(walk, Walk.KIND_COUNT)) as kind:
            entry = kinds + kind * (Kind.WORDS * WORD)
            with f.when(f.load(entry).equals(cls)):
                reading, keys = f.load(entry, Kind.READING), f.load(entry, Kind.KEYS)
                of_rows = reading.equals(READINGS.index("row")) & keys.differs(0)
                of_lists = reading.equals(READINGS.index("list"))
                with f.when(~(of_rows | of_lists)):
                    f.ret(kind)
                with f.when(of_rows), f.when(f.call(self.is_row, entry, value).differs(0)):
                    f.ret(kind)
                as_long = f.load(value, COUNT).equals(f.load(entry, Kind.COUNT))
                with f.when(of_lists & as_long & keys.differs(0)):
                    f.ret(kind)
        f.ret(-1)
        return f

    def _is_row(self) -> Function:
        """(kind, dict): 1 where the keys of a dict are the very names of the kind's fields."""
        f = self.function("is_row", 2)
        entry, found = f.parameters
        count = f.load(entry, Kind.COUNT)
        self.refuse(f, f.c("PyDict_Size", found).differs(count))
        place, name, value = (f.address(f.local_words(1)) for _ in range(3))
        f.store(place, 0, 0)
        field = f.variable(f.load(entry, Kind.FIRST))
        with f.counting(count):
            there = f.c("PyDict_Next", found, place, name, value, returns=INT32)
            self.refuse(f, there.equals(0))
            self.refuse(f, f.load(field.now, Field.NAME).differs(f.load(name)))
            field.set(field.now + Field.WORDS * WORD)
        f.ret(1)
        return f

    def _enlarge(self) -> Function:
        """(bytearray, bytes before, bytes): the address of the larger memory, the new part zero;
        0 where there is none.
        """
        f = self.function("enlarge", 3)
        owner, before, size = f.parameters
        failed = f.c("PyByteArray_Resize", owner, size, returns=INT32)
        self.give_up(f, failed)
        data = f.c("PyByteArray_AsString", owner)
        f.c("memset", data + before, f.number(0), size - before)
        f.ret(data)
        return f

    def _make_room(self) -> Function:
        """(group, rows): larger columns; 0 where there is no memory."""
        f = self.function("make_room", 2)
        group, rows = f.parameters
        room = f.load(group, Group.ROOM)
        column = f.variable(f.load(group, Group.COLUMNS))
        with f.counting(f.load(group, Group.COLUMN_COUNT)):
            width, owner = f.load(column.now, Column.WIDTH), f.load(column.now, Column.OWNER)
            data = f.call(self.enlarge, owner, room * width, rows * width)
            self.refuse(f, data.equals(0))
            f.store(column.now, Column.DATA, data)
            column.set(column.now + Column.WORDS * WORD)
        f.store(group, Group.ROOM, rows)
        f.ret(1)
        return f

    def _new_row(self) -> Function:
        """(group): the number of a new row of zeros, -1 where there is no memory."""
        f = self.function("new_row", 1)
        (group,) = f.parameters
        row, room = f.load(group, Group.COUNT), f.load(group, Group.ROOM)
        with f.when(row.equals(room), likely=False):
            self.refuse(f, f.call(self.make_room, group, room << 1).equals(0), -1)
        f.store(group, Group.COUNT, row + 1)
        f.ret(row)
        return f

    def _new_node(self) -> Function:
        """(walk, kind, object): the row of a node, which is kept in its kind's list; or -1.

        A list has a None, of which there are always more, for each row that was expected.
        """
        f = self.function("new_node", 3)
        walk, kind, node = f.parameters
        entry = f.load(walk, Walk.KINDS) + kind * (Kind.WORDS * WORD)
        row = f.call(self.new_row, self.group(f, walk, f.load(entry, Kind.GROUP)))
        self.refuse(f, row < 0, -1)
        nodes = f.load(f.load(walk, Walk.LISTS) + (kind << 3))
        with f.when(row < f.load(nodes, COUNT), likely=True):
            self.replace(f, f.load(nodes, LIST_ITEMS) + (row << 3), node)
            f.ret(row)
        self.give_up(f, f.c("PyList_Append", nodes, node, returns=INT32), -1)
        f.ret(row)
        return f

    def replace(self, f: Function, item: Word, value: Word) -> None:
        """Put an object where a list had one to which there are always other references."""
        before = f.load(item)
        f.store(value, REFERENCES, f.load(value, REFERENCES) + 1)
        f.store(item, 0, value)
        f.store(before, REFERENCES, f.load(before, REFERENCES) - 1)

    def group(self, f: Function, walk: Word, number: Word) -> Word:
        return f.load(walk, Walk.GROUPS) + number * (Group.WORDS * WORD)

    def column(self, f: Function, walk: Word, number: Word) -> Word:
        return f.load(walk, Walk.COLUMNS) + number * (Column.WORDS * WORD)

    def cell(self, f: Function, walk: Word, column: Word, row: Word) -> Word:
        """The address of a word in a column."""
        return f.load(self.column(f, walk, column), Column.DATA) + (row << 3)

    # -- the stack and the table

    def _push(self) -> Function:
        """(walk, three words): an entry for the stack; 0 where there is no memory."""
        f = self.function("push", 4)
        walk, *words = f.parameters
        depth, size = f.load(walk, Walk.DEPTH), f.load(walk, Walk.STACK_SIZE)
        with f.when(depth.equals(size), likely=False):
            before, owner = size * STACK_ENTRY, f.load(walk, Walk.STACK_OWNER)
            data = f.call(self.enlarge, owner, before, before << 1)
            self.refuse(f, data.equals(0))
            f.store(walk, Walk.STACK, data)
            f.store(walk, Walk.STACK_SIZE, size << 1)
        entry = f.load(walk, Walk.STACK) + depth * STACK_ENTRY
        for place, word in enumerate(words):
            f.store(entry, place * WORD, word)
        f.store(walk, Walk.DEPTH, depth + 1)
        f.ret(1)
        return f

    def _find(self) -> Function:
        """(table, entries, object): the entry of an object, or the free one where it belongs.

        Addresses are hashed by multiplication (Knuth, The Art of Computer Programming 3, 6.4).
        """
        f = self.function("find", 3)
        table, size, node = f.parameters
        place = f.variable((node * 0x9E3779B97F4A7C15 >> 20) & (size - 1))

        def entry() -> Word:
            return table + place.now * (TABLE_WORDS * WORD)

        def taken() -> Flag:
            found = f.load(entry())
            return found.differs(0) & found.differs(node)

        with f.while_(taken):
            place.set((place.now + 1) & (size - 1))
        f.ret(entry())
        return f

    def _enter(self) -> Function:
        """(walk, object, code): a new entry of the table; 0 where there is no memory."""
        f = self.function("enter", 3)
        walk, node, code = f.parameters
        size, used = f.load(walk, Walk.TABLE_SIZE), f.load(walk, Walk.ENTERED)
        with f.when(used + used >= size, likely=False):
            larger = size << 2
            entry = TABLE_WORDS * WORD
            owner, before = f.load(walk, Walk.TABLE_OWNER), size * entry
            # the old entries move to the end of the memory while the new ones are made before
            data = f.call(self.enlarge, owner, before, larger * entry + before)
            self.refuse(f, data.equals(0))
            old = data + larger * entry
            f.c("memcpy", old, data, before)
            f.c("memset", data, f.number(0), before)
            with f.counting(size) as index:
                known = f.load(old + index * entry)
                with f.when(known.differs(0)):
                    target = f.call(self.find, data, larger, known)
                    f.store(target, 0, known)
                    f.store(target, WORD, f.load(old + index * entry, WORD))
            f.c("memset", old, f.number(0), before)
            f.store(walk, Walk.TABLE, data)
            f.store(walk, Walk.TABLE_SIZE, larger)
        target = f.call(
            self.find, f.load(walk, Walk.TABLE), f.load(walk, Walk.TABLE_SIZE), node
        )
        f.store(target, 0, node)
        f.store(target, WORD, code)
        f.store(walk, Walk.ENTERED, used + 1)
        f.ret(1)
        return f
