"""What the planner asks of a device: the text of its kernels, and its library.

In: nothing; `devices` makes one per kind of device. Out: `Target`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyrelay.ir.types import DType
from pyrelay.lower.kernels.kernel import Kernel
from pyrelay.lower.planning.encoded import Ufunc
from pyrelay.records import dataclass


@dataclass(frozen=True, slots=True)
class PanelKernel:
    """A product of matrices whose right operand lies in panels, and the kernel that lays it.

    `source` takes the parameters of `MatmulKernel.source`, but panels for b; for whether b is
    transposed, how many matrices it is, side by side; and as n the columns of one of them, which
    its parallel axis and the kernel that finishes the product count. There are no batch axes. The
    parameters of `lays`: addresses of the matrix and the panels; k, n as above; elements from one
    line of the matrix to the next; 1 or 0 for whether it is transposed. Its parallel axis counts
    panels of `columns` columns, each with `rows` rows or a multiple of them. `MatmulKernel.source`
    takes panels too if a has one row: 2 stands for whether b is transposed then. `laying` and
    `single` are texts of parts that laying panels calls, and a product of one row.
    """

    source: str
    lays: str
    columns: int
    rows: int
    laying: tuple[str, ...] = ()
    single: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MatmulKernel:
    """A matrix product. Parameters in order: addresses of a, b and c; m, n, k; 1 or 0 for whether a
    is transposed, whether b is, and whether the product is added to c; elements from one line of a,
    b and c to the next, as they lie in memory; the number of batch axes; the address of a kernel
    that finishes the product (`lower/planning/finishing.py`) or 0, and how many operands it has;
    for each batch axis its extent and the strides of a and of b along it, in elements; those
    operands. Where `finishes` is 0 the kernel knows no such kernels, else that is the most operands
    it takes. `panels` computes the same in loops that do not change the right operand, if the
    device has it.

    The parallel axis counts blocks of `row_unit` by `column_unit` elements of each product, and one
    multiplication with its addition takes about `picoseconds` on a core. `ways` gives the texts of
    parts that the kernel is likely to call where m, n and k are these, None where they are not
    known, and a and b are transposed or not.
    """

    source: str
    row_unit: int
    column_unit: int
    picoseconds: int
    finishes: int = 0
    panels: PanelKernel | None = None
    ways: Callable[[Sequence[int | None], bool, bool], Sequence[str]] | None = None


@dataclass(frozen=True, slots=True)
class ConvolutionSizes:
    """Extents of a convolution: `channels` and `outputs` are those of a group; of each of three
    axes those of the image, of the weights and of the outputs, stride, dilation, and zeros before
    the image."""

    batch: int
    groups: int
    channels: int
    outputs: int
    axes: tuple[tuple[int, ...], ...]


# The products of a convolution: of an image and weights, of an image and outputs, of outputs and
# weights; results are outputs, weights, an image.
FORWARD, WEIGHTS, BACK = "forward", "weights", "back"


@dataclass(frozen=True, slots=True)
class SumParts:
    """Sums of a product in parts, which are added up by a kernel of their own. `source` takes the
    parameters of the product, but results of type `sums`, one behind the other for each part, in
    the place of the result, and the length of a part, a multiple of 32, in the place of the address
    of a kernel that finishes the product. Parameters of `totals`: addresses of the result and of
    the parts, elements of the result, parts; its parallel axis counts 32 elements."""

    source: str
    sums: DType
    totals: str


@dataclass(frozen=True, slots=True)
class ConvolutionKernel:
    """One of the three products of a convolution.

    Parameters in order: addresses of the operands and the result; entries, groups, channels and
    outputs of a group; for each of three axes: extents of the image, of the weights and of the
    outputs, stride, dilation, and how many zeros come before the image; then, where `finishes` is
    not 0, what finishes the product as `MatmulKernel` says, with the operands behind it.

    The parallel axis counts groups by blocks of `columns` outputs (in `BACK`: channels) by blocks
    of `pixels` positions of each entry, or of all of them with the channels last (in `WEIGHTS`: of
    `rows` channels and taps; in `BACK`: by entries, or by blocks of `back_pixels` positions of all
    images where that is not 0). One multiplication takes about `picoseconds` on a core. `evenly`:
    neighbouring blocks of outputs share the patches of an image. `parts`: how long sums are cut, if
    they are; such a product is finished by no other kernel. `in_registers`: a product is finished
    before it is in memory, and the address of the result is 0 where nothing else reads it. `calls`
    gives the texts of parts that the kernel is likely to call for such extents, None where they are
    not known.
    """

    source: str
    pixels: int
    rows: int
    columns: int
    picoseconds: int
    finishes: int = 0
    back_pixels: int = 0
    evenly: bool = False
    parts: SumParts | None = None
    in_registers: bool = False
    calls: Callable[[ConvolutionSizes | None], Sequence[str]] | None = None


@dataclass(frozen=True, slots=True)
class ChainKernel:
    """A convolution of one tap (or none), what every channel gives by itself, and a convolution of
    one tap, with no more memory than the result: images of up to two axes, channels first.

    Parameters in order: addresses of the image, of the weights of the three (0 for none) and of the
    result; entries, channels of the image (0 without the first convolution), channels between them,
    outputs; bands of rows of an image; for the rows and the columns what `ConvolutionKernel` takes
    for an axis; the address of the kernel for a convolution alone; for each of the three the
    address of a kernel that finishes it, in place but for the last, or 0, and how many operands
    that has (at most `finishes`); those operands.

    The parallel axis counts bands of each entry. `room`: bytes that it has for `channels` channels,
    or more, of the rows that a band of the result sees, and as many for those that it has. `calls`:
    the texts of parts that it calls.
    """

    source: str
    room: int
    channels: int
    finishes: int
    calls: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AttentionKernel:
    """Attention. Parameters in order: addresses of q, k, v, the result, the maxima and the sums of
    rows (both 0 where they are not wanted), of the scores, if they are kept, and how many rows of
    them are (none or all; 0 where `keeps` is false); rows and columns of the scores, depth of q and
    k, width of v; 1 or 0 for whether q, k and v are transposed; elements from one line of q, k and
    v to the next; 1 or 0 for whether a row without a finite score gives zeros; the address of a
    kernel that makes scores of products (`lower/kernels/attention.py`) or 0, and how many operands
    it has; where `scales`, 1 if all it does is to multiply by a number, 2 if it divides, else 0,
    and that number; the number of batch axes; for each of them its extent and the strides of q, k
    and v along it, in elements; those operands, at most `finishes`.

    The parallel axis counts blocks of `rows` rows of each entry. One multiplication with its
    addition takes about `picoseconds` on a core. `ways` are texts of parts that it is likely to
    call.
    """

    source: str
    rows: int
    picoseconds: int
    finishes: int
    keeps: bool = False
    scales: bool = False
    ways: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AttentionGradientKernel:
    """The derivative of attention. Parameters in order: addresses of q, k, v and the cotangent of
    the result; of the maxima and the sums of rows and the means of their slopes; of the cotangents
    of q, k and v, which are 0 where they are not wanted; of scores that are kept and how many rows
    of them are, as there; then those of `AttentionKernel` from the
    rows of the scores to how many operands the kernel has that makes scores; the same two for one
    that makes cotangents of products of those of scores, in place; 1 if an item is a whole entry, 0
    if it is a part of one; the batch axes; the operands of both kernels, at most `finishes` each.

    Cotangents are transposed where what they are of is, and dense. The parallel axis counts
    entries, or, for each entry, blocks of `rows` rows and then blocks of `columns` columns. One
    multiplication with its addition takes about `picoseconds` on a core. No item is a whole entry
    where `wholes` is false; nor are scores kept for such a kernel, so that there are none of them.
    `ways` as in `AttentionKernel`.
    """

    source: str
    rows: int
    columns: int
    picoseconds: int
    finishes: int
    wholes: bool = True
    ways: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class OnePassScan:
    """Long lines scanned by tiles that tell each other what they come to, so that memory is read
    once. Parameters: addresses of the operand, of memory and of the result; lines, the length of
    one, 1 or 0 for whether it runs from the end. The parallel axis counts tiles of lines.

    The memory, words of 64 bits, is zeros before: `head` of them, and `words` for each of a line's
    tiles of `tile` elements, for each `group` tiles, and for each `larger` groups. It is worth it
    from `least` elements on, of all lines together.
    """

    source: str
    least: int
    head: int
    tile: int
    group: int
    larger: int
    words: int


@dataclass(frozen=True, slots=True)
class ScanKernels:
    """A scan along an axis, line by line, in chunks of each line.

    `totals` leaves the total of every chunk but a line's last, `scan` takes them and gives the
    result. Parameters of both: addresses of the operands, of the totals and of the result; lines
    before the axis, its length, lines behind it; elements of a chunk; 1 or 0 for whether it runs
    from the end. The parallel axis counts chunks of lines.

    A chunk has at least `shortest` elements, a line at most `most` chunks, and only one where there
    are `enough` lines (or `most` is 1: then nothing is left by `totals`). A total has `nbytes`.
    `once` does fewer lines than that, where there is such a kernel.
    """

    totals: str
    scan: str
    shortest: int
    most: int
    enough: int
    nbytes: int
    once: OnePassScan | None = None


@dataclass(frozen=True, slots=True)
class ScatterKernel:
    """Rows written or added to at indices of leading axes, in the order of the indices. Parameters:
    addresses of the array, of the new rows and of each index array; the number of indices, of the
    array's rows, of elements in a row, of rows that an item owns; 1 if the array is to be filled
    with zeros before, else 0; the extents of those axes.

    The parallel axis counts ranges of rows, at most `most`. An index outside of its axis is failure
    0 of the launch, with the index, the axis and its extent.

    `many` does the same for many indices, which all items share. Rows are added in the order of
    their numbers (`SortedAdds`), which are found first: addresses of the numbers, of 32 bits, and
    of the index arrays, the extents; the parallel axis counts indices. `few` finds the numbers of
    no more than `most_few` indices and sorts them, too, and fills an array with zeros: addresses of
    the numbers, of the places that sort them, of that array and of the index arrays; how many there
    are, how many an item has (a part of `shares`), bytes of the array or 0, the extents; the
    parallel axis counts such parts, and then `zeroed` bytes of the array. Where it `counts`
    integers, whose sums are the same in any order, they are added in one step: addresses as above,
    the number of indices, of rows, of elements in a row, the extents; any number of items share the
    indices. Rows are written in three steps: numbers of the rows' last writers are cleared (their
    address), found (that, addresses of the index arrays, the extents), and those written (addresses
    of the array, of the new rows, of the numbers and the index arrays, elements in a row, the
    extents); they count rows, indices and new elements.

    `computing`, where it is not empty, adds integers to a vector at places that it computes itself:
    the address of the vector, the number of places, of elements; the kernel of which an item makes
    a value and its place, the numbers of these among its results, and its other parameters. Any
    number of items share the places.
    """

    source: str
    most: int
    many: tuple[str, ...]
    counts: bool = False
    computing: str = ""
    few: str = ""
    most_few: int = 0
    shares: int = 1
    zeroed: int = 1


@dataclass(frozen=True, slots=True)
class SortedAdds:
    """Rows added to those of an array, in the order of the places where they go.

    Parameters of `added`: addresses of the array, of the rows, of the numbers of the array's rows,
    which have 32 bits, of the places that sort these, and of a row for each chunk; how many rows
    there are, elements in one. `computing` does the same without the rows: behind these parameters
    stand the kernel that makes an element of them (`lower.kernels.row_elements`) and that kernel's
    other parameters. Both leave rows of chunks for `finished`, which has the same parameters but
    for the rows. Their parallel axes count chunks of `chunk` rows by parts of `threads` elements of
    each; where rows have fewer elements, an item has as many chunks as `threads` have room for. The
    second ones of `added` and `computing` are for rows of more than 2 * `threads` elements: there
    parts have `columns` times as many.
    """

    added: tuple[str, str]
    computing: tuple[str, str]
    finished: str
    chunk: int
    threads: int
    columns: int


@dataclass(frozen=True, slots=True)
class SortKernels:
    """Lines of numbers sorted, or the places that sort them: several short lines at once, or long
    lines digit by digit, `passes` times, each of which has `values` values.

    `lines`: addresses of the numbers and of the result; the length of a line, lines, how many of
    them an item sorts. Its parallel axis counts such items, of at most `most` lines that have at
    most `tile` elements together.

    `count`: addresses of the numbers and of memory, the length of a line. Its parallel axis counts
    `chunk` elements of each line. The memory, words of 64 bits, is zeros before: `head` of them,
    for each line and pass one a value, one a value for each `part` elements of each line, which are
    what the parallel axis of `move` counts, and for each `group` of these parts. That takes
    addresses of the numbers, of keys as they are and as they will be, of places (the same two, if
    places are asked for), of the result and of that memory; the length of a line, lines, the number
    of the pass, 1 or 0 for whether it is the last one. The first one reads the numbers, the last
    one writes the result; numbers whose greatest digits are 0 need no passes for these. A key has
    `key_bytes`, a place `place_bytes`.
    """

    lines: str
    count: str
    move: str
    passes: int
    tile: int
    most: int
    chunk: int
    part: int
    key_bytes: int
    place_bytes: int
    head: int
    values: int
    group: int


@dataclass(frozen=True, slots=True)
class LineSort:
    """Lines of numbers sorted, or the places that sort them. Parameters: addresses of the numbers,
    of the result, and of `room_bytes` for each element, of which an item uses those of the first
    line of its range; the length of a line. To partition lines also: the address of rising places,
    how many they are, and how far from those of one line to those of the next. Its parallel axis
    counts lines, and an element takes about `picoseconds` on a core."""

    source: str
    room_bytes: int
    picoseconds: int


@dataclass(frozen=True, slots=True)
class PlacesKernel:
    """Where flags are true. Parameters: the address of the flags, how many they are, the address of
    the places, how many these are. A flag takes about `picoseconds`."""

    source: str
    picoseconds: int


@dataclass(frozen=True, slots=True)
class Target:
    """A device as the planner sees it.

    emit         kernel IR -> source text.
    matmul       element type, number of batch axes -> the kernel of such products.
    convolution  element type, which product, whether channels come last -> the kernel.
    attention    element type -> the kernel; None if the device has none.
    scan         op, element type, whether the elements of a line are neighbours -> the kernels;
                 None where loops do as well.
    scatter      op, element type, number of index arrays -> the kernel; None as for scans.
    sorted_adds  element type, whether the array is zeros -> the kernels, where there are `scatter`
                 and `sort`.
    sort         op, element type, whether places need more than 32 bits, whether they are part of
                 the kernel of a loop -> the kernels; None where loops do as well.
    line_sort    op, element type -> the kernel that sorts whole lines; None as above.
    places       the kernel that writes where flags are true; None as above.
    points_inside  whether an array that a kernel is given may begin inside another one's buffer.
    parts        whether threads can do a loop for some rows of its arrays each.
    chooses      whether a number that a branch chooses is at hand, and no kernel has to look at it.
    resumes      whether the plan goes on with calls of native functions that nest too deeply for
                 the native stack, and these may store into arrays.
    chain        element type -> the kernel for several convolutions; None as above.
    attention_gradient  element type -> the kernel for the derivative of attention; None as above.
    keeps_scores  whether attention keeps small matrices of scores for its derivative.
    half_attention  type of 16-bit floats of the operands, that or float32 for the result, whether
                 probabilities are rounded to the former -> the kernel; None as above.
    half_attention_gradient  type of 16-bit floats of the operands -> the kernel, whose results are
                 float32; None where there is none for such floats.
    half_matmul  type of 16-bit floats, that or float32 for the result, number of batch axes -> the
                 kernel of their products, added up in float32; None where they are cast before.
    half_convolution  the same types, which product, whether channels come last -> the kernel, where
                 there is `half_matmul`.
    has_loop     whether programs may call a loop of a ufunc of NumPy's; None if they call none.
    splits       whether few long rows are cut into parts, as many as blocks fill the device.
    """

    emit: Callable[[Kernel], str]
    matmul: Callable[[DType, int], MatmulKernel]
    convolution: Callable[[DType, str, bool], ConvolutionKernel]
    attention: Callable[[DType], AttentionKernel] | None = None
    scan: Callable[[str, DType, bool], ScanKernels] | None = None
    scatter: Callable[[str, DType, int], ScatterKernel] | None = None
    points_inside: bool = False
    attention_gradient: Callable[[DType], AttentionGradientKernel] | None = None
    sort: Callable[[str, DType, bool, bool], SortKernels] | None = None
    sorted_adds: Callable[[DType, bool], SortedAdds] | None = None
    line_sort: Callable[[str, DType], LineSort] | None = None
    places: PlacesKernel | None = None
    keeps_scores: bool = True
    half_attention: Callable[[DType, DType, bool], AttentionKernel] | None = None
    half_attention_gradient: Callable[[DType], AttentionGradientKernel | None] = lambda of: None
    half_matmul: Callable[[DType, DType, int], MatmulKernel] | None = None
    half_convolution: Callable[[DType, DType, str, bool], ConvolutionKernel] | None = None
    splits: bool = False
    parts: bool = False
    chooses: bool = False
    resumes: bool = False
    chain: Callable[[DType], ChainKernel] | None = None
    has_loop: Callable[[Ufunc], bool] | None = None
