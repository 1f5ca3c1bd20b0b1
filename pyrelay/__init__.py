"""Plain Python and NumPy, compiled and differentiated."""

# The package pyrelay.grad is loaded first, so that loading it later cannot hide the function `grad`.
import pyrelay.grad  # isort: skip
from pyrelay import config
from pyrelay.api import grad, jit, value_and_grad
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
    "TextFormatError",
    "TypeMismatchError",
    "UnboundVariableError",
    "UndefinedNameError",
    "UnsupportedOperationError",
    "UnsupportedSyntaxError",
    "config",
    "grad",
    "jit",
    "value_and_grad",
]
