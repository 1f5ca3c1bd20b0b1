"""A call of a compiled function from beginning to end, for Python's callers.

In: an llvmlite module with `pyrelay_entry`. Out: in it, `pyrelay_whole`, a function of CPython
(METH_FASTCALL | METH_KEYWORDS) with the same `self`. Its callers never see MISMATCH: what the entry
does not take is given to those of its EARLIER calls, one after the other, and what none of them
takes, arguments given by name with it, goes to the first control's OTHERWISE. Errors leave as
FAILED raises them, and the result is what the function returns.
"""

from __future__ import annotations

from pyrelay.devices.compiler import llvm_ir as ir
from pyrelay.devices.compiler.llvm_writer import INT32, VOID, Function, Word
from pyrelay.devices.runtime.boundary_fields import ARRAY_DATA
from pyrelay.devices.runtime.layout import WORD, Control


def write_whole(module: ir.Module, entry: Function) -> Function:
    """(self, arguments, count, names): the result, 0 with a Python error set."""
    told = _write_told(module)
    f = Function(module, "pyrelay_whole", 4)
    owner, arguments, count, names = f.parameters
    tried = f.variable(names.equals(0).choose(owner, 0))
    with f.while_(lambda: tried.now.differs(0)):
        control = f.load(tried.now, ARRAY_DATA)
        value = f.call(entry, tried.now, arguments, count)
        with f.when(value.equals(0), likely=False):
            f.ret(f.call(told, control, arguments, count))
        with f.when(value.differs(f.load(control, Control.MISMATCH)), likely=True):
            answer = f.variable(f.load(control, Control.ANSWER))
            number = f.load(control, Control.ANSWERED)
            with f.when(number.differs(0)):
                answer.set(f.load(arguments + (number << 3), -WORD))
            with f.when(answer.now.equals(0)):
                f.ret(value)
            f.c("Py_DecRef", value, returns=VOID)
            f.ret(_shared(f, answer.now))
        f.c("Py_DecRef", value, returns=VOID)
        tried.set(f.load(control, Control.EARLIER))
    otherwise = f.load(f.load(owner, ARRAY_DATA), Control.OTHERWISE)
    f.ret(f.c("PyObject_Vectorcall", otherwise, arguments, count, names))
    return f


def _write_told(module: ir.Module) -> Function:
    """(control, arguments, count): the error that is set leaves as FAILED raises it; gives 0.

    What is no `Exception`, as of Ctrl-C, leaves as it is.
    """
    f = Function(module, "pyrelay_told", 3)
    control, arguments, count = f.parameters
    expected = f.c("PyErr_ExceptionMatches", f.load(control, Control.EXCEPTION), returns=INT32)
    with f.when(expected.equals(0)):
        f.ret(0)
    place = f.address(f.local_words(3))  # PyErr_Fetch writes all of it
    for name in ("PyErr_Fetch", "PyErr_NormalizeException"):
        f.c(name, place, place + WORD, place + 2 * WORD, returns=VOID)
    error, trace = f.load(place, WORD), f.load(place, 2 * WORD)
    with f.when(trace.differs(0)):
        f.do("PyException_SetTraceback", error, trace)
        f.c("Py_DecRef", trace, returns=VOID)
    f.c("Py_DecRef", f.load(place), returns=VOID)
    given = f.c("PyTuple_New", count + 1)
    with f.when(given.equals(0), likely=False):
        f.c("Py_DecRef", error, returns=VOID)
        f.ret(0)
    f.do("PyTuple_SetItem", given, f.number(0), error)
    with f.counting(count) as index:
        argument = _shared(f, f.load(arguments + (index << 3)))
        f.do("PyTuple_SetItem", given, index + 1, argument)
    raised = f.c("PyObject_CallObject", f.load(control, Control.FAILED), given)
    f.c("Py_DecRef", given, returns=VOID)
    f.ret(raised)
    return f


def _shared(f: Function, value: Word) -> Word:
    f.c("Py_IncRef", value, returns=VOID)
    return value
