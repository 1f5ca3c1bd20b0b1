"""Lists of dicts and of objects as arguments: rows with numbers and texts, read and changed."""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field

import numpy as np

from tests.users.corpus import use

NAMES = ("ann", "bob", "cy", "dorothea")


def rows(n):
    return [{"id": i, "name": NAMES[i * i % 4], "w": float(i * 7 % 5)} for i in range(n)]


@dataclass
class Worker:
    """Somebody with a name."""

    name: str
    pay: float
    team: str = "x"
    tags: list = field(default_factory=list)

    def bonus(self, factor=1.0):
        return self.pay * factor + len(self.name)

    @property
    def label(self):
        return f"{self.name}@{self.team}"


@dataclass
class Head(Worker):
    """Somebody with a name and a level."""

    level: int = 1

    def bonus(self, factor=1.0):
        return super().bonus(factor) * self.level


def workers(n):
    return [Worker(NAMES[i % 4], float(i * 7 % 5), "ab"[i % 2]) for i in range(n)]


def staff(n):
    return [
        w if i % 3 else Head("boss", i + 0.5, "c", [], i) for i, w in enumerate(workers(n))
    ]


@use((rows(3),), (rows(20),), long=True)
def rows_chosen(rows):
    heavy = [r for r in rows if r["w"] > 2.5]
    return heavy, max(rows, key=lambda r: r["w"]), Counter(r["name"] for r in rows)


@use((rows(20), "eve"), (rows(3), "eve"))
def rows_added(rows, name):
    rows.append({"id": len(rows), "name": name, "w": 1.5})
    rows.append({"id": -1, "name": "a longer name than any before", "w": 1.5})
    rows.sort(key=lambda r: (-r["w"], r["name"]))
    return [r["name"] for r in rows]


@use((rows(20),))
def rows_moved(rows):
    last = rows.pop()
    del rows[0]
    rows.insert(1, last)
    rows[2], rows[3] = rows[3], rows[2]
    rows.reverse()


@use((rows(20),))
def rows_renamed(rows):
    for r in rows:
        if r["w"] > 2:
            r["name"] = r["name"] + "!" * r["id"]
        else:
            r["name"] = "small"
    return rows[1]


@use((rows(20),), (rows(3),))
def new_rows_of_rows(rows):
    return [{**r, "squared": r["w"] ** 2} for r in rows], [
        {"n": r["name"].upper()} for r in rows if r["id"] % 2
    ]


@use((rows(20),), (rows(3),))
def rows_matched(rows):
    total = 0.0
    for r in rows:
        match r:
            case {"name": "ann", "w": w}:
                total += w
            case {"name": "bob"}:
                total += 100
            case _:
                total -= 1
    return total


@use(([{"x": i, "at": {"u": 0.5 * i}, "tags": list(range(i % 4))} for i in range(20)],))
def rows_in_rows(rows):
    return [r["x"] for r in rows if r["at"]["u"] > 2], sum(len(r["tags"]) for r in rows)


@use(([{"i": i, "p": None if i % 3 else 1.5 * i} for i in range(20)],), long=True)
def rows_with_gaps(rows):
    return [r["i"] for r in rows if r["p"] is None], sum(r["p"] for r in rows if r["p"] is not None)


@use((rows(20),))
def rows_before_an_error(rows):
    for r in rows:
        r["w"] += 1
        if r["w"] > 4:
            raise ValueError(f"{r['name']} is too heavy: {r['w']}")


@use((workers(20),), (staff(20),), long=True)
def workers_in_teams(staff):
    teams = {}
    for w in staff:
        if w.team not in teams:
            teams[w.team] = [0, 0.0]
        teams[w.team][0] += 1
        teams[w.team][1] += w.pay
    return {team: pay / count for team, (count, pay) in teams.items()}


@use((workers(20), "cy"), (staff(20), "nobody"))
def workers_renamed(staff, wanted):
    found = None
    for w in staff:
        if w.name == wanted:
            found = w
        w.name = w.name.title() + " Esq."
    return found, sum(w.bonus(2.0) for w in staff), staff[3].label


@use((workers(20),), (workers(3),))
def new_workers(staff):
    staff.append(Worker("zed", 9.5))
    staff.sort(key=lambda w: w.pay)
    return [Worker(w.name, w.pay * 2, "new") for w in staff if w.pay > 2], staff[-1].name


ROWS = rows(20)


@use((ROWS, ROWS[3]), ([*ROWS, ROWS[3]], ROWS[3]))
def a_row_that_is_another_argument(rows, best):
    best["w"] += 10.0
    rows[-1]["w"] *= 2
    return sum(r["w"] for r in rows), best["w"], rows.index(best)


@use((ROWS + ROWS[:5],))
def rows_twice_in_a_list(rows):
    for r in rows:
        r["w"] += 1.0
    return rows[0]["w"], rows[0] is rows[20], sum(r["w"] for r in rows)


@use((np.array([1.0, 3.0, 2.0]),), (np.array([1.0, 2.0]),), long=True)
def containers_matched(x):
    table, queue = {}, deque()
    for v in x:
        table[int(v)] = v
        queue.append(v)
    found = 0.0
    match table:
        case {3: v, **others}:
            found = v + len(others)
    match queue:
        case [a, b]:
            found += 10 * (a + b)
    return found


@use(({"a": 5}, 3), ({"a": 5}, 1), long=True)
def a_key_on_one_branch(store, x):
    if x > 2:
        store["b"] = x
    return len(store), list(store)


@use(({"a": 5}, [1, 3, 2]), long=True)
def taken_anew_in_a_loop(store, xs):
    for x in xs:
        if x > 2:
            store.clear()
            store.update({"z": x})
        else:
            store["b"] = x
    return store


@use((1,), (2,))
def none_is_no_mapping(x):
    store, said = {"a": x}, []
    try:
        store.update(None)
    except TypeError as error:
        said.append(str(error))
    try:
        dict(None)
    except TypeError as error:
        said.append(str(error))
    store.update()
    return said, store, dict(), dict(()), dict(c=x)
