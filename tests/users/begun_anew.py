"""Lists, dicts and sets that a loop fills and begins anew, under one name."""

from __future__ import annotations

import numpy as np

from tests.users.corpus import refuse, use

X = np.array([0.64, 0.27, 0.04, 0.02, 0.81, 0.91, 0.61, 0.73, 0.34, 0.94])


@use((X, 0.4), (X, 2.0))
def runs_above(x, least):
    runs, run = [], []
    for v in x:
        if v > least:
            run.append(v)
        elif run:
            runs.append(run)
            run = []
    if run:
        runs.append(run)
    return runs


@use((X, 0.4))
def arrays_of_runs_above(x, least):
    runs, run = [], []
    for v in x:
        if v > least:
            run.append(v)
        elif run:
            runs.append(np.array(run))
            run = []
    return [r.max() for r in runs], len(runs)


@use((X, 0.4))
def longest_run(x, least):
    best, run = [], []
    for v in x:
        if v > least:
            run.append(v)
        else:
            if len(run) > len(best):
                best = run
            run = []
    return best


@use((X, 1.5), wrt=(0,), long=True)
def sums_until(x, most):
    totals, part = [], []
    for v in x:
        part.append(v)
        if sum(part) > most:
            totals.append(sum(part))
            part = []
    return totals, part


@use(([3, 4, 2, 5, 1, 6, 2], 8))
def lines_of_words(words, width):
    lines, line, used = [], [], 0
    for w in words:
        if used + w + len(line) > width:
            lines.append(line)
            line, used = [], 0
        line.append(w)
        used += w
    lines.append(line)
    return lines


@use((15,))
def breadth_first(n):
    level, following, seen = [0], [], []
    while level:
        for v in level:
            seen.append(v)
            if 2 * v + 2 < n:
                following.append(2 * v + 1)
                following.append(2 * v + 2)
        level, following = following, []
    return seen


@use((X,))
def repeats_in_windows(x):
    found, seen = [], {}
    for v in x:
        k = int(v * 3)
        if k in seen:
            found.append(len(seen))
            seen = {}
        seen[k] = v
    return found


@use((X,), long=True)
def counted_since(x):
    counts, total = {"n": 0}, 0
    for v in x:
        if v > 0.5:
            total += counts["n"]
            counts = {"n": 0}
        counts["n"] += 1
    return counts, total


@use((X,), (np.minimum(X, 0.5),), long=True)
def last_and_present(x):
    run, last = [], []
    for v in x:
        if v > 0.5:
            last, run = run, []
        run.append(v)
    return last, run


@use((X,), (np.minimum(X, 0.5),))
def last_begins_as_the_present(x):
    """Where nothing is above the threshold, both names mean the list that was filled."""
    run = []
    last = run
    for v in x:
        if v > 0.5:
            last, run = run, []
        run.append(v)
    return last, run


@use((X,), long=True)
def another_name_is_read(x):
    run = []
    first = run
    for v in x:
        if v > 0.5:
            run = []
        run.append(v)
    return len(first), len(run)


@refuse((X,), "may or may not be the object that was written under another name")
def another_name_is_read_in_the_loop(x):
    run, total = [1.0], 0
    first = run
    for v in x:
        total += len(first)
        if v > 0.5:
            run = []
        run.append(v)
    return total


@use((X,), (X[::-1],))
def one_of_two_lists(x):
    low, high = [], []
    for v in x:
        (low if v < 0.5 else high).append(v)
    for i, v in enumerate(x):
        bucket = low if i % 2 == 0 else high
        bucket.append(-v)
        if len(bucket) > 6:
            bucket.pop(0)
    return low, high


@use((X,))
def the_list_from_here_on(x):
    left, right = [], []
    present = left
    for v in x:
        if v > 0.8:
            present = right
        present.append(v)
    return left, right


@use(([3, 1, 4, 1, 5, 9, 2, 6, 5],))
def counted_in_a_small_grid(numbers):
    grid = [[0] * 4 for _ in range(4)]
    for v in numbers:
        grid[v % 4][v // 4] += 1
    rows = [sum(row) for row in grid]
    first, *_, last = rows
    return grid, first, last


@use((np.array([3, 1, 4, 1, 5, 9, 2, 6, 5]),))
def counts_with_names(numbers):
    counts = [0, 0, 0]
    for v in numbers:
        counts[v % 3] += 1
    return dict(zip(["none", "one", "two"], counts, strict=True))


@use((np.array([3, 1, 4, 1, 5]),), long=True)
def lines_of_a_report(numbers):
    report = ""
    for i in range(3):
        report += f"{i}: {numbers[i]:.2f}\n"
    return report


@use((np.array([3, 1, 4, 1, 5] * 60),), long=True)
def a_text_that_grows(numbers):
    marks = ""
    for v in numbers:
        marks += "#" if v > 2 else "."
    return marks


@use((X, 1), (X, -1))
def written_through_the_chosen_one(x, n):
    rows, others = [x, x], [x + 1.0, x]
    kept = rows if n > 0 else others
    kept[0] = 1.0
    return rows, others, kept


@use((6,))
def rows_of_a_triangle(n):
    row = [1]
    rows = [row]
    for _ in range(n):
        row = [1] + [a + b for a, b in zip(row, row[1:], strict=False)] + [1]
        rows.append(row)
    return rows, len(row)


@use((np.array([1.0, 0.5, -2.0]),), wrt=(0,))
def states_that_are_noted(x):
    state, noted = [0.0, 1.0], []
    for v in x:
        noted.append(state)
        state = [s * v + k for k, s in enumerate(state)]
    return noted, state


@use((4,))
def rows_that_go_on_where_they_are(n):
    rows = []
    for k in range(n):
        row = [k]
        rows.append(row)
        if k % 2:
            row.append(-k)
        row.append(7)
    rows.append([1, 2, 3, 4, 5])
    rows.append([9])
    return rows


@use((X, 6), (X, 8), long=True)
def rows_beside_a_table(x, n):
    rows, table = [], [[0.0 * x[0]] * 3 for _ in range(n)]
    for i in range(n):
        rows.append(x[i % 5])
        table[i][1] = x[i % 5]
    return rows, table


@use(("3 + 4 * (2 - 1) / 5",))
def in_postfix_order(text):
    rank = {"+": 1, "-": 1, "*": 2, "/": 2}
    found, waiting = [], []
    for word in text.replace("(", " ( ").replace(")", " ) ").split():
        if word in rank:
            while waiting and waiting[-1] != "(" and rank[waiting[-1]] >= rank[word]:
                found.append(waiting.pop())
            waiting.append(word)
        elif word == "(":
            waiting.append(word)
        elif word == ")":
            while waiting[-1] != "(":
                found.append(waiting.pop())
            waiting.pop()
        else:
            found.append(word)
    while waiting:
        found.append(waiting.pop())
    return found
