"""The operators: one record each, in the module that says what kind it is.

Importing this package registers all of them in `pyrelay.ir.op.OPS`.

    arithmetic  functions  logic    one result element from one element of each operand
    special                         likewise: the gamma function and its kin
    shape  index                    elements moved, chosen, replaced
    reduce                          many elements to one, and running sums
    order                           which element comes before which
    normalised                      softmax and its logarithms, with derivatives of their own
    contract  convolution           products of matrices and of images
    linalg  least_squares  fourier  decompositions, transforms, by NumPy
    program                         extents, checks, tapes: what programs need besides numbers
    host                            calls of Python that do something besides computing

`elementwise` says how an elementwise record is made, `relations` how types are computed,
`python_numbers` what the ops mean on Python's own numbers, `samples` what tests call them with.
"""

from pyrelay.ops import (
    arithmetic,
    contract,
    convolution,
    decompositions,
    fourier,
    functions,
    host,
    index,
    least_squares,
    linalg,
    logic,
    normalised,
    order,
    program,
    reduce,
    running,
    shape,
    special,
)

__all__ = [
    "arithmetic", "contract", "convolution", "decompositions", "fourier", "functions", "host",
    "index", "least_squares", "linalg", "logic", "normalised", "order", "program", "reduce",
    "running", "shape", "special",
]
