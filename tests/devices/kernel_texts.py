"""Small kernels that the tests of the run time launch."""

ADD = """from pyrelay.devices.compiler.vocabulary import *
def kernel(block, begin, end):
    a = param_i64(block, 1)
    b = param_i64(block, 2)
    o = param_i64(block, 3)
    for i in range(begin, end):
        store_f64(o, i, load_f64(a, i) + load_f64(b, i))
    return 0
"""

SCALE = """from pyrelay.devices.compiler.vocabulary import *
def kernel(block, begin, end):
    a = param_i64(block, 1)
    s = param_f64(block, 2)
    o = param_i64(block, 3)
    for i in range(begin, end):
        store_f64(o, i, load_f64(a, i) * s)
    return 0
"""

POSITIVE = """from pyrelay.devices.compiler.vocabulary import *
def kernel(block, begin, end):
    a = param_i64(block, 1)
    for i in range(begin, end):
        if load_f64(a, i) < 0.0:
            record = param_i64(block, 0)
            store_slot_i64(record, 0, 0)
            store_slot_i64(record, 1, i)
            return 1
    return 0
"""

ENDLESS = """from pyrelay.devices.compiler.vocabulary import *
def kernel(block, begin, end):
    record = param_i64(block, 0)
    poll = load_ordered_i64(record, 16)
    process = load_ordered_i64(record, 17)
    rounds = 0
    while rounds >= 0:
        rounds = (rounds + 1) & 1048575
        if rounds == 0:
            status = call_address(poll, process, 0, 0)
            if status != 0:
                return status
    return 0
"""
