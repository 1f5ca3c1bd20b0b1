"""Random programs that failed once, cut down to what it took."""

from __future__ import annotations

PROGRAMS = {
    "a captured variable that another branch sets to a number": """
def program(x, y, n, a, b):
    if x > 0:
        x = 3.0
        def p10(z11, w=1):
            if np.any(b > z11):
                return w
            return z11
        x = p10(x)
    elif n:
        b = 1.0
    return x + np.sum(b), n, a
""",
    "sizes of a list made in a branch, and of an argument": """
def program(x, y, n, a, b):
    for x in a:
        if y > n:
            b = np.array([x] * len(a))
    return 1 * a
""",
    "an array read before it is written, used after a raise": """
def program(x, y, n, a, b):
    m2 = np.outer(a, b)
    b[1] = 0
    if y > -3.0:
        raise ValueError
    return np.sum(m2)
""",
}
