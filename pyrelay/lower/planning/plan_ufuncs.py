"""Ops of a library whose loops a program calls itself: decompositions, systems, transforms.

In: the Let of an op whose schedule is "host". Out: a `UfuncCall` of the loop that NumPy's function
calls in the end, over buffers of the plan, and the error that the function raises where the loop
failed. Python runs neither before nor after it: for small arrays that is most of a call's time.
Where the device or this NumPy has no such loop, or batch axes are broadcast otherwise than as one
array against all, the op stays a call of Python (`host.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pyrelay.ir import dims
from pyrelay.ir.dims import Extent
from pyrelay.ir.nodes import Let, OpCall
from pyrelay.ir.types import TensorType
from pyrelay.lower.planning.instructions import (
    AddressOf,
    Binary,
    Copy,
    Immediate,
    Jump,
    JumpIf,
    JumpUnless,
    Operand,
    Raise,
    Slot,
    Ufunc,
    UfuncCall,
    Unary,
    Value,
    immediate,
)
from pyrelay.opt.shapes import is_array
from pyrelay.records import dataclass

if TYPE_CHECKING:
    from pyrelay.lower.planning.plan_function import FunctionPlanner

_LINALG, _FFT = "numpy.linalg._umath_linalg", "numpy.fft._pocketfft_umath"
_LETTERS = {"f32": "f", "f64": "d", "c64": "F", "c128": "D", "i32": "i"}


@dataclass(frozen=True, slots=True)
class _Form:
    """The ufunc of an op: its name, the axes of its arguments and results as its signature names
    them, and what a loop that failed means.

    A ufunc of np.fft takes a factor besides, and transforms axes that are not empty. overwrites:
    the loop writes the op's first result over its argument.
    """

    name: str
    signature: str
    error: str = ""
    module: str = _LINALG
    overwrites: bool = False


def _linalg(error: str, **signatures: str) -> dict[bool, _Form]:
    """Forms of np.linalg: that where the op's flag is not set, that where it is."""
    return {
        bool(k): _Form(name, signature, error)
        for k, (name, signature) in enumerate(signatures.items())
    }


def _fft(**signatures: str) -> dict[bool, _Form]:
    return {
        bool(k): _Form(name, signature, "", _FFT)
        for k, (name, signature) in enumerate(signatures.items())
    }


_SINGULAR, _DIVERGED = "Singular matrix", "Eigenvalues did not converge"

#: By op, and whether its flag (upper, full, inverse; of `rfft` whether the length is odd) is set.
_FORMS = {
    "solve": _linalg(_SINGULAR, solve="mm,mn->mn"),
    "inv": _linalg(_SINGULAR, inv="mm->mm"),
    "inverse": _linalg("", inv="mm->mm"),
    "det": _linalg("", det="mm->"),
    "slogdet": _linalg("", slogdet="mm->,"),
    "cholesky": _linalg(
        "Matrix is not positive definite", cholesky_lo="mm->mm", cholesky_up="mm->mm"
    ),
    "eigh": _linalg(_DIVERGED, eigh_lo="mm->m,mm", eigh_up="mm->m,mm"),
    "eigvalsh": _linalg(_DIVERGED, eigvalsh_lo="mm->m", eigvalsh_up="mm->m"),
    "svd": _linalg("SVD did not converge", svd_s="mn->mp,p,pn", svd_f="mn->mm,p,nn"),
    "svdvals": _linalg("SVD did not converge", svd="mn->p"),
    "least_squares": _linalg(
        "SVD did not converge in Linear Least Squares", lstsq="mn,mk,->nk,k,,p"
    ),
    "eig_values": _linalg(_DIVERGED, eigvals="mm->m"),
    "eig_vectors": _linalg(_DIVERGED, eig="mm->m,mm"),
    "qr_reflections": {False: _Form("qr_r_raw", "mn->p", overwrites=True)},
    "qr_product": _linalg("", qr_reduced="mn,k->mk", qr_complete="mn,n->mm"),
    "fft": _fft(fft="n->m", ifft="n->m"),
    "rfft": _fft(rfft_n_even="n->m", rfft_n_odd="n->m"),
    "irfft": _fft(irfft="n->m"),
}  # fmt: skip
_FLAGS = ("upper", "full", "inverse")


def ufunc_call(p: FunctionPlanner, let: Let, call: OpCall) -> bool:
    """Plan an op as a call of a loop; false if it is no such op."""
    if call.op.name not in _FORMS or p.program.target.has_loop is None:
        return False
    forms = _FORMS[call.op.name]
    flag = any(call.attrs.get(name, False) for name in _FLAGS)
    chosen = tuple(forms.values()) if call.op.name == "rfft" else (forms[flag],)
    arguments = [_tensor(a.type) for a in call.args]
    outs = let.outs[1:] if chosen[0].overwrites else let.outs
    planned = _Planned.of(chosen[0], arguments, [_tensor(out.type) for out in outs])
    ufuncs = [Ufunc(form.module, form.name, planned.types) for form in chosen]
    if not planned.fits or not all(map(p.program.target.has_loop, ufuncs)):
        return False
    if chosen[0].module == _FFT:
        _refuse_empty(p, let, arguments[0].shape[-1])
    addresses: list[Operand] = [
        p.scalar(a) if is_array(a) else _address(p, p.scalar(a)) for a in call.args
    ]
    if chosen[0].module == _FFT:
        one = immediate(1.0, "float32" if "f" in planned.types else "float64")
        addresses.append(_address(p, one))
    if chosen[0].overwrites:
        copy = Slot(p.make(let.outs[0]))
        p.frame.emit(Copy(copy, p.scalar(call.args[0]), p.bytes_of(call.args[0].type)))
        addresses = [copy]
    for out in outs:
        if is_array(out):
            addresses.append(Slot(p.make(out)))
        else:  # what a slot has beside a short number is 0
            slots = p.fresh(out)
            for slot in slots:
                p.frame.emit(Unary("move", slot, Immediate(0)))
            addresses.append(AddressOf(slots[0]))
    numbers = [p.program.ufunc(ufunc) for ufunc in ufuncs]
    extents, steps = p.sizes.values(planned.extents), p.sizes.values(planned.steps)
    failed = p.frame.slot()

    def called(which: int) -> None:
        p.frame.emit(UfuncCall(numbers[which], failed, tuple(addresses), extents, steps))

    if len(chosen) == 1:
        called(0)
    else:
        _by_oddness(p, arguments[0].shape[-1], called)
    if chosen[0].error:
        _raise_if(p, let, Slot(failed), np.linalg.LinAlgError, chosen[0].error)
    return True


def _address(p: FunctionPlanner, number: Value) -> AddressOf:
    """Where a number lies in memory."""
    slot = p.frame.slot()
    p.frame.emit(Unary("move", slot, number))
    return AddressOf(slot)


@dataclass(frozen=True, slots=True)
class _Planned:
    """A loop's types, extents and steps; `fits` is false where batch axes are broadcast."""

    types: str
    extents: tuple[Extent, ...]
    steps: tuple[Extent, ...]
    fits: bool

    @staticmethod
    def of(
        form: _Form, arguments: Sequence[TensorType], results: Sequence[TensorType]
    ) -> _Planned:
        """The loop's, over arrays of these types that are C-contiguous."""
        given, _, made = form.signature.partition("->")
        axes = (*given.split(","), *made.split(","))
        outer = results[0].shape[: results[0].rank - len(axes[len(arguments)])]
        extents: dict[str, Extent] = {}
        batches: list[Extent] = []
        inner: list[Extent] = []
        fits = True
        for ty, names in zip((*arguments, *results), axes, strict=True):
            own, core = (ty.shape[part] for part in _parted(ty.rank - len(names)))
            alone = all(extent == 1 for extent in own)
            fits = fits and (alone or own == outer)
            size = ty.dtype.size
            batches.append(0 if alone else dims.multiply(dims.product(core), size))
            for k, name in enumerate(names):
                extents.setdefault(name, core[k])
                inner.append(dims.multiply(dims.product(core[k + 1 :]), size))
        of_arguments, of_results = (
            "".join(_LETTERS.get(ty.dtype.name, "?") for ty in each)
            for each in (arguments, results)
        )
        if form.module == _FFT:
            of_arguments += of_arguments.lower()
            batches.insert(1, 0)
        return _Planned(
            f"{of_arguments}->{of_results}", (dims.product(outer), *extents.values()),
            (*batches, *inner), fits,
        )


def _parted(place: int) -> tuple[slice, slice]:
    return slice(place), slice(place, None)


def _by_oddness(p: FunctionPlanner, extent: Extent, called: Callable[[int], None]) -> None:
    """One of two loops, by whether an extent is even or odd."""
    odd = p.sizes.value(dims.remainder(extent, 2))
    if isinstance(odd, Immediate):
        called(odd.word)
        return
    other, end = p.frame.label("odd"), p.frame.label("transformed")
    p.frame.emit(JumpIf(odd, other))
    called(0)
    p.frame.emit(Jump(end))
    p.frame.place(other)
    called(1)
    p.frame.place(end)


def _refuse_empty(p: FunctionPlanner, let: Let, extent: Extent) -> None:
    if isinstance(extent, int):  # the op's type relation refuses 0
        return
    empty = p.frame.slot()
    p.frame.emit(Binary("eq.i64", empty, p.sizes.value(extent), Immediate(0)))
    text = "Invalid number of FFT data points (0) specified."
    _raise_if(p, let, Slot(empty), ValueError, text)


def _raise_if(
    p: FunctionPlanner, let: Let, condition: Slot, exception: type[Exception], text: str
) -> None:
    well = p.frame.label("well")
    p.frame.emit(JumpUnless(condition, well))
    p.frame.emit(Raise(p.program.site(exception, (text,), (), let.span), ()))
    p.frame.place(well)


def _tensor(ty: Any) -> TensorType:
    assert isinstance(ty, TensorType)
    return ty
