"""Programs that catch what they raise: their own exceptions, and those of operations."""

# The code is odd on purpose.
# ruff: noqa: E722, E731
from __future__ import annotations

import math

import numpy as np

from tests.users.corpus import use


@use((3.0,), (-1.0,), wrt=(0,), joins=True)
def tries_raise(x):
    try:
        if x < 0:
            raise ValueError('negative')
        y = x * 2
    except ValueError:
        y = 0.0
    return y


@use((3.0, 2.0), (1.0, 0.0), wrt=(0, 1), corners=(1,))
def tries_div(a, b):
    try:
        return a / b
    except ZeroDivisionError:
        return 0.0


@use((4.0,), (-4.0,), wrt=(0,))
def tries_sqrt(x):
    try:
        r = math.sqrt(x)
    except ValueError as e:
        r = -math.sqrt(-x)
    return r + 1


@use((np.arange(4.0), 2), (np.arange(4.0), 7), (np.arange(4.0), -9), wrt=(0,), joins=True,
    long=True)
def tries_index(x, i):
    try:
        v = x[i]
    except IndexError:
        v = -1.0
    return v * 2


@use((np.arange(4.0), 6), (np.arange(4.0), 2), wrt=(0,), joins=True, slow=True)
def tries_loop_break(x, n):
    total = 0.0
    try:
        for i in range(n):
            total += x[i]
    except IndexError as e:
        total = total * 10
    return (total, i)


@use((np.array([1.0, 0.0, 2.0, 0.0]),), joins=True)
def tries_in_loop(x):
    total = 0.0
    bad = 0
    for v in x:
        try:
            total += 1.0 / float(v)
        except ZeroDivisionError:
            bad += 1
            continue
        finally:
            total += 0.5
    return (total, bad)


@use((5,), (0,), (-3,))
def tries_types(n):
    try:
        if n == 0:
            raise KeyError('zero')
        if n < 0:
            raise IndexError(n)
        k = 1
    except KeyError:
        k = 2
    except (IndexError, TypeError) as e:
        k = 3 + e.args[0]
    else:
        k = k + 10
    finally:
        n = n + 1
    return (k, n)


@use((5,), (0,), (-3,), joins=True)
def tries_uncaught(n):
    try:
        if n == 0:
            raise KeyError('zero')
        if n < 0:
            raise IndexError(f'neg {n}')
        return 1
    except KeyError as e:
        return 2


@use((5,), (0,), (-3,))
def tries_reraise(n):
    count = 0
    try:
        try:
            if n <= 0:
                raise ValueError(f'n is {n}')
            count = 1
        except ValueError:
            count += 10
            if n < 0:
                raise
    except Exception as e:
        return (count, str(e))
    return (count, 'fine')


def helper(x):
    if x < 0:
        raise ValueError(f'bad {x}')
    return math.sqrt(x)


@use((4.0,), (-4.0,), wrt=(0,), joins=True, slow=True)
def tries_helper(x):
    try:
        return (helper(x), 'ok')
    except ValueError as e:
        return (0.0, f'caught {e}')


def search(x, v):
    for i in range(len(x)):
        if x[i] == v:
            return i
    raise LookupError('not found')


@use((np.arange(4.0), 2.0), (np.arange(4.0), 9.0), joins=True)
def tries_search(x, v):
    try:
        k = search(x, v)
    except LookupError:
        k = -1
    return k


@use((np.arange(4.0), 2), (np.arange(4.0), 9))
def tries_state(x, n):
    y = 0
    try:
        x[0] = 5.0
        y = 1
        x[n] = 7.0
        y = 2
        x[1] = 9.0
    except IndexError:
        y = y + 10
    return (x, y)


@use((3,), (0,))
def tries_bare(n):
    try:
        z = 10 // n
    except:
        z = -1
    return z


@use((3,), (0,))
def tries_return_finally(n):
    log = [0, 0]
    try:
        log[0] = 1
        if n == 0:
            return log
        log[0] = 2
    finally:
        log[1] = 5
    return log


@use((2.0,), (0.0,), (700.0,), (1000.0,), joins=True, long=True)
def tries_math(x):
    try:
        return math.log(x) + math.exp(x)
    except ValueError:
        return -1.0
    except OverflowError:
        return -2.0


@use((2.5,), (float('nan'),), (float('inf'),), joins=True)
def tries_int(x):
    try:
        return int(x)
    except (ValueError, OverflowError) as e:
        return -1


@use((0.0,), (2.0,), joins=True)
def tries_while(x):
    tries = 0
    while True:
        try:
            tries += 1
            if tries < 3:
                raise RuntimeError('again')
            r = 1.0 / x
            break
        except RuntimeError:
            continue
        except ZeroDivisionError:
            r = 0.0
            break
    return (r, tries)


class ConvergenceError(Exception):
    pass


def newton(f0, x, n):
    for i in range(n):
        if abs(x * x - f0) < 1e-09:
            return x
        x = 0.5 * (x + f0 / x)
    raise ConvergenceError(f'no convergence after {n}')


@use((2.0, 1.0, 3), (2.0, 1.0, 10), (2.0, 0.0, 5), wrt=(0,), joins=True, long=True)
def tries_newton(f0, x, n):
    try:
        return newton(f0, x, n)
    except ConvergenceError:
        return -1.0
    except ZeroDivisionError:
        return -2.0


@use((np.array([[2.0, 0.0], [0.0, 3.0]]),), (np.array([[0.0, 0.0], [0.0, 0.0]]),))
def tries_static_key(x):
    d = {'a': 1.0}
    try:
        v = d['b']
    except KeyError:
        v = 2.0
    return v + x.sum()


@use((3.0,), (-3.0,))
def tries_assert(x):
    try:
        assert x > 0, f'not positive: {x}'
        return 'ok'
    except AssertionError as e:
        return str(e)


@use((5,), (25,), joins=True, long=True)
def tries_nested_loop(n):
    c = 0
    try:
        for i in range(10):
            for j in range(10):
                c += 1
                if i * j == n:
                    raise StopIteration
    except StopIteration:
        return (c, i, j)
    return (c, -1, -1)


@use((np.array([4.0, -1.0, 9.0]),))
def tries_array_helper(x):
    out = np.zeros(3)
    for i in range(3):
        try:
            out[i] = helper(float(x[i]))
        except ValueError:
            out[i] = np.nan
    return out


@use((1.0,), (-1.0,), wrt=(0,), joins=True)
def tries_multi(x):
    a = 1.0
    try:
        a = 2.0
        b = math.log(x)
        a = 3.0
    except ValueError:
        b = a * 100
    return (a, b)


@use((np.array([[2.0, 1.0], [1.0, 3.0]]),), (np.array([[1.0, 1.0], [1.0, 1.0]]),), joins=True,
    long=True)
def tries_linalg(a):
    try:
        return np.linalg.solve(a, np.ones(2))
    except np.linalg.LinAlgError as e:
        return np.zeros(2)


@use((5,), (2,), joins=True)
def tries_continue_break(n):
    s = 0
    for i in range(10):
        try:
            if i == n:
                break
            if i % 2:
                continue
            s += i
        finally:
            s += 100
    return (s, i)


@use((np.array([1.0, 2.0]), 1), (np.array([1.0, 2.0]), 5), wrt=(0,), joins=True)
def tries_array_var(x, i):
    y = x * 2
    try:
        y = y + x[i]
        y[0] = 10.0
    except IndexError:
        y[1] = -1.0
    return y


@use((2.0,), (-2.0,), (0.0,), joins=True)
def tries_many(x):
    try:
        if x < 0:
            raise TypeError
        return 1 / x
    except (TypeError, ZeroDivisionError) as err:
        if isinstance(err, TypeError):
            return -1.0
        return -2.0


@use((1.0,), (-1.0,))
def tries_else_raises(x):
    try:
        y = x + 1
    except ValueError:
        return 'inner'
    else:
        if x < 0:
            raise ValueError('from else')
    return y


@use((1.0,), (-1.0,))
def tries_handler_raises(x):
    try:
        if x < 0:
            raise ValueError('a')
    except ValueError as e:
        raise RuntimeError(f'wrapped {e}') from e
    return x


class Bad(Exception):

    def __init__(self, code, msg='m'):
        super().__init__(msg)
        self.code = code


@use((1,), (5,), joins=True)
def tries_custom(n):
    try:
        if n > 2:
            raise Bad(n)
    except Bad as e:
        return -1
    return n


@use((10,), (0,), joins=True)
def tries_comp(n):
    try:
        return sum([10 // (n - i) for i in range(3)])
    except ZeroDivisionError:
        return -1


@use(([1.0, 2.0, 3.0], 1), ([1.0, 2.0, 3.0], 4), joins=True)
def tries_list(xs, i):
    try:
        return xs[i]
    except IndexError:
        return 0.0


def safe_div(a, b):
    try:
        return a / b
    except ZeroDivisionError:
        return float('inf')


@use((np.array([1.0, 2.0]), 2.0), (np.array([1.0, 2.0]), 0.0), wrt=(0,), corners=(1,))
def tries_calls_safe(x, d):
    return sum((safe_div(float(v), d) for v in x))


def rec2(n):
    try:
        if n == 3:
            raise ValueError
        if n == 0:
            return 0
        return rec2(n - 1) + 1
    except ValueError:
        return -100


@use((2,), (5,), joins=True)
def tries_rec2(n):
    return rec2(n)


@use((4, 2.0), (-1, 2.0), wrt=(1,), joins=True, slow=True)
def tries_raise_in_while(n, x):
    k = 0
    try:
        while True:
            if k >= n:
                raise StopIteration
            x = x * 1.5
            k += 1
    except StopIteration:
        pass
    return (x, k)


@use((np.array([3.0, -1.0, 2.0]),), joins=True)
def tries_last_good(x):
    best = None
    for v in x:
        try:
            best = math.sqrt(v)
        except ValueError:
            break
    return best


@use((2,), (0,), joins=True)
def tries_nested_fn(n):

    def inner(k):
        if k == 0:
            raise KeyError(k)
        return 1 / k
    try:
        return inner(n)
    except KeyError as e:
        return e.args[0] - 7.0


@use((2,), (0,), joins=True)
def tries_global_exc(n):
    err = ValueError if n else KeyError
    try:
        raise ValueError('x')
    except ValueError:
        return 5


@use((7.5,), (1e309,), joins=True)
def tries_intconv(x):
    try:
        k = int(x)
    except OverflowError:
        k = -1
    return k


@use((3.0, 0), (3.0, 2))
def tries_default(x, k):
    table = {0: 'a', 1: 'b'}
    try:
        s = table[k]
    except KeyError:
        s = 'none'
    return s


def checked(x):
    if x < 0:
        raise ValueError('negative')
    return x


@use((1.0, 2.0), (-1.0, 2.0), (1.0, -2.0), joins=True)
def tries_two_calls(x, y):
    out = [0.0, 0.0]
    try:
        out[0] = checked(x) + 1
        out[1] = checked(y) + 2
        checked(x)
        out[0] = out[0] * 10
    except ValueError:
        out[1] = -5.0
    return out


@use((np.arange(6.0).reshape(2, 3), 1), (np.arange(6.0).reshape(2, 3), 4), wrt=(0,), joins=True)
def tries_view(x, i):
    try:
        row = x[i]
        row[0] = 50.0
        row[2] += row[1]
    except IndexError:
        x[0, 0] = -1.0
    return x


@use((np.array([1.0, 2.0, 4.0]), 4.0), (np.array([1.0, 2.0, 4.0]), 3.0), joins=True, long=True)
def tries_find(x, v):
    try:
        for i in range(len(x)):
            if x[i] == v:
                raise StopIteration(i)
        return -1
    except StopIteration as e:
        return e.value if False else e.args[0]


@use((3,), (0,))
def tries_pass(n):
    r = 1
    try:
        r = 6 // n
    except ZeroDivisionError:
        pass
    return r


@use((2.0,), (-2.0,), wrt=(0,), joins=True)
def tries_nested(x):
    try:
        try:
            return checked(x)
        finally:
            x = x + 1
    except ValueError:
        return x * 100


@use((2.0, 0), (2.0, 3), wrt=(0,))
def tries_tuple_assign(x, n):
    a, b = (1.0, 2.0)
    try:
        a, b = (x, x / n)
    except ZeroDivisionError:
        b = -b
    return (a, b)


@use((np.array([2.0, 0.5]),), joins=True)
def tries_retry(x):
    step = 1.0
    for k in range(5):
        try:
            y = checked(x[0] - step * 3)
            break
        except ValueError:
            step = step / 2
    else:
        y = -1.0
    return (y, step, k)


@use((5,), (-5,))
def tries_raise_class_var(n):
    errs = (ValueError, KeyError)
    try:
        if n < 0:
            raise errs[1]('k')
        raise errs[0]('v')
    except errs as e:
        return isinstance(e, KeyError)


@use((4.0,), (-4.0,))
def tries_lambda(x):
    f = lambda t: math.sqrt(t)
    try:
        return f(x) + f(x)
    except ValueError:
        return 0.0


@use((4.0, 1), (4.0, 3))
def tries_dict(x, k):
    d = {'a': x, 'b': 2 * x}
    name = 'a' if k == 1 else 'zz'
    try:
        return d[name]
    except KeyError as e:
        return str(e)


@use((3.0, 2), (-3.0, 2), (3.0, 9), wrt=(0,), long=True)
def tries_list_made_behind_a_call(x, k):
    total = 0.0
    try:
        y = checked(x)
        parts = [y * j for j in range(k)]
        total = sum(parts) + len(parts)
    except ValueError:
        total = -x
    return total


class Held:
    def __init__(self, value, step):
        self.value = value
        self.step = step

    def moved(self):
        self.value = self.value + self.step
        return self.value


@use((3.25, 1.5), (-3.0, 1.5), (0.5, 1.5), wrt=(0, 1), long=True)
def tries_object_made_behind_a_call(x, step):
    total = x
    for k in range(3):
        try:
            y = checked(x - k)
            if y > 1.0:
                held = Held(y, step)
                total += held.moved() * held.value
        except ValueError:
            total *= 0.5
    return total


@use((np.array([3.0, -1.0, 2.0]),), (np.array([-3.0]),), (np.array([1.0, 2.0]),), wrt=(0,),
    long=True)
def tries_append_behind_a_call(values):
    found = []
    for value in values:
        try:
            found.append(checked(value) * value)
        except ValueError:
            found.append(0.25 * value)
    return sum(found) + len(found)


@use((3.0, 0), (-3.0, 1), (3.0, 5), wrt=(0,), long=True)
def tries_list_at_several_lengths(x, k):
    items = [x, 2.0]
    try:
        items.append(items[k])
        y = checked(x)
        items.pop()
        items.append(y * x)
    except (ValueError, IndexError):
        items.append(9.0 * x)
    return np.array(items)


@use((3,), (0,))
def appends_until_it_raises(n):
    out = []
    try:
        out.append(1)
        if n == 0:
            raise ValueError
        out.append(2)
    except ValueError:
        out.append(3)
    return len(out)


@use((np.array([3.0, 1.0, 2.0]),), wrt=(0,), long=True)
def failures_known_beforehand(x):
    total = 0.0
    try:
        total += x[10]
    except IndexError:
        total += x[0] * x[1]
    try:
        first, second = [x[0], x[1], x[2]]
        total += first + second
    except ValueError as error:
        total += x[2] * len(str(error))
    try:
        count = len(x[0])
    except TypeError:
        count = 1
    try:
        x = x.reshape(7, 7)
    except ValueError:
        x = x * 2.0
    try:
        x = np.concatenate([x, np.ones((2, 2))])
    except ValueError:
        x = x + np.max(x)
    try:
        total += "abc".index("z") + max([])
    except ValueError:
        total += x.sum()
    return total, count, x


_TWICE, _FLAT = 2 * np.eye(2), np.ones((2, 2))


@use((_TWICE, np.ones(2)), (_FLAT, np.ones(2)), wrt=(0, 1), corners=(1,))
def least_squares_where_singular(a, b):
    try:
        x = np.linalg.solve(a, b)
    except np.linalg.LinAlgError:
        x = np.linalg.lstsq(a, b, rcond=None)[0]
    return x, a @ x


@use((_TWICE, np.ones(2)), (_FLAT, np.ones(2)))
def zeros_where_singular(a, b):
    try:
        x = np.linalg.solve(a, b)
    except np.linalg.LinAlgError:
        x = np.zeros(a.shape[1])
    return a @ x
