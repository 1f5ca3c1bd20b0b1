"""Every name a kernel's text may import, in one place.

In: nothing; out: ``routine``, and the intrinsics of ``memory_access``, ``arithmetic``, ``calls``
``remainders``, ``true_quotients`` and ``vector_math``.
"""

from pyrelay.devices.compiler.kernel_language import Intrinsic
from pyrelay.devices.routines import (
    arithmetic,
    calls,
    memory_access,
    remainders,
    true_quotients,
    vector_math,
)
from pyrelay.devices.routines.calls import routine

for _module in (memory_access, arithmetic, calls, remainders, true_quotients, vector_math):
    globals().update(
        {name: value for name, value in vars(_module).items() if isinstance(value, Intrinsic)}
    )

__all__ = sorted(
    name for name, value in globals().items() if isinstance(value, Intrinsic) or value is routine
)
