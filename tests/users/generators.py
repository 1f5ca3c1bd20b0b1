"""Generators: functions that yield, generator expressions, itertools, `iter` and `next`."""

from __future__ import annotations

import functools
import itertools
import math
import operator

import numpy as np

from tests.users.corpus import refuse, use

X = np.array([3.0, 1.0, 2.5])


def squares(x):
    for v in x:
        yield v * v


def countdown(n):
    while n > 0:
        yield n
        n -= 1


def fibonacci():
    a, b = 0, 1
    while True:
        yield a
        a, b = b, a + b


def chained(*iterables):
    for each in iterables:
        yield from each


@use((X,), wrt=(0,), long=True)
def items_one_by_one(x):
    s = 0.0
    for k, v in enumerate(squares(x)):
        s = s * 0.5 + k * v
    return s, sum(squares(x)), max(squares(x)), any(v > 8 for v in squares(x))


@use((5,), (0,), long=True)
def generator_with_a_test(n):
    s = 0
    for k in countdown(n):
        s = s * 2 + k
    return s, max(countdown(n), default=-1), any(k == 3 for k in countdown(n)), list(countdown(n))


@use((50,), (0,))
def without_an_end(limit):
    s = 0
    for k in fibonacci():
        if k > limit:
            break
        s += k
    else:
        s = -1
    return s, next(fibonacci())


@use((X, [1.0, 2.0]), wrt=(0,), slow=True)
def listed(x, pair):
    return (
        list(squares(pair)), tuple(squares((x[2],))), [g + 1 for g in squares(pair)],
        {k: v for k, v in enumerate(squares(pair))}, [*squares(pair)], list(squares(x)),
        functools.reduce(operator.add, squares(x)), math.prod(squares(x)),
    )  # fmt: skip


@use((X,), wrt=(0,), long=True)
def in_step_with_others(x):
    s = 0.0
    for a, b in zip(squares(x), countdown(3), strict=False):
        s += a * b
    for a, f in zip(x, fibonacci(), strict=False):
        s += a * f
    for a, b, c in zip(x, squares(x), x[:2], strict=False):
        s += a * b * c
    return s, sum(map(operator.mul, squares(x), x))


@use((X,), wrt=(0,), long=True)
def generators_of_generators(x):
    def twice(v):
        yield v
        yield v + 1

    def all_of(y):
        for v in y:
            yield from twice(v)

    s = 0.0
    for v in chained(x, squares(x), [1.0], all_of(x)):
        s = s * 0.5 + v
    return s


@use((X,), wrt=(0,))
def flattened(x):
    def flat(t):
        for u in t:
            if isinstance(u, (tuple, list)):
                yield from flat(u)
            else:
                yield u

    return list(flat((x[0], [x[1], (x[2], 2.0)], ())))


@use((X,), wrt=(0,), slow=True)
def left_early(x):
    def until(y, limit):
        for v in y:
            if v < limit:
                return
            yield v
        yield 100.0

    return sum(until(x, 1.5)), sum(until(x, 0.0))


@use((2.0, 5), wrt=(0,), slow=True)
def newton(x, n):
    def iterates(a):
        g = a
        while True:
            yield g
            g = 0.5 * (g + a / g)

    for k, g in enumerate(iterates(x)):
        if k >= n:
            return g
    return 0.0


@use((2.0,), wrt=(0,), slow=True)
def newton_to_a_tolerance(x):
    def iterates(a):
        g = a
        while True:
            yield g
            g = 0.5 * (g + a / g)

    for g in iterates(x):
        if abs(g * g - x) < 1e-10:
            break
    return g


@use((X,), wrt=(0,), slow=True)
def pairs_of_pairs(x):
    def pairs(n):
        for i in range(n):
            for j in range(i + 1, n):
                yield i, j

    s = 0.0
    for i, j in pairs(3):
        for k, m in pairs(3):
            s += x[i] * x[j] * x[k] + x[m]
    return s, sum((x[i] - x[j]) ** 2 for i, j in pairs(3))


@use((X,), wrt=(0,), slow=True)
def closures_and_effects(x):
    log = np.zeros(4)
    count = 0

    def noted(y):
        nonlocal count
        for v in y:
            count += 1
            log[count] = v
            yield v * 2

    s = sum(noted(x))
    return s, log, count


@use((X,), wrt=(0,), joins=True, long=True)
def one_at_a_time(x):
    g = squares(x)
    a = next(g)
    b = next(g)
    rest = [v for v in g]
    it = iter([x[0], x[1], x[2]])
    first = next(it)
    others = 0.0
    for v in it:
        others += v
    return a - b, rest, next(g, -1.0), first, others, next(it, None)


@use((X,), (X * 0,), wrt=(0,), joins=True)
def first_that_fits(x):
    return next((v for v in x if v > 2), -1.0), next((i for i, v in enumerate(x) if v > 2), None)


@use(([],), ([1.0],))
def next_of_nothing(items):
    return next(iter(items))


@use((X,), wrt=(0,))
def used_up(x):
    g = squares(x)
    return sum(g), sum(g)


@use((X,), wrt=(0,), joins=True, slow=True)
def iterators_are_used_up(x):
    z = zip(x, range(3), strict=True)
    m = map(lambda v: v * 2, x)
    e = enumerate([x[0], x[1], 5.0])
    first = next(e)
    return (
        sum(v * k for v, k in z), sum(v * k for v, k in z), sum(m), sum(m), first, list(e), list(e),
    )  # fmt: skip


@use((X,))
def zip_of_different_lengths(x):
    return [a * b for a, b in zip(x, (1.0, 2.0), strict=True)]


@use((X, 5), wrt=(0,), long=True)
def itertools_names(x, n):
    s = 0.0
    for i, j in itertools.product(range(3), repeat=2):
        s += x[i] * x[j]
    for a, b in itertools.combinations(range(3), 2):
        s += (x[a] - x[b]) ** 2
    for k, v in zip(itertools.count(1), x, strict=False):
        s += k * v
    for a, b in itertools.zip_longest((1, 2), (3,), fillvalue=0):
        s += a * b
    for a in itertools.repeat(2.0, 3):
        s += a * x[0]
    for a, b in zip(x, itertools.cycle((1.0, -1.0)), strict=False):
        s += a * b
    for a in itertools.islice(range(10), 2, 8, 2):
        s += a * x[1]
    for a in itertools.takewhile(lambda t: t < 3, itertools.count()):
        s += a
    for a in itertools.chain.from_iterable([[1, 2], (3,), x]):
        s += a
    for f in itertools.starmap(lambda p, q: p * q, [(1, 2), (3, 4)]):
        s += f
    for i in itertools.count(1):
        if i > n:
            break
        s += x[i % 3] / i
    for v in itertools.accumulate(x):
        s += v * v
    return s, list(itertools.accumulate([1, 2, 3], operator.mul)), list(
        itertools.accumulate((x[0], x[1]), initial=1.0)
    )


@use((X, 6), (X - 2.4, 0), wrt=(0,))
def filters(x, n):
    return (
        sum(filter(lambda v: v > 0, x)), [v for v in filter(lambda k: k % 2 == 0, range(6))],
        sum(filter(None, [0, 1, 2])), sum(k for k in filter(lambda k: k % 3, range(n))),
    )  # fmt: skip


class Bag:
    """An object that is gone through."""

    def __init__(self, *items):
        self.items = items

    def __iter__(self):
        yield from self.items


@use((2.0,), wrt=(0,))
def object_with_iter(x):
    bag = Bag(x, 3.0, x * x)
    a, *others = bag
    return a, others, sum(bag), max(bag), [v + 1 for v in bag], x in bag


@use((X,), wrt=(0,))
def goes_on_with_a_generator(x):
    g = fibonacci()
    return next(g) * x, next(g)


def shuffled(x, size, rng):
    while True:
        order = rng.permutation(len(x))
        for start in range(0, len(x) - size + 1, size):
            yield x[order[start : start + size]]


@use((np.arange(10.0), 3, 8), (np.arange(10.0), 3, 0))
def trained_on_batches(x, size, steps):
    batches = shuffled(x, size, np.random.default_rng(1))
    w = 0.0
    for k in range(steps):
        w = 0.5 * w + k * next(batches).sum()
    return w


def rising(a):
    yield a
    while True:
        a += 1
        if a % 3:
            yield a
        else:
            yield -a
            yield from (a, 0)


@use((1, 9), (2, 4))
def left_in_several_places(a, n):
    numbers = rising(a)
    seen = [next(numbers)]
    for k, v in enumerate(numbers):
        if k == n:
            break
        seen.append(k * v)
    return seen, next(numbers), [v for _, v in zip(range(n), numbers)]


def doubling(n, most):
    while True:
        if n > most:
            return
        yield n
        n *= 2


@use((1, 20), (30, 20))
def ends_when_the_program_says_so(n, most):
    numbers = doubling(n, most)
    first = next(numbers, -1)
    total = 0
    for v in numbers:
        total += v
    return first, total, next(numbers, None) is None


@use((3, 6), (3, 0))
def defined_inside_and_captures(k, n):
    def congruent(x):
        while True:
            x = (x * k + 1) % 101
            yield x

    a, b = congruent(1), congruent(2)
    total = 0
    for _ in range(n):
        total = total * 3 + next(a) - next(b)
    return total


class Stream:
    def __init__(self, seed):
        self.state = seed

    def uniform(self):
        while True:
            self.state = self.state * 16807 % 2147483647
            yield self.state / 2147483647


@use((7, 50))
def of_a_method(seed, n):
    stream = Stream(seed)
    numbers = stream.uniform()
    inside = 0
    for _ in range(n):
        inside += next(numbers) ** 2 + next(numbers) ** 2 < 1
    return inside, stream.state


@refuse((3,), "may have changed since it was made")
def captures_what_changes(k):
    def congruent(x):
        while True:
            x = (x * k + 1) % 101
            yield x

    numbers = congruent(1)
    first = next(numbers)
    k = 5
    return first + next(numbers)


def scaled(x):
    while True:
        yield (lambda v: v * x)(2)
        x += 1


@refuse((3.0,), "left before its end", "one loop")
def goes_on_with_a_form_that_is_not_taken_apart(x):
    numbers = scaled(x)
    return next(numbers) + next(numbers)


@use((X,))
def two_without_an_end(x):
    s = 0.0
    for k, (a, b) in enumerate(zip(fibonacci(), rising(4), strict=False)):
        if a > 10:
            break
        s += a * b + k
    return s * x


@refuse((X,), "yield inside an expression", "statement of its own")
def sent_to_a_generator(x):
    def g():
        got = 2.0 * (yield 1.0)
        yield got

    return sum(g()) * x


@use(([1.0, 2.0, 6.0], 3), wrt=(0,))
def means_of_what_is_sent(xs, n):
    def average():
        total, count, mean = 0.0, 0, None
        while True:
            x = yield mean
            total += x
            count += 1
            mean = total / count

    def countdown(k):
        while k > 0:
            given = yield k
            k = k - 1 if given is None else given

    means, steps = average(), countdown(n)
    next(means)
    found = [means.send(x) for x in xs]
    numbers = [next(steps), steps.send(7), next(steps)]
    for k in steps:
        numbers.append(k)
        if k < 5:
            break
    steps.close()
    return sum([v * k for v, k in zip(found, numbers)]), numbers, next(steps, -1)


@use((3,))
def sent_too_early(n):
    def twice():
        a = yield 1
        yield 2 * a

    numbers = twice()
    return numbers.send(n)


@use((3,))
def sent_to_the_end(n):
    def twice():
        a = yield 1
        b = yield 2 * a
        return a * b

    numbers = twice()
    next(numbers)
    try:
        given = numbers.send(n)
        numbers.send(5)
    except StopIteration:
        return given


@refuse((3,), "nothing can be sent to this generator", "write a class")
def sent_where_a_try_waits(n):
    seen = []

    def numbers():
        try:
            a = yield 1
        finally:
            seen.append(n)
        yield a

    return numbers().send(None)


@refuse((X,), "cannot return a generator", "list(")
def returns_a_generator(x):
    return squares(x)


@refuse((X,), "cannot return an iterator", "list(")
def returns_a_zip(x):
    return zip(x, x, strict=False)


# -- itertools without an end, functools.cache -----------------------------------------------------


def doubled(x):
    for v in x:
        yield v * 2


def steps(a, d):
    while True:
        yield a
        a += d


@use(
    (X, 6),
)
def cycle_next(x, n):
    c = itertools.cycle([1, 2, 3])
    return [next(c) for _ in range(6)]


@use((4,))
def count_steps(n):
    ids = itertools.count(10, 2)
    first = next(ids)
    out = [first]
    for k in range(n):
        out.append(next(ids) + k)
    return out, next(ids)


@use((X, 4), wrt=(0,), long=True)
def cycle_zip(x, n):
    signs = itertools.cycle((1.0, -1.0))
    t = 0.0
    for v, s, k in zip(doubled(x), signs, itertools.count(1)):
        t += v * s * k
    return t


@use(
    (5, 2.0),
)
def endless_and_count(n, s):
    t = 0.0
    for u, k in zip(steps(s, 0.5), itertools.count(3)):
        if k > n:
            break
        t += u * k
    return t


@use((3,))
def cwr(n):
    return list(itertools.combinations_with_replacement(range(3), 2))


@use((7,), long=True)
def cached_inner(n):
    @functools.lru_cache(None)
    def ways(k):
        if k <= 1:
            return 1
        return ways(k - 1) + ways(k - 2)

    return ways(n)


@use((30,), long=True)
def memo_grid(n):
    @functools.cache
    def paths(i, j):
        if i == 0 or j == 0:
            return 1
        return paths(i - 1, j) + paths(i, j - 1)

    return paths(3, 4)


def below(n):
    k = 0
    while k < n:
        yield k
        k += 1


@use((6,), (2,), (3,), long=True)
def going_on_after_break(n):
    numbers = below(n)
    head = 0
    for k in numbers:
        head += k
        if k == 2:
            break
    tail = 0
    for k in numbers:
        tail += 10 * k
    return head, tail, next(numbers, -1)


@use((5,), long=True)
def until_there_is_none(n):
    numbers, out = below(n), []
    while True:
        k = next(numbers, None)
        if k is None:
            break
        out.append(k)
    return out


@use((10,), long=True)
def loop_in_a_loop_over_one(n):
    numbers, total = below(n), 0
    for k in numbers:
        for m in numbers:
            total += k * m
            if m % 3 == 0:
                break
    return total


@use((6,), (2,))
def looking_for_one(n):
    numbers = below(n)
    return 3 in numbers, list(numbers), 4 in below(n), 1 in iter([3, 1, 2])


@use((X,), wrt=(0,))
def halves_of_a_generator(x):
    values = doubled(x)
    t = 0.0
    for v in values:
        t += v
        if v > 2.0:
            break
    return t + 3.0 * sum(values)


@use((np.array([0.5, -1.0, 2.0, 3.0, -0.5, 1.5]),), wrt=(0,), slow=True)
def arrangements_of_some(x):
    some = [v for v in x if v > 0]
    pairs = sum(p * q for p, q in itertools.combinations(some, 2))
    again = sum(p * q for p, q in itertools.combinations_with_replacement(some, 2))
    orders = sum(p - 2.0 * q * r for p, q, r in itertools.permutations(some, 3))
    steps = sum((b - a) ** 2 for a, b in itertools.pairwise(some))
    longest = [p + 2.0 * q for p, q in itertools.zip_longest(x, some, fillvalue=0.0)]
    return pairs, again, orders, steps, longest


@use((X, np.ones(3)), wrt=(0, 1))
def sums_that_start_with_what_is_made(x, v):
    return sum((v * k for k in x), np.zeros(3)), sum((v @ v * k for k in x), float(x[0]))


@use(([[1, 2], [3], []],), ([],))
def lists_added_up(lists):
    first = sum((items[:1] for items in lists if items), [9])
    return sum((items for items in lists), []), first  # noqa: RUF017


@use((3,))
def start_of_a_sum_is_made_before_the_items(n):
    log = []

    def noted(k):
        log.append(k)
        return [k]

    return sum((noted(k) for k in range(n)), noted(-1)), log


@use(([3, 1, 2, 4],), ([],), ([5],), ([1.0] * 5,))
def pairs_of_one_iterator(xs):
    it = iter(xs)
    return [a * b for a, b in zip(it, it)]


@use(([3, 1, 2, 4, 7],), ([1, 2],))
def threes_and_what_is_left(xs):
    groups = [iter(xs)] * 3
    return [a * b - c for a, b, c in zip(*groups)], list(groups[0])


@use(([3, 1, 2, 4, 7],), ([1, 2],))
def pairs_until_one_is_found(xs):
    it = iter(xs)
    for a, b in zip(it, it):
        if a == 3:
            return b, list(it)
    return None


@use(("a1b2c3",), ("",))
def runs_decoded(text):
    it = iter(text)
    return "".join(c * int(n) for c, n in zip(it, it))


def _fields(lines):
    for line in lines:
        if line:
            yield line.split(",")


def _records(rows):
    names = next(rows)
    for row in rows:
        yield dict(zip(names, row))


@use((["name,price", "bolt,0.25", "", "nut,0.5"],), (["name,price"],))
def the_first_row_names_the_fields(lines):
    total, names = 0.0, []
    for record in _records(_fields(lines)):
        total += float(record["price"])
        names.append(record["name"].title())
    return total, names


def _steps(n):
    at: int = 0
    seen: int
    for seen in range(n):
        at += seen
        yield at


@use((5,), (1,))
def annotated_variables_of_a_generator_that_is_left(n):
    steps, found = _steps(n), []
    for first in steps:
        for second in steps:
            found.append((first, second))
            break
    return found


@use(([1, 1, 2, 3, 3, 3],), ([7],))
def groups_used_up_as_they_are_found(x):
    found = []
    for key, run in itertools.groupby(x):
        items = iter(run)
        found.append((key, next(items), len(list(items)), sum(items)))
    runs = (run for _, run in itertools.groupby(x) for _ in run)
    repeated = itertools.chain.from_iterable(runs)
    whole = itertools.chain.from_iterable(run for _, run in itertools.groupby(x))
    return found, list(repeated), list(whole)


@use((5,), (0,))
def endless_expressions_that_functions_of_itertools_end(n):
    squares = itertools.islice((k * k for k in itertools.count()), n)
    below = itertools.takewhile(lambda v: v < n, (k + 1 for k in itertools.count()))
    return list(squares), list(below)


@use(([0, 3, 0, 1],), ([2],))
def numbered_beside_iterators(x):
    chosen = list(itertools.compress(itertools.count(), map(bool, x)))
    back = [(k, v) for k, v in zip(itertools.count(1), reversed(x))]
    pairs = [(k, v * n) for k, (n, v) in zip(itertools.count(), enumerate(x))]
    return chosen, back, pairs


@use((10,), (9,))
def called_until_a_number(n):
    state = [0]

    def turned():
        state[0] += 3
        return state[0] % n

    return list(iter(turned, 0)), state[0]


@use((5,), (0,))
def asked_by_the_method(n):
    numbers = fibonacci()
    back = range(n).__reversed__() if hasattr(range, "__reversed__") else ()
    return [numbers.__next__() for _ in range(n + 1)], list(back)


def _numbers_among(texts):
    for text in texts:
        try:
            yield int(text)
        except ValueError:
            yield -1


def _places(items, wanted):
    at = -1
    try:
        while True:
            yield (at := items.index(wanted, at + 1))
    except ValueError:
        return


@use((["1", "b", "30"],), (["5", "7"],))
def numbers_among_texts(texts):
    quotients = []
    for n in _numbers_among(texts):
        if n == 7:
            raise ValueError("seven")
        quotients.append(100 // (n + 1) if n >= 0 else 0)
    return quotients, texts


@use((["1", "-1"],), (["0", "x"],))
def failures_behind_a_yield_are_not_the_generators(texts):
    return [100 // (n + 1) for n in _numbers_among(texts)]


@use(([1, 2, 1, 1], 1), ([1], 5))
def places_until_one_lacks(items, wanted):
    found = list(_places(items, wanted))
    for at in _places(items, wanted):
        if at > 1:
            break
        found.append(-at)
    return found


@use(([1, -2, 3], 5), ([4], 0))
def iterators_in_rounds(x, n):
    sizes = itertools.cycle(map(abs, x))
    numbered = itertools.islice(itertools.cycle(enumerate(x)), n)
    back = [a * b for a, b in zip(range(n), itertools.cycle(reversed(x)))]
    return [next(sizes) for _ in range(n)], list(numbered), back
