"""The process in which a first call is measured: it imports what the program needs, and no more.

In: when the process was started (`time.monotonic`), a framework, the module of its programs, a
program's name, and a file of its arguments. Out: on standard output seconds from the start to the
first result, seconds of the call, seconds of a later call, and how many kernels pyrelay compiled
(-1 for peers).

What is measured begins as a user's script does: no other workload's arguments are made, and no
module of these benchmarks is imported besides that of the programs.
"""

from __future__ import annotations

import sys
import time
from importlib import import_module


def main() -> None:
    start, (framework, module, name, arguments) = float(sys.argv[1]), sys.argv[2:6]
    import pickle

    import numpy as np  # noqa: F401 -- every program imports it, and so every framework pays

    ours = framework == "pyrelay"
    if not ours:
        # Programs are written with layers of `pyrelay.nn`, which peers' modules look up: their
        # time is without that.
        before = time.monotonic()
        import_module("pyrelay")
        start += time.monotonic() - before
    make = import_module(module).PROGRAMS[name]
    with open(arguments, "rb") as file:
        run = make(*pickle.load(file))
    before = time.monotonic()
    run()
    after = time.monotonic()
    samples = []
    for _ in range(20):
        begin = time.perf_counter()
        run()
        samples.append(time.perf_counter() - begin)
    kernels = -1
    if ours:
        from pyrelay.devices.compiler import native

        kernels = native.counts.compiled
    print(after - start, after - before, sorted(samples)[10], kernels)


if __name__ == "__main__":
    main()
