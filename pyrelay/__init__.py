"""Plain Python and NumPy, compiled and differentiated."""

# The package pyrelay.grad comes first: loaded later, it would hide the function of that name.
import pyrelay.grad  # noqa: F401  # isort: skip
from pyrelay import config, nn
from pyrelay.annotations import Tensor
from pyrelay.api import (
    grad,
    hessian,
    hvp,
    jacfwd,
    jacobian,
    jacrev,
    jit,
    jvp,
    value_and_grad,
    vjp,
    vmap,
)
from pyrelay.derivative_checks import check_grads
from pyrelay.errors import (
    AliasError,
    AttributeMissingError,
    ConfigError,
    DeviceError,
    GradientError,
    IndexRangeError,
    InvalidValueError,
    InvariantError,
    KeyMissingError,
    PyrelayError,
    RecursionTypeError,
    ShapeError,
    SignatureError,
    SourceUnavailableError,
    StaticValueError,
    TextFormatError,
    TypeMismatchError,
    UnboundVariableError,
    UndefinedNameError,
    UnsupportedOperationError,
    UnsupportedSyntaxError,
)
from pyrelay.infer.structure import pack
from pyrelay.measuring import benchmark, info
from pyrelay.nn import stop_gradient
from pyrelay.profiling import profile
from pyrelay.ruled_functions import checkpoint, custom_vjp
from pyrelay.scoping import scope
from pyrelay.tuning import tune

__all__ = [
    "AliasError",
    "AttributeMissingError",
    "ConfigError",
    "DeviceError",
    "GradientError",
    "IndexRangeError",
    "InvalidValueError",
    "InvariantError",
    "KeyMissingError",
    "PyrelayError",
    "RecursionTypeError",
    "ShapeError",
    "SignatureError",
    "SourceUnavailableError",
    "StaticValueError",
    "Tensor",
    "TextFormatError",
    "TypeMismatchError",
    "UnboundVariableError",
    "UndefinedNameError",
    "UnsupportedOperationError",
    "UnsupportedSyntaxError",
    "benchmark",
    "check_grads",
    "checkpoint",
    "config",
    "custom_vjp",
    "grad",
    "hessian",
    "hvp",
    "info",
    "jacfwd",
    "jacobian",
    "jacrev",
    "jit",
    "jvp",
    "nn",
    "pack",
    "profile",
    "scope",
    "stop_gradient",
    "tune",
    "value_and_grad",
    "vjp",
    "vmap",
]
