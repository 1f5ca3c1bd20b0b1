"""Every name a kernel's text may import, in one place.

In: nothing; out: the intrinsics of ``memory_access``, ``arithmetic`` and ``vector_math``.
"""

from pyrelay.devices import arithmetic, memory_access, vector_math
from pyrelay.devices.kernel_language import Intrinsic

for _module in (memory_access, arithmetic, vector_math):
    globals().update(
        {name: value for name, value in vars(_module).items() if isinstance(value, Intrinsic)}
    )

__all__ = sorted(name for name, value in globals().items() if isinstance(value, Intrinsic))
