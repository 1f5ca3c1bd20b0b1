"""Lists made of arrays by native code: numbers, texts, tuples, lists and dicts of them.

In: an llvmlite module. Out: in it, `pyrelay_items`, a function of CPython (METH_FASTCALL): arrays
with a row for each item, and how many items there are -> the list of these, None where an array is
unlike the tables.

`self` is an array whose words are a `Head` (`items_fields`). It mirrors `columns_native`.
"""

from __future__ import annotations

from collections.abc import Callable

from pyrelay.devices.compiler import llvm_ir as ir
from pyrelay.devices.compiler.llvm_writer import DOUBLE, INT32, VOID, Flag, Function, Word
from pyrelay.devices.compiler.llvm_writer import WORD as WORD_TYPE
from pyrelay.devices.runtime.boundary_fields import (
    ARRAY_DATA,
    ARRAY_DESCR,
    ARRAY_EXTENTS,
    ARRAY_FLAGS,
    ARRAY_NDIM,
    C_CONTIGUOUS,
    OBJECT_CLASS,
)
from pyrelay.devices.runtime.items_fields import (
    MOST_AXES,
    MOST_COLUMNS,
    SORTS,
    Column,
    Head,
    Sort,
)
from pyrelay.devices.runtime.packing_fields import WORD
from pyrelay.devices.runtime.texts_native import text_making


class ItemWriting:
    """Writes the functions; the inner ones give 0 with a Python error set."""

    def __init__(self, module: ir.Module) -> None:
        self.module = module
        self.text = text_making(module, "pyrelay_items_text")
        self.make = self._function("make", 5)
        self.filled = self._filled()
        self._write_make()
        self.fits = self._fits()
        self._items()

    def _function(self, name: str, parameters: int) -> Function:
        return Function(self.module, f"pyrelay_items_{name}", parameters)

    def _refuse(self, f: Function, condition: Flag) -> None:
        with f.when(condition, likely=False):
            f.ret(0)

    def _shared(self, f: Function, value: Word) -> Word:
        f.c("Py_IncRef", value, returns=VOID)
        return value

    def _filled(self) -> Function:
        """(head, sort, place, addresses, rooms): a list or tuple of as many parts as a node has."""
        f = self._function("filled", 5)
        head, sort, place, addresses, rooms = f.parameters
        count, part = f.load(sort, Sort.B), f.variable(f.load(sort, Sort.A))
        kind = f.load(sort, Sort.KIND)
        is_tuple, is_dict = (kind.equals(SORTS.index(name)) for name in ("tuple", "dict"))
        with f.when(is_dict):
            entries = f.c("PyDict_New")
            self._refuse(f, entries.equals(0))
            keys = f.load(sort, Sort.C)
            with f.counting(count) as index:
                value = f.call(self.make, head, part.now, place, addresses, rooms)
                failed = f.variable(1)
                with f.when(value.differs(0), likely=True):
                    key = f.load(keys + (index << 3))
                    failed.set(f.c("PyDict_SetItem", entries, key, value, returns=INT32))
                    f.c("Py_DecRef", value, returns=VOID)
                with f.when(failed.now.differs(0), likely=False):
                    f.c("Py_DecRef", entries, returns=VOID)
                    f.ret(0)
                part.set(part.now + Sort.WORDS * WORD)
            f.ret(entries)
        made = f.variable(0)
        with f.either(is_tuple) as (one, other):
            with one:
                made.set(f.c("PyTuple_New", count))
            with other:
                made.set(f.c("PyList_New", count))
        self._refuse(f, made.now.equals(0))
        with f.counting(count) as index:
            value = f.call(self.make, head, part.now, place, addresses, rooms)
            with f.when(value.equals(0), likely=False):
                f.c("Py_DecRef", made.now, returns=VOID)
                f.ret(0)
            with f.either(is_tuple) as (one, other):
                with one:
                    f.do("PyTuple_SetItem", made.now, index, value)
                with other:
                    f.do("PyList_SetItem", made.now, index, value)
            part.set(part.now + Sort.WORDS * WORD)
        f.ret(made.now)
        return f

    def _write_make(self) -> None:
        """(head, sort, place, addresses, rooms): the object whose parts are at a place of their
        columns."""
        f = self.make
        head, sort, place, addresses, rooms = f.parameters

        def data(number: Word) -> Word:
            return f.load(addresses + (number << 3))

        def first() -> Word:
            return data(f.load(sort, Sort.A))

        def from_doubles(name: str, *words: Word) -> None:
            native = f.symbol(name, [DOUBLE] * len(words), WORD_TYPE)
            f.ret(Word(f, f.b.call(native, [word.double() for word in words])))

        def as_bool() -> None:
            found = f.load_narrow(first() + place, 8, False).differs(0)
            f.ret(self._shared(f, found.choose(f.load(head, Head.TRUE), f.load(head, Head.FALSE))))

        def as_complex() -> None:
            own = first() + (place << 4)
            from_doubles("PyComplex_FromDoubles", f.load(own), f.load(own, WORD))

        def of_numpy() -> None:
            own = first() + place * f.load(sort, Sort.C)
            f.ret(f.call_address(f.load(head, Head.NEW_SCALAR), own, f.load(sort, Sort.B), 0))

        def room() -> Word:
            return f.load(rooms + (f.load(sort, Sort.C) << 3))

        def text() -> None:
            count = f.smaller(f.load(first() + (place << 3)), room())
            codes = data(f.load(sort, Sort.B)) + ((place * room()) << 3)
            f.ret(f.call(self.text, codes, count))

        def items() -> None:
            count = f.smaller(f.load(first() + (place << 3)), room())
            f.ret(self._listed(f, sort, count, place * room(), head, addresses, rooms))

        def choice() -> None:
            tag = f.load(first() + (place << 3))
            chosen = f.smaller(tag, f.load(sort, Sort.C) - 1)
            case = f.load(sort, Sort.B) + chosen * (Sort.WORDS * WORD)
            f.ret(f.call(f, head, case, place, addresses, rooms))

        def filled() -> None:
            f.ret(f.call(self.filled, head, sort, place, addresses, rooms))

        cases: dict[str, Callable[[], None]] = {
            "int": lambda: f.ret(f.c("PyLong_FromLongLong", f.load(first() + (place << 3)))),
            "float": lambda: from_doubles("PyFloat_FromDouble", f.load(first() + (place << 3))),
            "bool": as_bool, "complex": as_complex, "numpy": of_numpy, "text": text,
            "constant": lambda: f.ret(self._shared(f, f.load(sort, Sort.A))),
            "tuple": filled, "list": filled, "dict": filled, "items": items, "choice": choice,
        }  # fmt: skip
        other = f.native.append_basic_block("other")
        switch = f.b.switch(f.load(sort, Sort.KIND).raw, other)
        for name, write in cases.items():
            block = f.native.append_basic_block(name)
            switch.add_case(SORTS.index(name), block)
            f.b.position_at_end(block)
            write()
        f.b.position_at_end(other)
        f.b.unreachable()

    def _listed(
        self, f: Function, sort: Word, count: Word, place: Word, head: Word, addresses: Word,
        rooms: Word,
    ) -> Word:  # fmt: skip
        """A list of so many items from a place on, each made by the sort's; leaves the function
        where one cannot be made."""
        inner = f.load(sort, Sort.B)
        number = (count > 0).choose(count, 0)
        made = f.c("PyList_New", number)
        self._refuse(f, made.equals(0))
        with f.counting(number) as index:
            value = f.call(self.make, head, inner, place + index, addresses, rooms)
            with f.when(value.equals(0), likely=False):
                f.c("Py_DecRef", made, returns=VOID)
                f.ret(0)
            f.do("PyList_SetItem", made, index, value)
        return made

    def _fits(self) -> Function:
        """(head, arguments, count, addresses, rooms): 1 where the arrays are as the tables say."""
        f = self._function("fits", 5)
        head, arguments, count, addresses, rooms = f.parameters
        with f.counting(f.load(head, Head.COLUMN_COUNT)) as index:
            array = f.load(arguments + (index << 3))
            column = f.load(head, Head.COLUMNS) + index * (Column.WORDS * WORD)
            self._refuse(f, f.load(array, OBJECT_CLASS).differs(f.load(head, Head.NDARRAY)))
            self._refuse(f, f.load(array, ARRAY_DESCR).differs(f.load(column, Column.DESCR)))
            ndim = f.load_narrow(array + ARRAY_NDIM, 32, True)
            self._refuse(f, ndim.differs(f.load(column, Column.NDIM)))
            flags = f.load_narrow(array + ARRAY_FLAGS, 32, False)
            self._refuse(f, (flags & C_CONTIGUOUS).equals(0))
            extents = f.load(array, ARRAY_EXTENTS)
            self._refuse(f, f.load(extents) < count)
            with f.counting(ndim - 1) as axis:
                number = f.load(column + Column.ROOMS + (axis << 3))
                room, extent = rooms + (number << 3), f.load(extents + (axis << 3), WORD)
                with f.when(f.load(room) < 0):
                    f.store(room, 0, extent)
                self._refuse(f, f.load(room).differs(extent))
            f.store(addresses + (index << 3), 0, f.load(array, ARRAY_DATA))
        f.ret(1)
        return f

    def _items(self) -> Function:
        f = Function(self.module, "pyrelay_items", 3)
        owner, arguments, given = f.parameters
        head = f.load(owner, ARRAY_DATA)
        none = f.load(head, Head.NONE)

        def nothing() -> None:
            f.ret(self._shared(f, none))

        addresses, rooms = (f.address(f.local_words(MOST_COLUMNS * MOST_AXES)) for _ in range(2))
        with f.counting(f.number(MOST_COLUMNS * MOST_AXES)) as index:
            f.store(rooms + (index << 3), 0, -1)
        columns = f.load(head, Head.COLUMN_COUNT)
        with f.when(given.differs(columns + 1), likely=False):
            nothing()
        count = f.c("PyLong_AsLongLong", f.load(arguments + (columns << 3)))
        with f.when(f.c("PyErr_Occurred").differs(0), likely=False):
            f.c("PyErr_Clear", returns=VOID)
            nothing()
        fits = f.call(self.fits, head, arguments, count, addresses, rooms)
        with f.when(fits.equals(0) | (count < 0), likely=False):
            nothing()
        # the list's own "sort" is that of lists inside: the item's address stands at B
        listed = f.address(f.local_words(Sort.WORDS))
        f.store(listed, Sort.B, f.load(head, Head.SORT))
        f.ret(self._listed(f, listed, count, f.number(0), head, addresses, rooms))
        return f
