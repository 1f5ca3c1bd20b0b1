"""Programs on disk: a later process calls what this one compiled, without compiling anything.

    descriptions  Python objects as digests that mean the same in every process
    places        objects found again in another process, by the way that leads to them
    records       what is kept of a program, as bytes and back
    programs      keeping a program and finding one again
"""

from pyrelay.store.programs import Called, find, keep

__all__ = ["Called", "find", "keep"]
