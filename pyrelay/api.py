"""What users call: `jit`, `grad`, `value_and_grad`, and the objects they give.

In: Python functions. Out: callables that specialise themselves by the structure and types of their
arguments, keep what they compiled, and notice when a name they read means something else now.
"""

from __future__ import annotations

import functools
import inspect
import threading
import types as python_types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from pyrelay import config, errors
from pyrelay.frontend.parse import parse
from pyrelay.infer import values as V
from pyrelay.infer.specialise import Specialised, specialise
from pyrelay.infer.structure import (
    Flattened,
    Key,
    LeafResult,
    NodeResult,
    assemble,
    flatten,
    restore,
)
from pyrelay.tracebacks import trimmed, user_facing


class CacheInfo(NamedTuple):
    """How often a function was called and compiled, and for how many structures of arguments."""

    signatures: int
    compilations: int
    hits: int


class Text(str):
    """Source or IR text that a notebook shows as it is."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        from html import escape

        return f"<pre>{escape(self)}</pre>"

    def __repr__(self) -> str:
        return str(self)


@dataclass(frozen=True, slots=True)
class _Program:
    """One compiled specialisation."""

    spec: Specialised
    run: Callable[..., Any]
    kept: Mapping[int, int]  # result number of the module -> position among what `run` gives
    native: bool  # `run` checks its arguments itself
    flat_arguments: bool  # all arguments are positional arrays and numbers

    def accepts(self, flat: Flattened) -> bool:
        """True if every guard holds for these leaves; appends the leaves of captured objects."""
        spec = self.spec
        if not all(guard.holds() for guard in spec.names):
            return False
        for hidden in spec.hidden:
            try:
                if flatten(hidden.read(), flat, hidden.name) != hidden.key:
                    return False
            except (KeyError, ValueError, AttributeError):
                return False
        if any(flat.leaves[k] != v for k, v in spec.static.items()):
            return False
        if spec.extents:
            values = {s: flat.leaves[leaf].shape[axis] for s, (leaf, axis) in spec.axes.items()}
            return all(guard.holds(values) for guard in spec.extents)
        return True

    def __call__(self, flat: Flattened) -> Any:
        spec = self.spec
        leaves = flat.leaves
        if spec.mutated:
            _check_overlap(spec, leaves)
        prepared = [_prepared(leaves[k], spec.leaf_names[k]) for k in spec.parameters]
        results = self.run(*prepared)
        for leaf in spec.mutated:
            given = prepared[spec.parameters.index(leaf)]
            if given is not leaves[leaf]:
                np.copyto(leaves[leaf], given)
        numbered = _Numbered(results, self.kept)
        made: dict[int, Any] = {}
        for change in spec.changes:
            parts = [
                assemble(c, numbered, leaves, flat.containers, made) for c in change.children
            ]
            restore(flat.containers[change.number], change.kind, change.names, parts)
        return assemble(spec.result, numbered, leaves, flat.containers, made)


class _Numbered:
    """Results by their number in the module."""

    __slots__ = ("kept", "results")

    def __init__(self, results: Any, kept: Mapping[int, int]) -> None:
        self.results, self.kept = results, kept

    def __getitem__(self, number: int) -> Any:
        return self.results[self.kept[number]]


def _prepared(leaf: Any, name: str) -> Any:
    """A leaf as a program takes it: numbers as they are, arrays C-contiguous and native."""
    if isinstance(leaf, np.ndarray):
        if not leaf.ndim:
            return leaf[()]
        if type(leaf) is np.ndarray and leaf.flags.c_contiguous and leaf.flags.aligned and (
            leaf.dtype.isnative
        ):
            return leaf
        return np.array(leaf, dtype=leaf.dtype.newbyteorder("="), order="C", subok=False)
    if type(leaf) is int and not -(2**63) <= leaf < 2**63:
        raise errors.InvalidValueError(
            f"{name} is {leaf}, which does not fit into 64 bits.",
            hints=("pass it as a float",),
        )
    return leaf


def _check_overlap(spec: Specialised, leaves: Sequence[Any]) -> None:
    """Refuse different arrays that share memory if one of them is written."""
    arrays = [(k, leaves[k]) for k in spec.parameters if isinstance(leaves[k], np.ndarray)]
    for k, written in ((k, a) for k, a in arrays if k in spec.mutated):
        if not written.flags.writeable:
            raise ValueError(f"assignment destination is read-only: {spec.leaf_names[k]}")
        for j, other in arrays:
            if j != k and np.may_share_memory(written, other):
                raise errors.AliasError(
                    f"the function writes into {spec.leaf_names[k]}, which shares memory with "
                    f"{spec.leaf_names[j]}.",
                    hints=(f"pass a copy: {spec.leaf_names[j]}.copy()",),
                )


def _direct_call(
    program: _Program, otherwise: Callable[..., Any], hits: list[int]
) -> Callable[..., Any] | None:
    """A call that goes straight to the program's native entry, None if its arguments need more.

    For programs of flat arguments, whose entry checks types and extents itself: what is left are the
    names that the program read, compared by identity. Whatever does not fit goes `otherwise`.
    """
    spec = program.spec
    shape = _direct_result(spec.result, program.kept)
    flat = spec.parameters == tuple(range(len(spec.leaf_names))) and all(
        "[" not in n and "." not in n for n in spec.leaf_names
    )
    plain = not (spec.hidden or spec.static or spec.changes or spec.mutated)
    if shape is None or not program.native or not (flat and plain and program.flat_arguments):
        return None
    from pyrelay.devices.entry import MISMATCH

    known: dict[str, Any] = {
        "native": program.run, "MISMATCH": MISMATCH, "otherwise": otherwise, "hits": hits,
    }
    tests = []
    for k, guard in enumerate(spec.names):
        known[f"place{k}"], known[f"object{k}"] = guard.container, guard.value
        read = {
            "item": f"place{k}.get({guard.name!r})", "cell": f"place{k}.cell_contents",
            "attribute": f"place{k}.{guard.name}",
        }[guard.kind]
        tests.append(f"{read} is object{k}")
    lines = [
        f"def make({', '.join(known)}):",
        "    def call(*args, **keywords):",
        f"        if {' and '.join(['not keywords', *tests])}:",
        "            result = native(*args)",
        "            if result is not MISMATCH:",
        "                hits[0] += 1",
        f"                return {shape}",
        "        return otherwise(*args, **keywords)",
        "    return call",
    ]
    namespace: dict[str, Any] = {}
    exec("\n".join(lines), namespace)
    call: Callable[..., Any] = namespace["make"](**known)
    return call


def _direct_result(tree: Any, kept: Mapping[int, int]) -> str | None:
    """How the result is read from the native tuple, as Python text; None if it needs more."""
    if isinstance(tree, LeafResult):
        return f"result[{kept[tree.index]}]"
    if isinstance(tree, NodeResult) and tree.kind == "tuple" and tree.cls is None:
        parts = [_direct_result(c, kept) for c in tree.children]
        if all(p is not None for p in parts):
            return "(" + "".join(f"{p}, " for p in parts) + ")"
    return None


class Compiled:
    """A callable that compiles itself per structure of arguments: the base of `jit` and `grad`."""

    def __init__(self, callee: Any, function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function)
        self._callee = callee
        self._function = function
        self._table: dict[Any, list[_Program]] = {}
        self._lock = threading.RLock()
        self._compilations = 0
        self._hits = [0]
        self._direct: Callable[..., Any] = self._dispatch

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        try:
            return self._direct(*args, **keywords)
        except Exception as error:
            raise trimmed(error)  # noqa: B904 -- the same exception, its frames dropped

    def _dispatch(self, *args: Any, **keywords: Any) -> Any:
        flat = Flattened()
        key = self._key(args, keywords, flat)
        program = self._found(key, flat)
        if program is None:
            with self._lock:
                program = self._found(key, flat)
                if program is None:
                    program = self._compile(key, args, keywords)
                    again = Flattened()
                    self._key(args, keywords, again)
                    for hidden in program.spec.hidden:
                        flatten(hidden.read(), again, hidden.name)
                    flat = again
        else:
            self._hits[0] += 1
        return program(flat)

    def _key(self, args: Sequence[Any], keywords: Mapping[str, Any], flat: Flattened) -> Key:
        names = self._argument_names(len(args))
        positional = tuple(flatten(a, flat, n) for a, n in zip(args, names, strict=True))
        named = tuple((k, flatten(v, flat, k)) for k, v in keywords.items())
        return (positional, named, config.current().interpret)

    def _argument_names(self, count: int) -> Sequence[str]:
        names = self._names
        return names[:count] + tuple(f"argument {k + 1}" for k in range(len(names), count))

    @functools.cached_property
    def _names(self) -> tuple[str, ...]:
        try:
            parameters = inspect.signature(self._function).parameters.values()
        except (TypeError, ValueError):
            return ()
        return tuple(
            p.name for p in parameters
            if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
        )

    def _found(self, key: Key, flat: Flattened) -> _Program | None:
        count, objects = len(flat.leaves), len(flat.containers)
        for program in self._table.get(key, ()):
            if program.accepts(flat):
                return program
            del flat.leaves[count:], flat.names[count:], flat.containers[objects:]
            if program.spec.hidden:
                flat.seen = {i: n for i, n in flat.seen.items() if n < count + objects}
        return None

    def _specialised(self, args: Sequence[Any], keywords: Mapping[str, Any]) -> Specialised:
        from pyrelay import ops

        del ops  # the records register themselves
        return specialise(self._callee, args, keywords, parse)

    def _compile(
        self, key: Key, args: Sequence[Any], keywords: Mapping[str, Any]
    ) -> _Program:
        from pyrelay import pipeline

        spec = self._specialised(args, keywords)
        run = pipeline.compiled(spec)
        written = set(spec.mutated.values())
        order = [k for k in range(len(spec.module.main.body.results)) if k not in written]
        leaf_kinds = ("number", "array", "scalar")
        flat = not key[1] and all(k[0] in leaf_kinds for k in key[0])
        program = _Program(spec, run, {k: n for n, k in enumerate(order)}, not key[2], flat)
        self._table.setdefault(key, []).append(program)
        self._compilations += 1
        direct = _direct_call(program, self._dispatch, self._hits)
        if direct is not None:
            self._direct = direct
        return program

    # -- looking inside ---------------------------------------------------------------------------

    @user_facing
    def ir(self, *args: Any, stage: str = "infer", **keywords: Any) -> Text:
        """The program for these arguments as text, at the end of a stage.

        stage: parse, infer, grad, optimise, fuse or plan.
        """
        from pyrelay import pipeline
        from pyrelay.ir.show import show

        if stage == "parse":
            return Text(show(parse(_plain(self._function)).module))
        spec = self._specialised(args, keywords)
        if stage == "plan":
            module = pipeline.lowered(spec.module, "fuse")
            return Text(pipeline.show_plan(pipeline.planned(spec, module)))
        return Text(show(pipeline.lowered(spec.module, stage)))

    @user_facing
    def code(self, *args: Any, **keywords: Any) -> Text:
        """The source of the kernels that run these arguments, and the plan that calls them."""
        from pyrelay import pipeline

        spec = self._specialised(args, keywords)
        made = pipeline.planned(spec, pipeline.lowered(spec.module, "fuse"))
        kernels = "\n\n".join(f"# {k.name}\n{k.source.strip()}" for k in made.kernels)
        listing = "\n".join("# " + line for line in pipeline.show_plan(made).splitlines())
        return Text(f"{kernels}\n\n{listing}\n")

    def cache_info(self) -> CacheInfo:
        """Structures of arguments seen, programs compiled, calls served by one compiled before."""
        return CacheInfo(len(self._table), self._compilations, self._hits[0])

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else python_types.MethodType(self, instance)


class Jitted(Compiled):
    """A compiled Python function; `py` is the function itself."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(V.Known(function), function)
        self.py = function
        self.__pyrelay__ = ("jit", function, {})

    def __repr__(self) -> str:
        return f"<pyrelay.jit {self.__qualname__}>"

    def __reduce__(self) -> Any:
        return (jit, (self.py,)) if "<locals>" not in self.py.__qualname__ else (
            object.__reduce__(self)
        )


class Derived(Compiled):
    """A compiled derivative of a function."""

    def __init__(self, kind: str, function: Any, options: dict[str, Any]) -> None:
        callee = V.Derivative(V.Known(function), kind, **options)
        super().__init__(callee, _plain(function))
        self.__pyrelay__ = (kind, function, options)

    def __repr__(self) -> str:
        return f"<pyrelay.{self.__pyrelay__[0]} of {self.__qualname__}>"


def _plain(function: Any) -> Any:
    """The Python function at the bottom of transforms."""
    while hasattr(function, "__pyrelay__"):
        function = function.__pyrelay__[1]
    return function


def jit(function: Callable[..., Any] | None = None) -> Any:
    """Compile a Python function over NumPy arrays; `@jit` and `@jit()` are the same.

    The result is called like the function. It compiles at the first call with arguments of a new
    structure or element type; other array sizes need no new compilation. Arguments that the function
    writes into are written, as plain Python would. Raises a PyrelayError, at the first call, for what
    cannot be compiled, and whatever the function raises.
    """
    if function is None:
        return jit
    if isinstance(function, Compiled):
        return function
    if not callable(function):
        raise errors.TypeMismatchError(f"jit takes a function, not {type(function).__name__}.")
    return Jitted(function)


def grad(
    function: Callable[..., Any], argnums: int | Sequence[int] = 0,
    argnames: str | Sequence[str] | None = None, has_aux: bool = False,
) -> Derived:
    """The gradient of a real scalar function, compiled.

    argnums: positions of the arguments to differentiate (a tuple gives a tuple of gradients).
    argnames: their names, instead of positions. has_aux: the function returns (value, auxiliary),
    and the result is (gradient, auxiliary). The gradient has the structure, shapes and dtypes of
    the argument; leaves that are not floating are None. Raises GradientError at the call for a
    result that is no real scalar or an argument that has no derivative. Reverse mode; any order.
    """
    return Derived("grad", function, _options(argnums, argnames, has_aux))


def value_and_grad(
    function: Callable[..., Any], argnums: int | Sequence[int] = 0,
    argnames: str | Sequence[str] | None = None, has_aux: bool = False,
) -> Derived:
    """Like `grad`, and gives (value, gradient), or ((value, auxiliary), gradient) with has_aux."""
    return Derived("value_and_grad", function, _options(argnums, argnames, has_aux))


def _options(argnums: Any, argnames: Any, has_aux: bool) -> dict[str, Any]:
    numbers = argnums if isinstance(argnums, int) else tuple(argnums)
    names = argnames if argnames is None or isinstance(argnames, str) else tuple(argnames)
    return {"argnums": numbers, "argnames": names, "has_aux": bool(has_aux)}


__all__ = ["CacheInfo", "Compiled", "Derived", "Jitted", "Text", "grad", "jit", "value_and_grad"]
