"""Dynamic programming, graphs, sorting, number theory, bits."""

from __future__ import annotations

import functools
import itertools
import math
from collections import OrderedDict

import numpy as np

from tests.users.corpus import use


def letters(text):
    """A text as numbers."""
    return np.array([ord(c) for c in text])


@use((letters("AGGTAB"), letters("GXTXAYB")), long=True)
def longest_common_subsequence(a, b):
    m, n = len(a), len(b)
    L = np.zeros((m + 1, n + 1), dtype=int)
    for i in range(1, m + 1):
        for j in range(1, n + 1):
            if a[i - 1] == b[j - 1]:
                L[i, j] = L[i - 1, j - 1] + 1
            else:
                L[i, j] = max(L[i - 1, j], L[i, j - 1])
    return L[m, n]


@use((letters("kitten"), letters("sitting")), (letters("abc"), letters("")), long=True)
def edit_distance(s, t):
    previous = np.arange(len(t) + 1)
    for i, a in enumerate(s):
        current = np.zeros(len(t) + 1, dtype=np.int64)
        current[0] = i + 1
        for j, b in enumerate(t):
            cost = 0 if a == b else 1
            current[j + 1] = min(current[j] + 1, previous[j + 1] + 1, previous[j] + cost)
        previous = current
    return previous[-1]


@use((np.array([1, 3, 4, 5]), np.array([1, 4, 5, 7]), 7), long=True)
def knapsack(weights, values, capacity):
    dp = np.zeros(capacity + 1, dtype=np.int64)
    for w, v in zip(weights, values):
        for c in range(capacity, w - 1, -1):
            dp[c] = max(dp[c], dp[c - w] + v)
    return dp[capacity]


INF = float("inf")
GRAPH = np.array([
    [0.0, 3.0, INF, 7.0], [8.0, 0.0, 2.0, INF], [5.0, INF, 0.0, 1.0], [2.0, INF, INF, 0.0]
])  # fmt: skip


@use((GRAPH,))
def floyd_warshall(dist):
    n = len(dist)
    for k in range(n):
        for i in range(n):
            for j in range(n):
                if dist[i, k] + dist[k, j] < dist[i, j]:
                    dist[i, j] = dist[i, k] + dist[k, j]
    return dist


@use((GRAPH, 0))
def dijkstra(graph, source):
    n = graph.shape[0]
    dist = np.full(n, np.inf)
    visited = np.zeros(n, dtype=bool)
    parent = np.full(n, -1)
    dist[source] = 0
    for _ in range(n):
        u = -1
        for v in range(n):
            if not visited[v] and (u == -1 or dist[v] < dist[u]):
                u = v
        if u == -1 or dist[u] == np.inf:
            break
        visited[u] = True
        for v in range(n):
            alt = dist[u] + graph[u, v]
            if alt < dist[v]:
                dist[v], parent[v] = alt, u
    return dist, parent


@use((GRAPH < 6, 0))
def breadth_first_search(adjacent, start):
    n = len(adjacent)
    level = -np.ones(n, dtype=np.int64)
    queue = np.zeros(n, dtype=np.int64)
    queue[0] = start
    head, tail = 0, 1
    level[start] = 0
    while head < tail:
        node = queue[head]
        head += 1
        for other in range(n):
            if adjacent[node, other] and level[other] < 0:
                level[other] = level[node] + 1
                queue[tail] = other
                tail += 1
    return level


@use((np.array([1.0, 2.0, 3.0, 4.0]), np.array([1.0, 1.5, 3.5, 4.5, 4.0])), wrt=(0, 1), slow=True)
def dynamic_time_warping(s, t):
    n, m = len(s), len(t)
    dtw = np.full((n + 1, m + 1), np.inf)
    dtw[0, 0] = 0
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            cost = (s[i - 1] - t[j - 1]) ** 2
            dtw[i, j] = cost + min(dtw[i - 1, j], dtw[i, j - 1], dtw[i - 1, j - 1])
    return dtw[n, m]


@use((np.array([1, 2, 5]), 63), (np.array([4, 6]), 7), long=True)
def coin_change_on_array(coins, amount):
    best = np.full(amount + 1, amount + 1)
    best[0] = 0
    for a in range(1, amount + 1):
        for coin in coins:
            if coin <= a and best[a - coin] + 1 < best[a]:
                best[a] = best[a - coin] + 1
    return int(best[amount]) if best[amount] <= amount else -1


@use((np.array([40, 20, 30, 10, 30]),))
def matrix_chain(p):
    n = len(p) - 1
    m = np.zeros((n, n), dtype=np.int64)
    for length in range(2, n + 1):
        for i in range(n - length + 1):
            j = i + length - 1
            m[i, j] = np.iinfo(np.int64).max
            for k in range(i, j):
                q = m[i, k] + m[k + 1, j] + p[i] * p[k + 1] * p[j + 1]
                if q < m[i, j]:
                    m[i, j] = q
    return m[0, n - 1]


@use((np.array([-2, 1, -3, 4, -1, 2, 1, -5, 4]),))
def maximum_subarray(x):
    best = current = x[0]
    start = end = begin = 0
    for i in range(1, len(x)):
        if current < 0:
            current, begin = x[i], i
        else:
            current += x[i]
        if current > best:
            best, start, end = current, begin, i
    return best, start, end


@use((np.array([10, 9, 2, 5, 3, 7, 101, 18]),))
def longest_increasing_subsequence(a):
    dp = np.ones(len(a), dtype=np.int32)
    for i in range(len(a)):
        for j in range(i):
            if a[j] < a[i] and dp[j] + 1 > dp[i]:
                dp[i] = dp[j] + 1
    return dp.max()


@use((30,), (2,), long=True)
def sieve(n):
    prime = np.ones(n + 1, dtype=bool)
    prime[:2] = False
    for i in range(2, int(n**0.5) + 1):
        if prime[i]:
            prime[i * i :: i] = False
    return prime, prime.sum()


@use((48, 18), (17, 5), (0, 4))
def gcd_and_bezout(a, b):
    def gcd(a, b):
        return a if b == 0 else gcd(b, a % b)

    old_r, r, old_s, s = a, b, 1, 0
    while r:
        q = old_r // r
        old_r, r = r, old_r - q * r
        old_s, s = s, old_s - q * s
    return gcd(a, b), old_s, math.gcd(a, b)


@use((27,), (1,))
def collatz(n):
    steps, peak = 0, n
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        peak = max(peak, n)
        steps += 1
    return steps, peak


@use((3, 200, 1000007), (2, 0, 7))
def modular_power(base, exponent, modulus):
    result = 1
    base %= modulus
    while exponent > 0:
        if exponent % 2 == 1:
            result = result * base % modulus
        exponent //= 2
        base = base * base % modulus
    return result


@use((97,), (91,), (1,), (2,))
def is_prime(n):
    if n < 2:
        return False
    if n < 4:
        return True
    if n % 2 == 0 or n % 3 == 0:
        return False
    i = 5
    while i * i <= n:
        if n % i == 0 or n % (i + 2) == 0:
            return False
        i += 6
    return True


@use((6,), (1,), long=True)
def pascal_triangle(n):
    rows = np.zeros((n, n), dtype=np.int64)
    for i in range(n):
        rows[i, 0] = rows[i, i] = 1
        for j in range(1, i):
            rows[i, j] = rows[i - 1, j - 1] + rows[i - 1, j]
    return rows


@use((np.array([1, 3, 5, 7, 9, 11]), 7), (np.array([1, 3, 5]), 4))
def binary_search(a, target):
    low, high = 0, len(a) - 1
    while low <= high:
        mid = (low + high) // 2
        if a[mid] == target:
            return mid
        elif a[mid] < target:
            low = mid + 1
        else:
            high = mid - 1
    return -1


SHUFFLED = np.array([5, 2, 9, 1, 5, 6, -3, 0])


@use((SHUFFLED,), (SHUFFLED * 0.5,), long=True)
def insertion_sort(a):
    for i in range(1, len(a)):
        key = a[i]
        j = i - 1
        while j >= 0 and a[j] > key:
            a[j + 1] = a[j]
            j -= 1
        a[j + 1] = key


@use((SHUFFLED,))
def selection_sort(a):
    n = len(a)
    for i in range(n):
        smallest = i
        for j in range(i + 1, n):
            if a[j] < a[smallest]:
                smallest = j
        a[i], a[smallest] = a[smallest], a[i]
    return a


@use((SHUFFLED,), (np.arange(4),))
def bubble_sort(a):
    n = len(a)
    swapped = True
    passes = 0
    while swapped:
        swapped = False
        for i in range(n - 1):
            if a[i] > a[i + 1]:
                a[i], a[i + 1] = a[i + 1], a[i]
                swapped = True
        n -= 1
        passes += 1
    return passes


def partition(a, low, high):
    pivot = a[high]
    i = low - 1
    for j in range(low, high):
        if a[j] <= pivot:
            i += 1
            a[i], a[j] = a[j], a[i]
    a[i + 1], a[high] = a[high], a[i + 1]
    return i + 1


@use((SHUFFLED, 0, 7), long=True)
def quicksort(a, low, high):
    if low < high:
        p = partition(a, low, high)
        quicksort(a, low, p - 1)
        quicksort(a, p + 1, high)


@use((SHUFFLED,), long=True)
def merge_sort(x):
    if len(x) <= 1:
        return x
    mid = len(x) // 2
    left, right = merge_sort(x[:mid]), merge_sort(x[mid:])
    out = np.empty_like(x)
    i = j = 0
    for k in range(len(x)):
        if j >= len(right) or (i < len(left) and left[i] <= right[j]):
            out[k] = left[i]
            i += 1
        else:
            out[k] = right[j]
            j += 1
    return out


@use((SHUFFLED,), long=True)
def heapsort(a):
    def sift(start, end):
        root = start
        while (child := 2 * root + 1) <= end:
            if child + 1 <= end and a[child] < a[child + 1]:
                child += 1
            if a[root] < a[child]:
                a[root], a[child] = a[child], a[root]
                root = child
            else:
                return

    n = len(a)
    for start in range(n // 2 - 1, -1, -1):
        sift(start, n - 1)
    for end in range(n - 1, 0, -1):
        a[0], a[end] = a[end], a[0]
        sift(0, end - 1)
    return a


@use((np.array([3, 1, 2, 1, 0, 3]), 4))
def counting_sort(a, k):
    count = np.zeros(k, dtype=int)
    for v in a:
        count[v] += 1
    out = np.zeros_like(a)
    pos = 0
    for v in range(k):
        for _ in range(count[v]):
            out[pos] = v
            pos += 1
    return out, count


@use((5, 2), (6, 6), long=True)
def permutations_and_combinations(n, k):
    def factorial(n):
        return 1 if n <= 1 else n * factorial(n - 1)

    def choose(n, k):
        if k == 0 or k == n:
            return 1
        return choose(n - 1, k - 1) + choose(n - 1, k)

    return factorial(n) // factorial(n - k), choose(n, k), math.comb(5, 2), math.factorial(5)


@use((2, 3))
def ackermann(m, n):
    if m == 0:
        return n + 1
    if n == 0:
        return ackermann(m - 1, 1)
    return ackermann(m - 1, ackermann(m, n - 1))


@use((5,), long=True)
def hanoi(n, source="A", target="C", spare="B"):
    if n == 0:
        return 0
    return hanoi(n - 1, source, spare, target) + 1 + hanoi(n - 1, spare, target, source)


@use((6,))
def n_queens(n):
    columns = np.zeros(n, dtype=np.int64)

    def safe(row, col):
        for r in range(row):
            c = columns[r]
            if c == col or abs(c - col) == row - r:
                return False
        return True

    def place(row):
        if row == n:
            return 1
        count = 0
        for col in range(n):
            if safe(row, col):
                columns[row] = col
                count += place(row + 1)
        return count

    return place(0)


@use((10,), (0,))
def fibonacci_memoised(n):
    memo = np.full(n + 2, -1)

    def fib(k):
        if k < 2:
            return k
        if memo[k] >= 0:
            return memo[k]
        memo[k] = fib(k - 1) + fib(k - 2)
        return memo[k]

    return int(fib(n))


@use((letters("hello world"),))
def crc32(message):
    crc = 0xFFFFFFFF
    for byte in message:
        crc ^= int(byte)
        for _ in range(8):
            if crc & 1:
                crc = (crc >> 1) ^ 0xEDB88320
            else:
                crc >>= 1
    return crc ^ 0xFFFFFFFF


@use((letters("hello"),))
def fnv_and_adler(data):
    h = np.uint32(2166136261)
    for b in data.astype(np.uint32):
        h = (h ^ b) * np.uint32(16777619)
    a, b = 1, 0
    for v in data:
        a = (a + int(v)) % 65521
        b = (b + a) % 65521
    return h, (b << 16) | a


@use((0b10110,), (255,))
def bit_tricks(x):
    count, n = 0, x
    while n:
        n &= n - 1
        count += 1
    reverse = 0
    for i in range(8):
        if x >> i & 1:
            reverse |= 1 << (7 - i)
    gray = x ^ (x >> 1)
    return count, reverse, gray, x & -x, ~x, (x & (x - 1)) == 0


@use((np.array([1, 1, 2, 2, 2, 3]),), (np.array([7]),))
def run_length_encode(x):
    values = np.zeros(len(x), dtype=x.dtype)
    counts = np.zeros(len(x), dtype=int)
    k = -1
    last = None
    for v in x:
        if last is None or v != last:
            k += 1
            values[k] = v
        counts[k] += 1
        last = v
    return values[: k + 1], counts[: k + 1]


@use((np.array([0.1, 0.5, 0.7, 0.2, 0.99, 1.0]), 4, 0.0, 1.0))
def histogram(x, bins, low, high):
    counts = np.zeros(bins, dtype=np.int64)
    width = (high - low) / bins
    for v in x:
        if v < low or v > high:
            continue
        b = int((v - low) / width)
        if b == bins:
            b -= 1
        counts[b] += 1
    return counts


@use((12345, 5))
def linear_congruential(seed, n):
    out = np.zeros(n)
    for i in range(n):
        seed = (1103515245 * seed + 12345) % 2**31
        out[i] = seed / 2**31
    return out, seed


@use((np.uint64(42), 4))
def xorshift(state, n):
    values = np.zeros(n, dtype=np.uint64)
    for i in range(n):
        state ^= state << np.uint64(13)
        state ^= state >> np.uint64(7)
        state ^= state << np.uint64(17)
        values[i] = state
    return values


@use((np.array([1, 2, 3, 4]), 2), (np.array([1, 2, 3, 4]), -1))
def rotate_in_place(a, k):
    def reverse(lo, hi):
        while lo < hi:
            a[lo], a[hi] = a[hi], a[lo]
            lo, hi = lo + 1, hi - 1

    n = len(a)
    k %= n
    reverse(0, n - 1)
    reverse(0, k - 1)
    reverse(k, n - 1)
    return a


@use((123454321,), (1210,))
def digits(n):
    original, backwards, total = n, 0, 0
    while n > 0:
        n, d = divmod(n, 10)
        backwards = backwards * 10 + d
        total += d
    return backwards == original, total


@use((np.arange(9).reshape(3, 3),), long=True)
def spiral_order(matrix):
    top, bottom, left, right = 0, matrix.shape[0] - 1, 0, matrix.shape[1] - 1
    out = np.zeros(matrix.size, dtype=matrix.dtype)
    k = 0
    while top <= bottom and left <= right:
        for j in range(left, right + 1):
            out[k] = matrix[top, j]
            k += 1
        top += 1
        for i in range(top, bottom + 1):
            out[k] = matrix[i, right]
            k += 1
        right -= 1
        if top <= bottom:
            for j in range(right, left - 1, -1):
                out[k] = matrix[bottom, j]
                k += 1
            bottom -= 1
        if left <= right:
            for i in range(bottom, top - 1, -1):
                out[k] = matrix[i, left]
                k += 1
            left += 1
    return out


@use((np.array([0, 1, 2, 3, 4]), np.array([[0, 1], [1, 2], [3, 4]])), long=True)
def union_find(parent, edges):
    def find(x):
        while parent[x] != x:
            parent[x] = parent[parent[x]]
            x = parent[x]
        return x

    groups = len(parent)
    for a, b in edges:
        ra, rb = find(a), find(b)
        if ra != rb:
            parent[ra] = rb
            groups -= 1
    return groups


@use((6, 5), (0, 3), long=True)
def lattice_paths(rows, columns):
    memo = {}

    def paths(i, j):
        if i == 0 or j == 0:
            return 1
        if (i, j) not in memo:
            memo[i, j] = paths(i - 1, j) + paths(i, j - 1)
        return memo[i, j]

    return paths(rows, columns)


@use((9, 1.1), wrt=(1,), long=True)
def remembered_recurrence(n, x):
    memo = {}

    def term(k):
        if k in memo:
            return memo[k]
        found = x if k < 2 else term(k - 1) * x + term(k - 2)
        memo[k] = found
        return found

    return term(n)


@use((40,), (1,), long=True)
def cached_inside(n):
    @functools.cache
    def fibonacci(k):
        return k if k < 2 else fibonacci(k - 1) + fibonacci(k - 2)

    @functools.lru_cache(maxsize=64)
    def binomial(i, j):
        return 1 if j == 0 or i == j else binomial(i - 1, j - 1) + binomial(i - 1, j)

    return fibonacci(n), binomial(10, min(n, 5))


@use((np.array([0.5, 1.5, -2.0, -0.5, 3.0]),), wrt=(0,), slow=True)
def runs_of_signs(x):
    total = 0.0
    for positive, group in itertools.groupby(x, key=lambda v: v > 0):
        product = 1.0
        for v in group:
            product *= v
        total += product if positive else -product
    return total + sum(1 for key, run in itertools.groupby("aabbb") if len(list(run)) > 2)


@use(([1, 2, 3, 1, 4, 1, 2], 3), (np.array([1, 2, 3, 1, 4, 1, 2]), 3), long=True)
def least_recently_used(keys, room):
    cache, hits = OrderedDict(), 0
    for key in keys:
        if key in cache:
            hits += 1
            cache.move_to_end(key)
        else:
            cache[key] = 2 * key
            if len(cache) > room:
                cache.popitem(last=False)
    return hits, list(cache), cache


@use(([1, 2, 3, 1, 4, 1, 2, 5, 3, 1], 3))
def oldest_leave_first(keys, room):
    cache, seen, order = {}, set(), []
    for key in keys:
        if key in cache:
            cache[key] = cache.pop(key) + 1
        else:
            if len(cache) >= room:
                oldest = next(iter(cache))
                order.append(oldest)
                del cache[oldest]
                seen.discard(oldest)
            cache[key] = key
            seen.add(key)
    last = cache.popitem()
    return order, last, list(cache), sorted(seen), min(seen)


@use((np.array([0.5, 1.5, -2.0]),))
def order_of_names(x):
    values = OrderedDict(zip(("a", "b", "c"), x, strict=True))
    values.move_to_end("c", last=False)
    same = values == OrderedDict(values), OrderedDict(a=1, b=2) != OrderedDict(b=2, a=1)
    return list(values.items()), values.popitem(), same, values == {"a": 0.5, "c": -2.0}


@use((np.array([0.5, 1.0]),))
def equality_of_containers(x):
    same = (x[0],) == (0.5,), [x[0], x[1]] != [0.5, 1.0], {"a": x[0]} == {"a": 0.5}
    return same, x[0] in (0.5, 2)


@use(([3, 4, 3, 1, 2] * 20, 30), ([6], 0), ([], 2))
def made_anew_each_round(days_left, days):
    """Each round makes a dict of the one before."""
    counts = {}
    for left in days_left:
        counts[left] = counts.get(left, 0) + 1
    for _ in range(days):
        after = {}
        for left, many in counts.items():
            if left == 0:
                after[6] = after.get(6, 0) + many
                after[8] = many
            else:
                after[left - 1] = after.get(left - 1, 0) + many
        counts = after
    return sum(counts.values()), counts
