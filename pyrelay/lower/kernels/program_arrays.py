"""The arrays of a scalar program: where they are, and the loops that fill and store them.

In: the function of a scalar program, an emitter. Out: which memory each array variable stands for
(`opt.storage` decides), and statements that compute arrays, or parts of them, element by element.
Arrays without memory are computed where they are read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyrelay.ir import dims, walk
from pyrelay.ir.dims import Extent
from pyrelay.ir.nodes import Atom, Function, Let, OpCall, Var
from pyrelay.ir.types import TensorType, bool_, i64
from pyrelay.lower.kernels.elements import Elements
from pyrelay.lower.kernels.kernel import (
    ARRAY,
    SCRATCH,
    Array,
    Assign,
    If,
    Local,
    Parameter,
    Pointed,
)
from pyrelay.lower.kernels.rule_emitter import RuleEmitter
from pyrelay.lower.kernels.values import Value
from pyrelay.opt import places
from pyrelay.opt.bounds import Bounds
from pyrelay.opt.exchanges import Turn
from pyrelay.opt.given_back import GivenBack
from pyrelay.opt.shapes import is_array, shape_of
from pyrelay.opt.storage import storage_of

Index = tuple[Value, ...]
#: Elements of an array of known size that a kernel keeps for itself, in registers if it can.
LARGEST_LOCAL = 64


class ProgramArrays:
    """Memory of the arrays of a scalar program.

    `calls` is what `storage_of` is told of functions that the program calls, `written` the
    parameters, by number, that others of its kernel store into.
    """

    def __init__(
        self, s: RuleEmitter, elements: Elements, function: Function, calls: GivenBack,
        written: frozenset[int],
    ) -> None:
        self.s, self.elements = s, elements
        found = storage_of(function.body.lets, function.body.results, calls)
        assert found is not None, "fusion takes only loops that can use their arrays in place"
        self.storage = found
        self.scratch: list[Extent] = []  # bytes of each buffer that the kernel needs
        self._addressed = found.addressed
        self._bounds = Bounds(function.body)
        #: Whether an array of an extent that only the call knows may be one that nobody has
        #: written: such ones must not lie in frames (`opt/fills`), however short they prove to be.
        self._unwritten = any(
            walk.is_call(let, "undef") and not _is_known(let.outs[0])
            for let in walk.nested_lets(function.body)
        )
        self._homes: dict[Var, Array] = {}
        positions = {p: k for k, p in enumerate(function.params) if is_array(p)}
        for param, position in positions.items():
            assert isinstance(param.type, TensorType)
            self._homes[param] = Parameter(ARRAY, position, param.type.dtype)
        #: Positions of the parameters that are written.
        self.written = {k for p, k in positions.items() if p in found.written} | written
        elements.home = self.home

    def home(self, atom: Atom) -> tuple[Array, bool] | None:
        """The memory that an array variable stands for and whether it is written, if it has any."""
        if not isinstance(atom, Var):
            return None
        root = self.storage.buffers.get(atom, atom)
        array = self._homes.get(root)
        if array is None:
            return None
        if isinstance(array, Parameter) and array.role == ARRAY and array.position in self.written:
            return array, True
        return array, root in self.storage.written or isinstance(array, Pointed)

    def position(self, atom: Atom) -> int:
        """The number of the parameter in whose buffer a result stands in the end."""
        assert isinstance(atom, Var)
        root = self.storage.buffers.get(atom, atom)
        array = self._homes[self.storage.ends.get(root, root)]
        assert isinstance(array, Parameter)
        return array.position

    def is_own(self, var: Var) -> bool:
        """Whether an array needs memory of its own."""
        return var in self.storage.own

    def create(self, var: Var) -> None:
        """Gives an array memory of its own."""
        ty = var.type
        assert isinstance(ty, TensorType)
        bound = self._bounds.of(var)
        assert bound is not None
        size = dims.product(bound)
        in_frame = var not in self._addressed and (_is_known(var) or not self._unwritten)
        if isinstance(size, int) and size <= LARGEST_LOCAL and in_frame:
            self._homes[var] = self.s.local_array(ty.dtype, max(size, 1))
            return
        self._homes[var] = Parameter(SCRATCH, len(self.scratch), ty.dtype)
        self.scratch.append(dims.multiply(size, ty.dtype.size))

    # -- arrays that change places -------------------------------------------------------------

    def moves(self, array: Atom, address: Local) -> None:
        """An array is in another buffer from here on."""
        assert isinstance(array, Var)
        home = self._homes[self.storage.buffers.get(array, array)]
        assert isinstance(home, Pointed)
        self.s.emit(Assign(home.address, address))

    def address(self, place: Var) -> Value:
        """The address that a place, or an array in one, has now."""
        array = self._homes[place if place in self._homes else self.storage.buffers[place]]
        if isinstance(array, Pointed):
            return self.s.now(Value(self.s, array.address, i64, self.s.scope))
        assert isinstance(array, Parameter)
        return self.s.address(array)

    def point(self, place: Var, address: Local) -> None:
        """Makes a variable what holds the address of a place."""
        assert isinstance(place.type, TensorType)
        self._homes[place] = Pointed(place.type.dtype, address)

    def enter(self, turns: Sequence[Turn]) -> None:
        """Takes over the places of arrays that a loop makes change them."""
        for turn in turns:
            address = Local(i64, variable=True)
            self.s.emit(Assign(address, self.address(turn.before).operand))
            self.point(turn.place, address)

    def turn(self, turns: Sequence[Turn]) -> None:
        """Puts arrays where the next round of a loop finds them."""
        moving = [t for t in turns if t.after is not t.place]
        held = [self.s.copy(self.address(t.after)) for t in moving]
        for each, address in zip(moving, held, strict=True):
            array = self._homes[each.place]
            assert isinstance(array, Pointed)
            self.s.emit(Assign(array.address, address.operand))

    def settle(self) -> None:
        """Copies arrays that have changed places into the buffers where they are to be found."""
        s = self.s
        by_shape: dict[tuple[Extent, ...], list[tuple[Var, Var]]] = {}
        for place, buffer in self.storage.ends.items():
            by_shape.setdefault(shape_of(place), []).append((place, buffer))
        for shape, pairs in by_shape.items():
            moved = s.const(False, bool_)
            for place, buffer in pairs:
                differ = s.primitive("not_equal", self.address(place), self.address(buffer))
                moved = s.primitive("logical_or", moved, differ)
            with s.body() as statements, s.loop(0, s.extent(dims.product(shape))) as k:
                held = [s.load(self._homes[place], k, parallel=False) for place, _ in pairs]
                for (_, buffer), value in zip(pairs, held, strict=True):
                    s.store(self._homes[buffer], k, value, parallel=False)
            s.emit(If(moved.operand, tuple(statements)))

    # -- writing -------------------------------------------------------------------------------

    def fill(self, let: Let) -> None:
        """Computes an array into memory of its own."""
        for out in let.outs:
            self.create(out)
        if walk.is_call(let, "undef"):
            return
        shape = shape_of(let.outs[0])

        def element(index: Index) -> None:
            values = self.elements.apply(let, index, repeatable=False)
            for out, value in zip(let.outs, values, strict=True):
                self._put(out, index, value)

        self._over(shape, element)

    def look_at(self, let: Let) -> None:
        """Computes the elements of an array for the errors that this may raise."""

        def element(index: Index) -> None:
            self.elements.apply(let, index, repeatable=False)

        self._over(shape_of(let.outs[0]), element)

    def copy(self, value: Atom, into: Var) -> None:
        """Copies an array into the memory of another one, unless it stands there."""
        self.copy_to(value, self.storage.buffers.get(into, into))

    def copy_to(self, value: Atom, place: Var) -> None:
        """Copies an array to a place, unless it stands there."""
        source, target = self.home(value), self._homes[place]
        maker = self.elements.lets.get(value) if isinstance(value, Var) else None
        if walk.is_call(maker, "undef"):
            return
        if source is not None and source[0] is target:
            return
        shape = shape_of(place)

        def element(index: Index) -> None:
            new = self.elements.value(value, index)
            self.s.store(target, self.s.ravel(index, shape), new, parallel=False)

        self._over(shape, element)

    def copy_together(self, pairs: Sequence[tuple[Atom, Var]]) -> None:
        """Copies arrays of one shape into the memory of others: of all of them an element is
        computed before any is stored."""
        targets = [self._homes[self.storage.buffers.get(into, into)] for _, into in pairs]
        shape = shape_of(pairs[0][1])

        def element(index: Index) -> None:
            new = [self.elements.value(value, index) for value, _ in pairs]
            at = self.s.ravel(index, shape)
            for target, value in zip(targets, new, strict=True):
                self.s.store(target, at, value, parallel=False)

        self._over(shape, element)

    def update(self, out: Var, call: OpCall) -> None:
        """Stores into a part of an array or of its copy `out`, or adds to it."""
        chain, value = self.storage.destination(call)
        base = chain[0].args[0]
        if self.is_own(out):
            self.create(out)
            self.copy(base, out)
            base = out
        parts = [self._part(update) for update in chain]
        adds = chain[-1].op.name in ("index_add", "slice_add")

        def place_of(index: Index) -> Index:
            for part in reversed(parts):
                index = part(index)
            return index

        behind = self.storage.behind.get(out, {})
        shape = places.part_shape(chain[-1])
        kept = self._kept(base, place_of, shape[0], max(behind.values())) if behind else []

        def element(index: Index) -> None:
            place = place_of(index)
            for var, distance in behind.items():
                self.elements.preset(var, index, self.s.now(kept[distance - 1]))
            new = self.elements.value(value, index)
            if adds:
                new = self.s.primitive("add", self._get(base, place), new)
            old = [self._get(base, place)] if kept else []
            self._put(base, place, new)  # which may be a kept element as it is
            following = [*old, *map(self.s.now, kept[:-1])]
            for variable, element_now in reversed(list(zip(kept, following, strict=True))):
                self.s.assign(variable, element_now)

        self._over(shape, element)

    def _kept(
        self, base: Atom, place_of: Callable[[Index], Index], count: Extent, most: int
    ) -> list[Value]:
        """Variables for the elements of a vector before the first that is replaced, nearest first,
        which hold them if any is."""
        s = self.s
        array = self.home(base)
        assert array is not None
        kept = [s.variable(s.const(0, array[0].dtype)) for _ in range(most)]
        with s.body() as statements:
            for distance, variable in enumerate(kept, 1):
                first = place_of((s.const(-distance, i64),))
                s.assign(variable, self._get(base, first))
        s.emit(If(s.primitive("greater", s.extent(count), 0).operand, tuple(statements)))
        return kept

    def _part(self, update: OpCall) -> Callable[[Index], Index]:
        """The index in an array of each element of the part that an update replaces."""
        s = self.s
        if "sizes" in update.attrs:
            starts = [s.extent(e) for e in update.attrs["starts"]]
            steps = [s.extent(e) for e in update.attrs["steps"]]
            return lambda index: tuple(
                start + k * step for start, k, step in zip(starts, index, steps, strict=True)
            )
        axes = update.attrs["axes"]
        at = [self.elements.value(a, ()) for a in update.args[2:]]
        positions = dict(zip(axes, at, strict=True))

        def whole(index: Index) -> Index:
            rest = iter(index)
            rank = len(shape_of(update.args[0]))
            return tuple(positions[a] if a in positions else next(rest) for a in range(rank))

        return whole

    def _over(self, shape: Sequence[Extent], each: Callable[[Index], None]) -> None:
        """Runs `each` at every index below `shape`."""

        def level(index: Index) -> None:
            if len(index) == len(shape):
                each(index)
                return
            extent = shape[len(index)]
            if extent == 1:
                level((*index, self.s.const(0, i64)))
                return
            with self.s.loop(0, self.s.extent(extent)) as k:
                level((*index, k))

        level(())

    def _put(self, var: Atom, index: Index, value: Value) -> None:
        found = self.home(var)
        assert found is not None
        self.s.store(found[0], self.s.ravel(index, shape_of(var)), value, parallel=False)

    def _get(self, var: Atom, index: Index) -> Value:
        found = self.home(var)
        assert found is not None
        return self.s.load(found[0], self.s.ravel(index, shape_of(var)), parallel=False)


def _is_known(array: Var) -> bool:
    """Whether a type says how many elements there are."""
    return all(isinstance(size, int) for size in shape_of(array))
