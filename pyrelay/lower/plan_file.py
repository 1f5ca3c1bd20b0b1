"""An encoded plan as bytes and back, for the disk cache.

In: an `EncodedPlan`, or bytes that `to_bytes` made. Out: the other one.

The bytes are a JSON text (kernels, sites, parameters, results, positions) and, after it, the
arrays in NumPy's own format; nothing in them is executed or unpickled. Kernels' sources are part
of it: their object code may be gone from the cache when the plan is still there.
"""

from __future__ import annotations

import dataclasses
import io
import json
import zlib
from typing import Any

import numpy as np

from pyrelay.errors import SourceText, Span
from pyrelay.lower import boundary
from pyrelay.lower.encode import EncodedPlan
from pyrelay.lower.instructions import Kernel, Site

_RECORDS: dict[str, type[Any]] = {
    kind.__name__: kind
    for kind in (
        boundary.ArrayParameter, boundary.ScalarParameter, boundary.ObjectParameter,
        boundary.ArrayResult, boundary.ViewResult, boundary.ScalarResult,
        boundary.ParameterResult, boundary.SameResult, boundary.ObjectResult,
    )
}  # fmt: skip

_PLAIN = (type(None), bool, int, float, str)

_LENGTH = 8


def to_bytes(plan: EncodedPlan) -> bytes:
    """The plan as bytes.

    Raises TypeError where a parameter, a result or an argument of an exception is an object that
    has no text (anything but None, bool, int, float, str), an exception's class is no builtin, or
    the plan calls Python.
    """
    if plan.hosts:
        raise TypeError("A plan that calls Python cannot be stored on disk.")
    sources: dict[SourceText, int] = {}
    head = {
        "kernel_words": plan.kernel_words,
        "data_words": plan.data_words,
        "kernel_constants": plan.kernel_constants,
        "entry_slots": plan.entry_slots,
        "scratch_words": plan.scratch_words,
        "parallel": plan.parallel,
        "single": plan.single,
        "kernels": [[kernel.name, kernel.source] for kernel in plan.kernels],
        "sites": [_site_out(site, sources) for site in plan.sites],
        "parameters": [_record_out(parameter) for parameter in plan.parameters],
        "results": [_record_out(result) for result in plan.results],
        "sources": [[each.filename, each.lines, each.first_line] for each in sources],
        "arrays": len(plan.arrays),
    }
    text = zlib.compress(json.dumps(head).encode(), 1)
    file = io.BytesIO()
    file.write(len(text).to_bytes(_LENGTH, "little") + text)
    for array in (plan.code, plan.constants, *plan.arrays):
        np.save(file, array, allow_pickle=False)
    return file.getvalue()


def from_bytes(data: bytes) -> EncodedPlan:
    """The plan that `to_bytes` wrote.

    Raises ValueError, KeyError or another error of the parsers on bytes that are something else;
    the cache's checksum is what keeps those away.
    """
    length = int.from_bytes(data[:_LENGTH], "little")
    head = json.loads(zlib.decompress(data[_LENGTH : _LENGTH + length]))
    file = io.BytesIO(data)
    file.seek(_LENGTH + length)
    code, constants, *arrays = (
        np.load(file, allow_pickle=False) for _ in range(2 + head["arrays"])
    )
    sources = [SourceText(name, tuple(lines), first) for name, lines, first in head["sources"]]
    return EncodedPlan(
        code=code,
        constants=constants,
        kernel_words=tuple((word, kernel) for word, kernel in head["kernel_words"]),
        data_words=tuple((word, array) for word, array in head["data_words"]),
        entry_slots=head["entry_slots"],
        scratch_words=head["scratch_words"],
        parallel=head["parallel"],
        kernels=tuple(Kernel(name, source) for name, source in head["kernels"]),
        sites=tuple(_site_in(fields, sources) for fields in head["sites"]),
        arrays=tuple(arrays),
        parameters=tuple(_record_in(fields) for fields in head["parameters"]),
        results=tuple(_record_in(fields) for fields in head["results"]),
        single=head["single"],
        kernel_constants=tuple((word, kernel) for word, kernel in head["kernel_constants"]),
    )


def _site_out(site: Site, sources: dict[SourceText, int]) -> list[Any]:
    span = site.span
    place: list[Any] | None = None
    if span is not None:
        source = sources.setdefault(span.source, len(sources))
        place = [source, span.line, span.column, span.end_line, span.end_column, span.function]
    if not isinstance(site.exception, str):
        raise TypeError(f"{site.exception!r} cannot be stored on disk.")
    return [site.exception, [_part_out(part) for part in site.parts], site.kinds, place]


def _part_out(part: Any) -> Any:
    """A part of an exception's arguments, as JSON gives it back but for lists being tuples."""
    if isinstance(part, tuple):
        for item in part:
            _part_out(item)
    elif not isinstance(part, _PLAIN):
        raise TypeError(f"{part!r} cannot be stored on disk.")
    return part


def _site_in(fields: list[Any], sources: list[SourceText]) -> Site:
    exception, parts, kinds, place = fields
    span = Span(sources[place[0]], *place[1:]) if place is not None else None
    return Site(exception, tuple(map(_untupled, parts)), tuple(kinds), span)


def _untupled(value: Any) -> Any:
    """JSON has no tuples."""
    return tuple(map(_untupled, value)) if isinstance(value, list) else value


def _record_out(record: Any) -> list[Any]:
    values = [getattr(record, field.name) for field in dataclasses.fields(record)]
    for value in values:
        if not isinstance(value, (*_PLAIN, tuple)):
            raise TypeError(f"{value!r} cannot be stored on disk.")
    return [type(record).__name__, *values]


def _record_in(fields: list[Any]) -> Any:
    name, *values = fields
    return _RECORDS[name](*map(_untupled, values))
