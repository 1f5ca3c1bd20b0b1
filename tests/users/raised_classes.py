"""Programs that raise in recursive functions, and exceptions of classes of the user's."""

from __future__ import annotations

import math

import numpy as np

from tests.users.corpus import use

X = np.array([1.0, 2.0, -3.0, 4.0])


class Plain(Exception):
    pass


class Coded(Exception):
    default = 7

    def __init__(self, code, *, extra=1.0):
        super().__init__(f"code {code}")
        self.code = code
        self.extra = extra

    @property
    def total(self):
        return self.code + self.extra


class Sub(Coded):
    def __init__(self, code, where):
        Coded.__init__(self, code, extra=2.0)
        self.where = where

    def __str__(self):
        return f"sub {self.code} at {self.where}"


@use((2,), (5,))
def kw(n):
    try:
        if n > 3:
            raise Coded(n, extra=3.0)
        raise Sub(n, 4)
    except Coded as e:
        return e.total, e.default, str(e), e.args, type(e).__name__


@use((2,), (5,))
def uncaught(n):
    if n > 3:
        raise Coded(n, extra=3.0)
    raise Sub(n, 4)


@use((0.0,), (2.0,))
def from_caught(x):
    try:
        return 1 / x
    except ZeroDivisionError as e:
        raise Coded(3) from e


@use((0.0,), (2.0,))
def from_caught_caught(x):
    try:
        try:
            return 1 / x
        except ZeroDivisionError as e:
            raise Coded(3) from e
    except Coded as e:
        return e.code * 1.0 if isinstance(e.__cause__, ZeroDivisionError) else -1.0


@use((0.0,), (2.0,))
def from_none(x):
    try:
        try:
            return 1 / x
        except ZeroDivisionError:
            raise Plain("no", x) from None
    except Plain as e:
        return e.args[1] + 3


@use((X, 0.0), (X, 2.0))
def from_after_write(x, y):
    x[0] = 5.0
    try:
        return x[1] / y if y else float(1 / y)
    except ZeroDivisionError as e:
        x[1] = 9.0
        raise Coded(int(x[0])) from e


@use(
    (2,),
)
def made_before(n):
    e = Coded(n)
    k = e.code + 1
    try:
        raise e
    except Coded as other:
        return other.code + k


@use((2,), (3,))
def stored(n):
    err = None
    try:
        if n == 2:
            raise Coded(n)
    except Coded as e:
        err = e
    if err is not None:
        return err.code
    return 0


def climb(n):
    if n == 0:
        raise Coded(n, extra=5.0)
    return climb(n - 1) + 1


@use(
    (2,),
    long=True,
)
def recursive(n):
    try:
        return climb(n)
    except Coded as e:
        return e.extra


@use((3,))
def recursive_uncaught(n):
    return climb(n)


def fill(log, n):
    log.append(n)
    if n == 0:
        raise Plain("end")
    fill(log, n - 1)


@use(([], 3))
def writes_kept(log, n):
    fill(log, n)


def fillx(d, x, n):
    d["n"] += 1
    x[n] = 1.0
    if n > 2:
        raise Plain("end", n)
    return fillx(d, x, n + 1)


@use(({"n": 0}, X, 0))
def dict_kept(d, x, n):
    return fillx(d, x, n)


def parse(tokens, i):
    if i >= len(tokens):
        raise ValueError("end of input")
    t = tokens[i]
    if t == 0:
        return 1.0, i + 1
    if t == 1:
        a, i = parse(tokens, i + 1)
        b, i = parse(tokens, i)
        return a + b, i
    if t == 2:
        a, i = parse(tokens, i + 1)
        return a * 3.0, i
    raise KeyError(t)


@use((np.array([1, 2, 0, 0]),), (np.array([1, 2, 0]),), (np.array([1, 2, 9]),), joins=True,
    long=True)
def parser(tokens):
    try:
        v, _ = parse(tokens, 0)
        return v
    except ValueError:
        return -1.0
    except KeyError as e:
        return -2.0 * e.args[0]


def place(board, k):
    if k == len(board):
        raise StopIteration
    for v in range(3):
        board[k] = v
        if k > 0 and board[k - 1] == v:
            continue
        place(board, k + 1)


@use((np.zeros(5, dtype=int),), long=True)
def backtrack(board):
    try:
        place(board, 0)
    except StopIteration:
        return board.sum()
    return -1


def safe(x, n):
    if n == 0:
        return 1 / x
    try:
        return safe(x - 1.0, n - 1)
    except ZeroDivisionError:
        return 100.0 * n


@use((3.5, 3), (3.0, 3), (3.0, 2), wrt=(0,), long=True, corners=(1,))
def inner(x, n):
    return safe(x, n)


def mutual_a(n, x):
    if n < 0:
        raise Plain(n)
    return mutual_b(n - 1, x * 2.0) + 1.0


def mutual_b(n, x):
    if n == 0:
        return x
    return mutual_a(n - 1, x) * 2.0


@use((3, 1.5), (4, 1.5), wrt=(1,), long=True)
def mutual(n, x):
    try:
        return mutual_a(n, x)
    except Plain as e:
        return x * e.args[0]


def two(x, n, fail):
    if n == 0:
        if fail:
            raise Plain("two")
        return x
    return two(x, n - 1, fail) + two(x * 0.5, n - 1, False)


@use((1.5, 3, True), (1.5, 3, False), wrt=(0,), long=True)
def double(x, n, fail):
    t = 0.0
    for k in range(3):
        try:
            t += two(x, k, fail and k == 1)
        except Plain:
            t -= x
    return t


def depth(x, n):
    with_fin = 0
    try:
        if n == 0:
            raise Plain("d")
        return depth(x, n - 1)
    finally:
        x[n] += 1.0


@use((X, 3), long=True)
def fin_rec(x, n):
    try:
        depth(x, n)
    except Plain:
        return x.sum()


@use((X, 3), long=True)
def fin_rec_uncaught(x, n):
    return depth(x, n)


def noraise(n):
    return 1 if n <= 1 else n * noraise(n - 1)


@use((5,))
def guarded_noraise(n):
    try:
        return noraise(n)
    except ValueError:
        return -1


def falls(n):
    return 1 // n if n < 2 else falls(n - 1)


@use((3,), (0,), long=True)
def rec_div(n):
    try:
        return falls(n)
    except ZeroDivisionError:
        return -1


def powers(x, n):
    if n < 0:
        raise ValueError("negative")
    if n == 0:
        return x
    return powers(x * 1.5, n - 1) + 1


@use((2.0, 3), (2.0, -1), wrt=(0,), long=True)
def rec_raise_caught(x, n):
    try:
        return powers(x, n)
    except ValueError:
        return x * 7


def search(x, v, lo, hi):
    if lo >= hi:
        raise KeyError(v)
    m = (lo + hi) // 2
    if x[m] == v:
        return m
    if x[m] < v:
        return search(x, v, m + 1, hi)
    return search(x, v, lo, m)


@use((np.arange(8.0), 5.0), (np.arange(8.0), 5.5), long=True)
def rec_search(x, v):
    try:
        return search(x, v, 0, len(x))
    except KeyError as e:
        return -1


@use((np.arange(8.0), 5.0), (np.arange(8.0), 5.5), long=True)
def rec_search_arg(x, v):
    try:
        return float(search(x, v, 0, len(x)))
    except KeyError as e:
        return e.args[0] * 2


@use((np.arange(8.0), 5.0), (np.arange(8.0), 5.5))
def rec_search_uncaught(x, v):
    return search(x, v, 0, len(x))


class Found(Exception):
    def __init__(self, value, where):
        super().__init__(value, where)
        self.value = value
        self.where = where


def walk(x, i, t):
    if x[i] > t:
        raise Found(x[i], i)
    if i + 1 < len(x):
        walk(x, i + 1, t)


@use((X, 1.5), (X, 9.0), wrt=(0,), long=True)
def rec_found(x, t):
    try:
        walk(x, 0, t)
    except Found as f:
        return f.value * f.where
    return x.sum()


def only_raise(x, n):
    if n > 3:
        raise Found(x, n)
    only_raise(x * 2, n + 1)


@use((1.5,), wrt=(0,))
def rec_only_raise(x):
    try:
        only_raise(x, 0)
    except Found as f:
        return f.value + f.where
    return x


@use((1.5,))
def rec_only_raise_uncaught(x):
    only_raise(x, 0)
    return x


def visit(x, out, i):
    if i == len(x):
        return
    out.append(x[i])
    if x[i] < 0:
        raise ValueError("neg")
    visit(x, out, i + 1)


@use((X,), (abs(X),), joins=True, long=True)
def rec_visit(x):
    out = []
    try:
        visit(x, out, 0)
    except ValueError:
        out.append(-100.0)
    return out


def inner_try(x, n):
    if n == 0:
        return math.sqrt(x)
    try:
        return inner_try(x - 1.0, n - 1)
    except ValueError:
        return x


@use((5.0, 3), (2.5, 4), (2.5, 6), wrt=(0,), long=True)
def rec_inner_try(x, n):
    return inner_try(x, n)


class Short(Exception):
    def __init__(self, need, have):
        super().__init__(f"need {need:.2f}, have {have:.2f}")
        self.need = need


class Purse:
    def __init__(self, held):
        self.held = held
        self.paid = []

    def pay(self, x):
        if x > self.held:
            raise Short(x, self.held)
        self.held -= x
        self.paid.append(("paid", x))


@use(([1.0, 7.0, 3.0, 50.0],), ([1.0, 7.0, 3.0, 50.0] * 6,), long=True)
def exception_that_nobody_looks_at(amounts):
    purse = Purse(100.0)
    for x in amounts:
        try:
            purse.pay(x)
        except Short:
            pass
    return purse.paid


@use(([1.0, 7.0, -3.0, 500.0],), ([1.0, 7.0, 3.0, -50.0] * 6,))
def exceptions_of_two_classes(amounts):
    purse, words = Purse(100.0), []
    for x in amounts:
        try:
            if x < 0:
                raise ValueError("less than nothing")
            purse.pay(x)
        except Short as e:
            words.append(str(e))
        except ValueError as e:
            words.append(f"E: {e}")
        finally:
            purse.held = round(purse.held, 2)
    return purse.held, words, purse.paid


class Lacking(Exception):
    def __init__(self, name, need, have):
        super().__init__(f"{name}: need {need:.2f}, have {have:.2f}")
        self.missing = need - have


class Account:
    def __init__(self, owner, balance):
        self.owner, self.balance, self.history = owner, balance, []

    def deposit(self, amount):
        if amount <= 0:
            raise ValueError("amount must be positive")
        self.balance += amount
        self.history.append(("deposit", amount))

    def withdraw(self, amount):
        if amount > self.balance:
            raise Lacking(self.owner, amount, self.balance)
        self.balance -= amount
        self.history.append(("withdraw", amount))


ORDERS = [("abc"[k % 3], "dwt"[k * 5 % 7 % 3], k * 37 % 101 - 9, "bca"[k * 3 % 5 % 3])
          for k in range(60)]


@use((ORDERS,), (ORDERS[:5],))
def accounts_of_orders(orders):
    table = {name: Account(name, 50.0) for name in "abc"}
    missing, failed, done, looked_at = 0.0, [], 0, 0
    for who, what, amount, other in orders:
        try:
            account = table[who]
            if what == "d":
                account.deposit(amount)
            elif what == "w":
                account.withdraw(amount)
            else:
                account.withdraw(amount)
                table[other].deposit(amount)
        except Lacking as error:
            missing += error.missing
            failed.append(str(error))
        except ValueError as error:
            failed.append("wrong: " + str(error))
        else:
            done += 1
        finally:
            looked_at += 1
    return missing, failed, done, looked_at, [(a.balance, len(a.history)) for a in table.values()]
