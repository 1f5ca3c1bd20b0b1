"""Where the run time's records keep their fields: byte offsets shared by Python and native code.

In: nothing. Out: offsets. All fields are 64-bit words unless a comment says otherwise; records
are made zeroed, by `allocate`, and addresses travel as integers.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

WORD = 8
RECORD_WORDS = 16
"""Words of an error record: its site, then values."""

POLL = WORD * RECORD_WORDS
"""After the record: the address of `pyrelay_poll` and its argument, for kernels that run long."""

RESUME = POLL + 2 * WORD
"""Then the address of `pyrelay_resume`, for kernels that recurse."""

LOWEST = RESUME + WORD
"""Then the lowest address of the native stack that they may use; 0 where none of them runs."""

RECORD_BYTES = LOWEST + WORD

SIZE_CLASSES = 4 * 48
"""Block sizes: four per doubling, from 64 bytes up; see `memory.py`."""


class Status(IntEnum):
    """What a run ends with; a kernel returns one of the first three."""

    OK = 0
    RAISED = 1  # the record says where and with what
    INTERRUPTED = 2  # the Python error is set already
    RECURSION = 3
    MEMORY = 4
    MISMATCH = 5
    HOST = 6  # a host call left its exception with the executable
    RAISED_IN_PLAN = 7  # a kernel has had the plan go on, whose site is in the record


ANSWERED = 0x70797265_00000000
"""What a host call adds to its status: of one that Python never began, the result is any number."""


class Block:
    """What stands before the bytes of an allocation."""

    NEXT = 0  # first, so that a list's head is laid out like a block
    PREVIOUS = 8
    SIZE_CLASS = 16
    SIZE = 24  # usable bytes
    BYTES = 64


class Tape:
    """A stack of bytes: a block of its own that owns another one."""

    DATA = 0
    USED = 8
    CAPACITY = 16
    BYTES = 24


class Control:
    """One per executable, unchanging but for the list of idle states."""

    IDLE = 0  # first idle state
    PROCESS = 8
    CODE = 16
    CONSTANTS_END = 24
    ENTRY_SLOTS = 32
    SCRATCH_WORDS = 40
    PARAMETER_COUNT = 48
    PARAMETERS = 56  # address of the table
    RESULT_COUNT = 64
    RESULTS = 72  # address of the table
    SINGLE = 80
    MISMATCH = 88  # object returned where the arguments do not fit
    ON_ERROR = 96  # callable (status, address of the record): raises
    GATE = 104  # C function for host calls
    NDARRAY = 112  # the class
    NEW_ARRAY = 120  # PyArray_NewFromDescr
    SET_BASE = 128  # PyArray_SetBaseObject
    NEW_SCALAR = 136  # PyArray_Scalar
    FALSE = 144
    TRUE = 152
    STACK_LIMIT = 160  # bytes of frame stack before RecursionError
    LENT = 168  # address of the numbers of the entry's slots that hold lent arrays
    LENT_COUNT = 176
    NONE = 184
    GUARD_COUNT = 192
    GUARDS = 200  # address of the table of names that are looked at first
    SERVED = 208  # address of a count of the calls that were served, or 0
    OTHERWISE = 216  # callable for what `pyrelay_whole` cannot take
    FAILED = 224  # callable (error, arguments...): raises what leaves such a call
    EXCEPTION = 232  # the class of the errors that it is given
    ANSWER = 240  # what such a call gives in place of its results, or 0
    ANSWERED = 248  # the number of the argument that it gives, counted from 1, or 0
    EARLIER = 256  # `self` of the whole call that is tried next, or 0
    BYTES = 264


class State:
    """One per call in flight: its frames, its memory, its error."""

    NEXT = 0  # next idle state
    CONTROL = 8
    STACK = 16
    STACK_END = 24
    LIVE = 32  # a list's head: the blocks this call holds
    LIVE_BYTES = 48
    PEAK_BYTES = 56
    KEPT_BYTES = 64  # in FREE
    FREE = 72  # heads of lists of idle blocks, one per size class
    LENT = FREE + WORD * SIZE_CLASSES  # address of the lent addresses, behind the scratch words
    LENT_COUNT = LENT + WORD
    RECORD = LENT_COUNT + WORD
    SCRATCH = RECORD + RECORD_BYTES


class Process:
    """One per process: what every executable shares."""

    TEAM = 0  # address of the thread team, 0 without
    LOCK = 8  # guards what follows
    KEPT_BYTES = 16
    KEPT_LIMIT = 24
    FREE = 32
    MAIN_THREAD = FREE + WORD * SIZE_CLASSES
    BYTES = MAIN_THREAD + WORD


class Team:
    """The thread pool: one job at a time. Fields that threads fight over have lines of their own.

    TICKET counts down the chunks still to be handed out in its low 16 bits; the rest is the
    number of the job, so that a late thread cannot take a chunk of a job it has not read.
    """

    TICKET = 0
    UNFINISHED = 128
    BUSY = 256
    SLEEPERS = 264
    ALONE = 272  # work of short launches since the last one that woke the sleepers
    CPU = 280  # where the caller of the last job was
    KERNEL = 384
    BLOCK = 392
    BLOCK_WORDS = 400
    EXTENT = 408
    CHUNK = 416  # iterations in each but the last
    CHUNKS = 424
    STATUS = 512
    FAILED = 520  # the lowest chunk that failed
    ERROR_LOCK = 528
    THREADS = 536  # the caller's included
    STOP = 544  # status of an interrupt that every thread has to obey
    PROCESS = 552
    MUTEX = 640  # room for a pthread_mutex_t
    CONDITION = 768  # room for a pthread_cond_t
    BYTES = 1024


def allocate(nbytes: int) -> tuple[int, np.ndarray[Any, Any]]:
    """Zeroed memory: its address, and the owner that keeps it alive."""
    import numpy as np  # what only compiles needs none

    owner = np.zeros(nbytes // WORD, np.int64)
    return owner.ctypes.data, owner
