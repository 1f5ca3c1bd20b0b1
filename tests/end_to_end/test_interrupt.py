"""Ctrl-C ends a compiled program that would not end, wherever its loop runs."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

PROGRAM = '''
import time
import numpy as np, pyrelay

@pyrelay.jit
def scalar_while(x, step):
    while x < 1.0:
        x = x * step
    return x

@pyrelay.jit
def scalar_for(n, k):
    s = 0
    for i in range(n):
        s = (s * 3 + (i ^ k)) & 1023
    return s

@pyrelay.jit
def nested(n, k):
    s = 0
    i = 0
    while i < n:
        for j in range(k):
            s = (s ^ j) + (i & 1)
        i += 1
    return s

@pyrelay.jit
def elements(x, n):
    for i in range(n):
        x[i % len(x)] += 1.0
    return x

@pyrelay.jit
def arrays(x, n):
    for i in range(n):
        x = x @ x
    return x

@pyrelay.jit
def recursive(n, k):
    if n < 2:
        return k & 1
    return (recursive(n - 1, k) ^ recursive(n - 2, k)) & 1

@pyrelay.jit
def calls_python(x, n):
    for i in range(n):
        if time.perf_counter() < 0.0:
            x = x + 1.0
    return x

calls = [
    (scalar_while, (2.0, 0.5), (0.0, 0.5)),
    (scalar_for, (5, 3), (10**17, 3)),
    (nested, (3, 4), (10**17, 7)),
    (elements, (np.zeros(5), 7), (np.zeros(5), 10**17)),
    (arrays, (np.eye(8), 3), (np.eye(8), 10**17)),
    (recursive, (5, 1), (300, 1)),
    (calls_python, (1.0, 3), (1.0, 10**15)),
]
for function, short, endless in calls:
    function(*short)
    print("running", flush=True)
    try:
        function(*endless)
    except KeyboardInterrupt:
        print("interrupted", function.__name__, flush=True)
    function(*short)
print("done", flush=True)
'''

NAMES = ("scalar_while", "scalar_for", "nested", "elements", "arrays", "recursive", "calls_python")


def interruptible() -> None:
    """What a shell runs in the background ignores the signal, and so do its children."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_ctrl_c_interrupts_every_kind_of_endless_loop_within_a_second(tmp_path: Path) -> None:
    program = tmp_path / "endless.py"
    program.write_text(PROGRAM)
    with subprocess.Popen(
        [sys.executable, str(program)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        preexec_fn=interruptible,
    ) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        try:
            for name in NAMES:
                line = child.stdout.readline()
                assert line == "running\n", child.stderr.read()
                time.sleep(0.2)
                child.send_signal(signal.SIGINT)
                sent = time.perf_counter()
                assert child.stdout.readline() == f"interrupted {name}\n", child.stderr.read()
                assert time.perf_counter() - sent < 1.0, name
            assert child.stdout.readline() == "done\n"
        finally:
            child.kill()
