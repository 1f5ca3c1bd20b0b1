"""Lists of dicts: rows of a table that the running program makes, finds, changes and sorts."""

from __future__ import annotations

import heapq
from collections import deque

import numpy as np

from tests.users.corpus import use

X = np.arange(20) % 7 * 1.0
NONE = X[:0]


@use((X, 1.5), (NONE, 1.5), wrt=(0,), long=True)
def rows_kept_by_a_condition(x, limit):
    rows = []
    for i in range(len(x)):
        if x[i] > limit:
            rows.append({"id": i, "w": x[i] * x[i]})
    return sum(r["w"] for r in rows), len(rows)


@use((X, 2))
def rows_changed_in_place(x, k):
    rows = [{"id": i, "w": float(v)} for i, v in enumerate(x)]
    rows[k]["w"] += 1
    for r in rows:
        r["w"] *= 2
        if r["id"] > 3:
            r["id"] = -r["id"]
    heavy = [r for r in rows if r["w"] > 5]
    heavy[0]["id"] = 100
    return rows, heavy, heavy[0] is rows[k]


@use((X,), long=True)
def rows_in_order(x):
    rows = [{"i": i, "v": float(v)} for i, v in enumerate(x)]
    rows.sort(key=lambda r: (r["v"], -r["i"]))
    light = sorted(rows, key=lambda r: r["v"], reverse=True)[:3]
    return rows[:3], max(rows, key=lambda r: r["i"]), [r["i"] for r in light]


@use((X,), long=True)
def rows_of_several_shapes(x):
    rows = []
    for v in x:
        if v > 2:
            rows.append({"a": float(v)})
        else:
            rows.append({"b": float(v), "a": None})
    return rows, [r["a"] is None for r in rows], [len(r) for r in rows]


@use((X,), long=True)
def rows_that_get_keys_late(x):
    rows = []
    for i, v in enumerate(x):
        if v > 0:
            rows.append({"id": i})
    for r in rows:
        r["w"] = 2.0 * r["id"]
    t = 0
    for r in rows:
        if r["id"] % 2:
            t += r.pop("id")
    return rows, t


@use((X,), long=True)
def rows_filled_key_by_key(x):
    rows = []
    for i, v in enumerate(x):
        r = {}
        r["id"] = i
        r["w"] = float(v)
        if v > 2:
            r["big"] = True
        rows.append(r)
    return rows, [r["id"] for r in rows if "big" in r]


@use((X, 3))
def rows_in_lists(x, n):
    groups = [[] for _ in range(n)]
    for i, v in enumerate(x):
        groups[i % n].append({"id": i, "w": float(v)})
    return groups, [sum(r["w"] for r in g) for g in groups]


@use((X,), long=True)
def lists_in_rows(x):
    rows = []
    for i in range(len(x)):
        rows.append({"id": i, "kids": [], "at": {"x": x[i], "y": 0.0}})
    for i in range(1, len(rows)):
        rows[(i - 1) // 2]["kids"].append(i)
        rows[i]["at"]["y"] -= rows[i]["at"]["x"]
    return rows, [len(r["kids"]) for r in rows], [r["at"]["y"] for r in rows]


@use((X,), long=True)
def dicts_under_computed_keys(x):
    found = {}
    for i, v in enumerate(x):
        k = int(v)
        if k not in found:
            found[k] = {"n": 0, "sum": 0.0}
        found[k]["n"] += 1
        found[k]["sum"] += v * i
    return found, {k: d["sum"] / d["n"] for k, d in found.items()}


@use((X,), long=True)
def methods_of_rows(x):
    rows = [{"a": i, "b": float(v)} for i, v in enumerate(x) if v > 1]
    copies = [dict(r) for r in rows]
    for r in rows:
        r.update(a=r["a"] + 1)
        r.update({"b": 0.5})
        r |= {"a": 3}
    longer = [r | {"c": 1} for r in rows] + [{**r, "c": 2} for r in copies]
    first = rows[0]
    return (
        rows, copies, longer, first == rows[1], first == copies[1], {"a": 3, "b": 0.5} in rows,
        first.get("a"), first.get("z", 7), "b" in first, "z" in first, len(first), list(first),
        [sum(r.values()) for r in copies], [k for k, _ in first.items()], isinstance(first, dict),
        first.setdefault("a", 5), sorted(first), first.pop("z", None), list(first.items()),
    )


@use((X,))
def a_key_that_rows_have_not(x):
    rows = [{"a": i} for i, v in enumerate(x) if v > 1]
    try:
        return rows[0]["z"]
    except KeyError:
        return rows[1]["z"]


@use((X, 1), long=True)
def a_key_of_rows_computed(x, k):
    rows = []
    for i, v in enumerate(x):
        if v > 1:
            rows.append({0: i, 1: 2 * i})
    total = 0
    for r in rows:
        total += r[(total + k) % 2]
    return total


@use(("hello world",))
def characters_in_rows(s):
    rows = []
    for c in s:
        if c != "o":
            rows.append({"c": c, "n": ord(c)})
    return rows, "".join(r["c"] for r in rows)


@use((X,), long=True)
def rows_linked_by_a_key(x):
    rows = [{"id": i, "next": None} for i, v in enumerate(x) if v > 0]
    for i in range(len(rows) - 1):
        rows[i]["next"] = rows[i + 1]
    total, here = 0, rows[0]
    while here is not None:
        total = 2 * total % 1001 + here["id"]
        here = here["next"]
    return total


@use((X,), long=True)
def events_in_a_heap(x):
    heap = []
    for i, v in enumerate(x):
        heapq.heappush(heap, (float(v), i, {"k": i}))
    order = []
    while heap:
        _, _, event = heapq.heappop(heap)
        order.append(event["k"])
    return order


@use((X, 4), wrt=(0,), slow=True)
def a_table_of_dicts(x, n):
    table = [[{"cost": 0.0, "from": -1} for _ in range(n)] for _ in range(len(x))]
    for i in range(1, len(x)):
        for j in range(n):
            best = min(range(n), key=lambda k: table[i - 1][k]["cost"] + abs(j - k) * 0.3)
            table[i][j]["cost"] = table[i - 1][best]["cost"] + abs(j - best) * 0.3 + j * x[i]
            table[i][j]["from"] = best
    return [r["cost"] for r in table[-1]], table[3][1]["from"]


@use((3,), (5,))
def dicts_in_dicts_by_recursion(n):
    def made(depth):
        if depth == 0:
            return {"v": 1, "left": None, "right": None}
        return {"v": depth, "left": made(depth - 1), "right": made(depth - 1)}

    def total(tree):
        if tree is None:
            return 0
        return tree["v"] + total(tree["left"]) + total(tree["right"])

    return total(made(n)), made(2)


@use(("ushers and hers", ["he", "she", "his", "hers"]), long=True)
def words_found_by_an_automaton(text, words):
    goto, out, fail = [{}], [[]], [0]
    for w in words:
        s = 0
        for c in w:
            if c not in goto[s]:
                goto[s][c] = len(goto)
                goto.append({})
                out.append([])
                fail.append(0)
            s = goto[s][c]
        out[s].append(w)
    queue = deque(goto[0].values())
    while queue:
        r = queue.popleft()
        for c, u in goto[r].items():
            queue.append(u)
            f = fail[r]
            while f and c not in goto[f]:
                f = fail[f]
            fail[u] = goto[f].get(c, 0)
            out[u] += out[fail[u]]
    s = 0
    found = []
    for i, c in enumerate(text):
        while s and c not in goto[s]:
            s = fail[s]
        s = goto[s].get(c, 0)
        for w in out[s]:
            found.append((i - len(w) + 1, w))
    return found
