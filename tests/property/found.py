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
    "many exceptions on their way at once": """
def program(x, y, n, a, b):
    m = np.outer(a, b)
    p = lambda z: tame(m[1, int(np.trace(m)) % len(a)] if n in (0, 2, 3) else np.trace(m))
    try:
        f = tame(strict(m[n % len(a), -1], 'here'))
        for v in b:
            if p(v) > a[n % len(a)]:
                y = tame(p(m[n % len(a), (n + 1) % len(a)]))
            else:
                a, b = b, a
            x, y = y, x
    except (ValueError, KeyError) as error:
        f = tame(y)
    except IndexError:
        f = 0.25
    return x + 2 * y + f, n, a + 2 * b
""",
    "a list that one branch makes longer in a try": """
def program(x, y, n, a, b):
    g = []
    try:
        f = tame(strict(a[0], 'here'))
        if x < y or np.any(a > y):
            g.append(tame(1.0))
            if x > 7.0 and len(g) < n:
                raise ValueError(f'number {n}')
        else:
            x, y = y, x
    except ValueError:
        f = 0.25
    return x + 2 * y + f + sum(g) + len(g), n, a
""",
    "a try in a try in a loop": """
def program(x, y, n, a, b):
    for k in range(n):
        try:
            f = tame(strict(a[k % len(a)], 'here'))
            try:
                h = tame(strict(b[k % len(a)] + f, 'there'))
                g = np.outer(a, b)[k % len(a), -1]
            except ValueError:
                h = 0.5
            x = tame(x + h)
        except (ValueError, KeyError) as error:
            y = tame(y + len(str(error)))
    return x + 2 * y, n, a
""",
}
