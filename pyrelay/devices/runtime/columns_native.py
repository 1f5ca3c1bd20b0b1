"""Lists of numbers, texts, tuples and lists of them made into arrays by native code.

In: an llvmlite module. Out: in it, functions of CPython of one argument (METH_O):
`pyrelay_columns`, a list -> the tuple of its arrays, None where an item is unlike the tables;
`pyrelay_single`, a list -> whether it alone refers to each of its items.

`self` is an array whose words are a `Head` (`columns_fields`). Items are compared with what the
tables expect by the addresses of their classes. Arrays and their tuple are made before the first
item is read, as making a tuple may run Python code (the collection of garbage); behind that nothing
does, and what is unlike what was measured ends the reading.
"""

from __future__ import annotations

from collections.abc import Callable

from pyrelay.devices.compiler import llvm_ir as ir
from pyrelay.devices.compiler.llvm_writer import VOID, Flag, Function, Word
from pyrelay.devices.runtime.boundary_fields import ARRAY_DATA, OBJECT_CLASS, SCALAR_VALUE
from pyrelay.devices.runtime.columns_fields import ALONE, MOST_COLUMNS, SORTS, Column, Head, Sort
from pyrelay.devices.runtime.packing_fields import COUNT, LIST_ITEMS, REFERENCES, WORD

_RAW = {"raw8": 8, "raw16": 16, "raw32": 32, "raw64": 64}
_TUPLE_ITEMS = tuple.__basicsize__


class ColumnReading:
    """Writes the functions; the inner ones give 0 where something is unlike the tables."""

    def __init__(self, module: ir.Module) -> None:
        self.module = module
        self.measure = self._measure()
        self.text = self._text()
        self.put = self._put()
        self.measured = self._measured()
        self.made = self._made()
        self.filled = self._filled()
        self._columns()
        self._single()

    def _function(self, name: str, parameters: int) -> Function:
        return Function(self.module, f"pyrelay_columns_{name}", parameters)

    def _refuse(self, f: Function, condition: Flag) -> None:
        with f.when(condition, likely=False):
            f.ret(0)

    def _cases(self, f: Function, kind: Word, cases: dict[str, Callable[[], None]]) -> None:
        """A branch for each kind, which leaves the function; others give 1."""
        other = f.native.append_basic_block("other")
        switch = f.b.switch(kind.raw, other)
        for name, write in cases.items():
            block = f.native.append_basic_block(name)
            switch.add_case(SORTS.index(name), block)
            f.b.position_at_end(block)
            write()
            if not f.b.block.is_terminated:
                f.ret(1)
        f.b.position_at_end(other)
        f.ret(1)

    def _parts(
        self, f: Function, sort: Word, value: Word, each: Callable[[Word, Word], Word]
    ) -> None:
        """Do something for each part of a tuple."""
        self._refuse(f, f.load(value, OBJECT_CLASS).differs(f.load(sort, Sort.CLASS)))
        self._refuse(f, f.load(value, COUNT).differs(f.load(sort, Sort.COUNT)))
        part = f.variable(f.load(sort, Sort.A))
        with f.counting(f.load(sort, Sort.COUNT)) as index:
            item = f.load(value + _TUPLE_ITEMS + (index << 3))
            self._refuse(f, each(part.now, item).equals(0))
            part.set(part.now + Sort.WORDS * WORD)

    # -- before there are arrays

    def _measure(self) -> Function:
        """(head, sort, object, rooms): 1 where the rooms of texts were enlarged to hold it."""
        f = self._function("measure", 4)
        head, sort, value, rooms = f.parameters

        def text() -> None:
            self._refuse(f, f.load(value, OBJECT_CLASS).differs(f.load(sort, Sort.CLASS)))
            length = f.c("PyUnicode_GetLength", value)
            column = f.load(head, Head.COLUMNS) + (f.load(sort, Sort.A) + 1) * (Column.WORDS * WORD)
            place = rooms + (f.load(column, Column.SPELLED) << 3)
            with f.when(f.load(place) < length):
                f.store(place, 0, length)

        def parts() -> None:
            self._parts(f, sort, value, lambda part, item: f.call(f, head, part, item, rooms))

        self._cases(f, f.load(sort, Sort.KIND), {"text": text, "tuple": parts})
        return f

    def _measured(self) -> Function:
        """(head, list, rooms): 1 where the rooms are known."""
        f = self._function("measured", 3)
        head, given, rooms = f.parameters
        items, count = f.load(given, LIST_ITEMS), f.load(given, COUNT)
        with f.when(f.load(head, Head.LISTS).differs(0)):
            total = f.variable(0)
            with f.counting(count) as index:
                item = f.load(items + (index << 3))
                self._refuse(f, f.load(item, OBJECT_CLASS).differs(f.load(head, Head.LIST)))
                self._refuse(f, self._is_shared(f, head, item))
                size = f.load(item, COUNT)
                total.set(total.now + size)
                with f.when(f.load(rooms) < size):
                    f.store(rooms, 0, size)
            self._refuse(f, total.now.equals(0))

        def each(items: Word, count: Word) -> None:
            with f.counting(count) as index:
                item = f.load(items + (index << 3))
                done = f.call(self.measure, head, f.load(head, Head.SORT), item, rooms)
                self._refuse(f, done.equals(0))

        measured = f.when(f.load(head, Head.MEASURED).differs(0))
        with measured, f.either(f.load(head, Head.LISTS).equals(0)) as (plain, listed):
            with plain:
                each(items, count)
            with listed, f.counting(count) as index:
                item = f.load(items + (index << 3))
                each(f.load(item, LIST_ITEMS), f.load(item, COUNT))
        f.ret(1)
        return f

    def _is_shared(self, f: Function, head: Word, item: Word) -> Flag:
        """Whether a list may be in two places, as far as the caller has not looked."""
        asked = f.load(head, Head.LISTS).equals(ALONE)
        return asked & (f.load(item, REFERENCES) > 1)

    def _made(self) -> Function:
        """(head, count, rooms, addresses): a tuple of new arrays, whose addresses are noted; 0 for
        no memory."""
        f = self._function("made", 4)
        head, count, rooms, addresses = f.parameters
        wanted = f.load(head, Head.COLUMN_COUNT)
        found = f.c("PyTuple_New", wanted)
        self._refuse(f, found.equals(0))
        extents = f.address(f.local_words(3))
        f.store(extents, 0, count)
        with f.counting(wanted) as index:
            column = f.load(head, Head.COLUMNS) + index * (Column.WORDS * WORD)
            descr, axes = f.load(column, Column.DESCR), f.variable(1)
            for axis in (Column.LISTED, Column.SPELLED):
                room = f.load(column, axis)
                with f.when(room >= 0):
                    f.store(extents + (axes.now << 3), 0, f.load(rooms + (room << 3)))
                    axes.set(axes.now + 1)
            f.c("Py_IncRef", descr, returns=VOID)
            array = f.call_address(
                f.load(head, Head.NEW_ARRAY), f.load(head, Head.NDARRAY), descr,
                axes.now, extents, 0, 0, 0, 0,
            )  # fmt: skip
            with f.when(array.equals(0), likely=False):
                f.c("Py_DecRef", found, returns=VOID)
                f.ret(0)
            f.do("PyTuple_SetItem", found, index, array)
            f.store(addresses + (index << 3), 0, f.load(array, ARRAY_DATA))
        f.ret(found)
        return f

    # -- items

    def _text(self) -> Function:
        """(text, row, room): 1 where its code points were written into a row of words."""
        f = self._function("text", 3)
        value, row, room = f.parameters
        length = f.c("PyUnicode_GetLength", value)
        self._refuse(f, length > room)
        with f.when(length.differs(0)):
            found = f.c("PyUnicode_AsUCS4", value, row, length, f.number(0))
            with f.when(found.equals(0), likely=False):
                f.c("PyErr_Clear", returns=VOID)
                f.ret(0)
        at = f.variable(length)
        with f.while_(lambda: at.now > 0):  # 32 bits become 64, from the end
            at.set(at.now - 1)
            code = f.load_narrow(row + (at.now << 2), 32, False)
            f.store(row + (at.now << 3), 0, code)
        at.set(length)
        with f.while_(lambda: at.now < room):
            f.store(row + (at.now << 3), 0, 0)
            at.set(at.now + 1)
        f.ret(1)
        return f

    def _put(self) -> Function:
        """(head, sort, object, place, addresses, rooms): 1 where it was written at a place of its
        columns."""
        f = self._function("put", 6)
        head, sort, value, place, addresses, rooms = f.parameters
        own = addresses + (f.load(sort, Sort.A) << 3)
        data = f.load(own)
        is_tuple = f.load(sort, Sort.KIND).equals(SORTS.index("tuple"))
        with f.when(is_tuple):
            self._parts(
                f, sort, value,
                lambda part, item: f.call(f, head, part, item, place, addresses, rooms),
            )
            f.ret(1)
        self._refuse(f, f.load(value, OBJECT_CLASS).differs(f.load(sort, Sort.CLASS)))

        def as_int() -> None:
            overflow = f.address(f.local_words(1))
            f.store(overflow, 0, 0)
            found = f.c("PyLong_AsLongLongAndOverflow", value, overflow)
            self._refuse(f, (f.load(overflow) & 0xFFFFFFFF).differs(0))
            f.store(data + (place << 3), 0, found)

        def as_float() -> None:
            f.store(data + (place << 3), 0, f.load(value, SCALAR_VALUE))

        def narrow(bits: int) -> Callable[[], None]:
            def write() -> None:
                found = f.load_narrow(value + SCALAR_VALUE, bits, False)
                f.store_narrow(data + place * (bits // 8), bits, found)
            return write

        def as_bool() -> None:
            f.store_narrow(data + place, 8, value.equals(f.load(head, Head.TRUE)).word())

        def pair() -> None:
            f.store(data + (place << 4), 0, f.load(value, SCALAR_VALUE))
            f.store(data + (place << 4), WORD, f.load(value, SCALAR_VALUE + WORD))

        def text() -> None:
            column = f.load(head, Head.COLUMNS) + (f.load(sort, Sort.A) + 1) * (Column.WORDS * WORD)
            room = f.load(rooms + (f.load(column, Column.SPELLED) << 3))
            row = f.load(own, WORD) + ((place * room) << 3)
            self._refuse(f, f.call(self.text, value, row, room).equals(0))
            f.store(data + (place << 3), 0, f.c("PyUnicode_GetLength", value))

        def letter() -> None:
            self._refuse(f, f.c("PyUnicode_GetLength", value).differs(1))
            code = f.c("PyUnicode_ReadChar", value, 0)
            f.store(data + (place << 3), 0, code & 0xFFFFFFFF)

        self._cases(f, f.load(sort, Sort.KIND), {
            "int": as_int, "float": as_float, "bool": as_bool, "complex": pair, "pair": pair,
            **{name: narrow(bits) for name, bits in _RAW.items()}, "text": text, "letter": letter,
        })  # fmt: skip
        return f

    def _filled(self) -> Function:
        """(head, list, count, rooms, addresses): 1 where all items were written."""
        f = self._function("filled", 5)
        head, given, count, rooms, addresses = f.parameters
        self._refuse(f, f.load(given, COUNT).differs(count))
        items, sort = f.load(given, LIST_ITEMS), f.load(head, Head.SORT)
        with f.when(f.load(head, Head.LISTS).equals(0)):
            with f.counting(count) as index:
                item = f.load(items + (index << 3))
                done = f.call(self.put, head, sort, item, index, addresses, rooms)
                self._refuse(f, done.equals(0))
            f.ret(1)
        room, sizes = f.load(rooms), f.load(addresses)
        with f.counting(count) as index:
            inner = f.load(items + (index << 3))
            self._refuse(f, f.load(inner, OBJECT_CLASS).differs(f.load(head, Head.LIST)))
            size, own = f.load(inner, COUNT), f.load(inner, LIST_ITEMS)
            self._refuse(f, (size > room) | self._is_shared(f, head, inner))
            f.store(sizes + (index << 3), 0, size)
            first = index * room
            with f.counting(size) as k:
                item = f.load(own + (k << 3))
                done = f.call(self.put, head, sort, item, first + k, addresses, rooms)
                self._refuse(f, done.equals(0))
            with f.when(size < room):
                self._clear(f, head, addresses, rooms, first + size, room - size)
        f.ret(1)
        return f

    def _clear(
        self, f: Function, head: Word, addresses: Word, rooms: Word, first: Word, count: Word
    ) -> None:
        """Zeros in all columns of items of lists."""
        columns = f.load(head, Head.COLUMN_COUNT)
        number = f.variable(1)
        with f.while_(lambda: number.now < columns):
            column = f.load(head, Head.COLUMNS) + number.now * (Column.WORDS * WORD)
            width = f.variable(f.load(column, Column.WIDTH))
            spelled = f.load(column, Column.SPELLED)
            with f.when(spelled >= 0):
                width.set(width.now * f.load(rooms + (spelled << 3)))
            place = f.load(addresses + (number.now << 3)) + first * width.now
            f.c("memset", place, f.number(0), count * width.now)
            number.set(number.now + 1)

    # -- what Python calls

    def _columns(self) -> Function:
        f = Function(self.module, "pyrelay_columns", 2)
        owner, given = f.parameters
        head = f.load(owner, ARRAY_DATA)
        none = f.load(head, Head.NONE)

        def nothing() -> None:
            f.c("Py_IncRef", none, returns=VOID)
            f.ret(none)

        rooms, addresses = (f.address(f.local_words(MOST_COLUMNS)) for _ in range(2))
        with f.counting(f.number(MOST_COLUMNS)) as index:
            f.store(rooms + (index << 3), 0, 0)
        with f.when(f.load(given, OBJECT_CLASS).differs(f.load(head, Head.LIST)), likely=False):
            nothing()
        count = f.load(given, COUNT)
        with f.when(count.equals(0), likely=False):
            nothing()
        with f.when(f.call(self.measured, head, given, rooms).equals(0), likely=False):
            nothing()
        with (
            f.when(f.load(head, Head.MEASURED).differs(0)),
            f.counting(f.number(MOST_COLUMNS)) as index,
        ):
            room = rooms + (index << 3)  # rows of no texts but empty ones have room for one
            with f.when(f.load(room).equals(0)):
                f.store(room, 0, 1)
        found = f.call(self.made, head, count, rooms, addresses)
        self._refuse(f, found.equals(0))  # with Python's error set
        done = f.call(self.filled, head, given, count, rooms, addresses)
        with f.when(done.equals(0), likely=False):
            f.c("Py_DecRef", found, returns=VOID)
            nothing()
        f.ret(found)
        return f

    def _single(self) -> Function:
        f = Function(self.module, "pyrelay_single", 2)
        owner, given = f.parameters
        head = f.load(owner, ARRAY_DATA)
        answer = f.variable(f.load(head, Head.NONE))
        several = f.variable(f.load(given, OBJECT_CLASS).differs(f.load(head, Head.LIST)).word())
        with f.when(several.now.equals(0)):
            items = f.load(given, LIST_ITEMS)
            with f.counting(f.load(given, COUNT)) as index:
                references = f.load(f.load(items + (index << 3)), REFERENCES)
                several.set(several.now | (references > 1).word())
        with f.when(several.now.equals(0)):
            answer.set(f.load(head, Head.TRUE))
        f.c("Py_IncRef", answer.now, returns=VOID)
        f.ret(answer.now)
        return f
