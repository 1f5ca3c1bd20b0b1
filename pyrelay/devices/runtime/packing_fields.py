"""Kinds and places that the native packing of trees and the tables made for it agree on.

In: nothing. Out: constants. Tables are rows of 64-bit words; places are byte offsets. Those in
CPython's objects are of its public headers, but for the attributes of an instance without a dict
of its own, and what an int is made of: these are those of one version (`packing.py` compares them
with the interpreter).
"""

from __future__ import annotations

WORD = 8

REFERENCES = 0
OBJECT_CLASS = 8
VALUE = 16  # of a float, a complex number or one of NumPy
INT_SIZE, INT_DIGITS = 16, 24  # of an int: digits of 30 bits, less than 0 of a negative one
COUNT = 16  # of the items of a list or tuple
LIST_ITEMS = 24  # the address of the items
ARRAY_DATA, ARRAY_NDIM, ARRAY_EXTENTS, ARRAY_DESCR, ARRAY_FLAGS = 16, 24, 32, 56, 64
READABLE = 0x101  # C-contiguous and aligned

INSTANCE_VALUES, INSTANCE_DICT = 32, 24  # before the object
VALUES_COUNT = 2  # before the values: how many are there, a byte
MEMBER = 40  # of the descriptor of a slot
MEMBER_KIND, MEMBER_PLACE, MEMBER_OBJECT = 8, 16, 16  # in what it points to; its kind for objects


class Walk:
    """One per call: where its tables lie, and how far it is."""

    KINDS = 0
    KIND_COUNT = 8
    COLUMNS = 16
    GROUPS = 24  # that of the roots first: where they are are the columns 0 and 1
    LISTS = 32  # a list object for the nodes of each kind
    ARRAYS = 40
    STACK = 48
    STACK_SIZE = 56  # entries there is room for
    STACK_OWNER = 64  # the bytearray
    DEPTH = 72  # entries in use
    TABLE = 80
    TABLE_SIZE = 88  # entries, a power of two
    TABLE_OWNER = 96
    ENTERED = 104  # entries in use
    ROOTS = 112  # addresses of objects
    ROOT_COUNT = 120
    NONE = 128
    TRUE = 136
    INT = 144
    FLOAT = 152
    BOOL = 160
    TEXT = 168
    TUPLE = 176
    GROUP_COUNT = 184
    FALSE = 192
    NEW_OBJECT = 200  # what unpacking calls: `object.__new__`, PyArray_Scalar
    NEW_SCALAR = 208
    WORDS = 27


class Kind:
    """A class of nodes. Its list is at the same place among the lists, its rows are a group's."""

    CLASS = 0
    READING = 8  # a number of READINGS
    GROUP = 16
    FIRST = 24  # address of its first field
    COUNT = 32  # of its fields
    KEYS = 40  # what its CLASS_KEYS has to be; of rows, whether there are such with other keys; of
    # lists, whether the caller's are of this kind, which those of a program's are not
    WORDS = 6


READINGS = ("none", "attributes", "dict", "slots", "items", "row", "list")


class Field:
    """A field of a class."""

    SORT = 0  # address
    PLACE = 8  # bytes from the instance's values or the object
    NAME = 16  # the interned text
    WORDS = 3


class Nodes:
    """Of unpacking, in place of the lists: the nodes of a kind. The first rows are known objects.
    """

    KNOWN = 0  # the list of these
    KNOWN_COUNT = 8
    LIST = 16  # that of those which are made
    COUNT = 24
    STATES = 32  # address of a byte for each
    WORDS = 5


class Sort:
    """What a field holds, and where it goes. The other words by kind:

    int, float, bool, complex and numbers of NumPy ("raw", two words: "pair"): column, class, descr;
    constant: object; child: column, mask of kinds; items: column, class, group, address of the
    sort of the items; struct: address of the first part's sort, count; choice: column, address of
    the first case's, count; array: number, descr, ndim, address of extents (1 or -1 for any); text:
    number among the arrays, class.
    """

    KIND = 0  # a number of SORTS
    A = 8
    B = 16
    C = 24
    D = 32
    WORDS = 5


SORTS = (
    "nothing", "int", "float", "bool", "complex", "raw8", "raw16", "raw32", "raw64", "pair",
    "constant", "child", "items", "struct", "choice", "array", "text",
)  # fmt: skip


class Column:
    """A column, which grows with the others of its group."""

    DATA = 0
    WIDTH = 8  # bytes of an element
    OWNER = 16  # the bytearray
    WORDS = 3


class Group:
    """Columns of one length."""

    COUNT = 0
    ROOM = 8
    COLUMNS = 16  # address of the first
    COLUMN_COUNT = 24
    FIRST_ROOM = 32
    WORDS = 5


MOST_AXES = 8


class Arrays:
    """The arrays of a field: the very objects, and the extents that all of them have; or its texts,
    which have none. Of unpacking, texts only: where their rows are, and the words of a row."""

    LIST = 0
    KNOWN = 8  # whether there was one
    EXTENTS = 16
    WORDS = EXTENTS // WORD + MOST_AXES
    ROWS, WIDTH = LIST, KNOWN


#: Words of an entry of the stack: an object, then kind and row; or -1 - column and row of where
#: they are to be written.
STACK_WORDS = 3

#: Words of an entry of the table of nodes that may be met again: an address, and what is known:
#: row * ROW + kind.
TABLE_WORDS = 2
ROW = 1 << 16
