"""Products of more than 64 bits of which a remainder is wanted: number theory and hashes."""

from __future__ import annotations

import math
from typing import Any

from tests.users.corpus import use


@use((3, 10**18 + 7, 10**18 + 9), (5, 2**40, 2**61 - 1))
def power_modulo(base: Any, exponent: Any, modulus: Any) -> Any:
    result = 1
    base %= modulus
    while exponent > 0:
        if exponent & 1:
            result = result * base % modulus
        base = base * base % modulus
        exponent >>= 1
    return result


@use((97,), (561,), (2**61 - 1,), (1000000007 * 998244353,))
def is_probably_prime(n: Any) -> Any:
    if n < 2:
        return False
    d, s = n - 1, 0
    while d % 2 == 0:
        d //= 2
        s += 1
    for a in (2, 3, 5, 7, 11, 13):
        x = pow(a, d, n)
        if x in (1, n - 1) or a == n:
            continue
        for _ in range(s - 1):
            x = pow(x, 2, n)
            if x == n - 1:
                break
        else:
            return False
    return True


@use((8051,), (1000000007 * 998244353,))
def pollards_rho(n: Any) -> Any:
    x = y = 2
    d = 1
    while d == 1:
        x = (x * x + 1) % n
        y = (y * y + 1) % n
        y = (y * y + 1) % n
        d = math.gcd(abs(x - y), n)
    return d


@use((10**12, 10**18 + 9))
def fibonacci_modulo(n: Any, m: Any) -> Any:
    def product(a: Any, b: Any) -> Any:
        return [
            [sum(a[i][k] * b[k][j] for k in range(2)) % m for j in range(2)] for i in range(2)
        ]

    result, base = [[1, 0], [0, 1]], [[1, 1], [1, 0]]
    while n:
        if n & 1:
            result = product(result, base)
        base = product(base, base)
        n >>= 1
    return result[0][1]


@use(("abracadabra", 1000003, 2**61 - 1))
def rolling_hashes(text: Any, base: Any, modulus: Any) -> Any:
    found, hashes = 0, []
    for c in text:
        found = (found * base + ord(c)) % modulus
        hashes.append(found)
    return hashes


@use((5, 9, 23))
def doubled_on_a_curve(x: Any, y: Any, times: Any) -> Any:
    p = 2**61 - 1
    for _ in range(times):
        slope = (3 * x * x + 2) * pow(2 * y, p - 2, p) % p
        third = (slope * slope - 2 * x) % p
        x, y = third, (slope * (x - third) - y) % p
    return x, y
