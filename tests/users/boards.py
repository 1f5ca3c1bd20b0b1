"""Boards of letters, lists of texts in lists, and rows of names and numbers as arguments."""

from __future__ import annotations

from tests.users.corpus import use

BOARD = [list("110010"), list("010111"), list("001000"), list("100011"), list("011001")]
SMALL = [["X", "O", "X"], ["O", "X", "O"], ["O", "X", "X"]]
WORDS = [["ab", "c"], ["", "defg"], ["x", "yy", "k"], ["é", "zz"], ["q"]]
FLIGHTS = [["JFK", "SFO"], ["JFK", "ATL"], ["SFO", "ATL"], ["ATL", "JFK"], ["ATL", "SFO"]]
SALES = [[f"name {k % 7}", k % 5, 0.5 * k] for k in range(20)]


@use((BOARD,), ([["1"]],), long=True)
def islands(grid):
    n, m = len(grid), len(grid[0])
    count = 0
    for i in range(n):
        for j in range(m):
            if grid[i][j] == "1":
                count += 1
                stack = [(i, j)]
                while stack:
                    a, b = stack.pop()
                    if 0 <= a < n and 0 <= b < m and grid[a][b] == "1":
                        grid[a][b] = "0"
                        stack += [(a + 1, b), (a - 1, b), (a, b + 1), (a, b - 1)]
    return count


@use((SMALL,), ([["X", "X", "X"], ["O", " ", "O"], [" ", " ", " "]],), long=True)
def winner(board):
    for i in range(3):
        if board[i][0] == board[i][1] == board[i][2] != " ":
            return board[i][0]
        if board[0][i] == board[1][i] == board[2][i] != " ":
            return board[0][i]
    if board[0][0] == board[1][1] == board[2][2] != " ":
        return board[0][0]
    return None


@use((BOARD,))
def lengthened_letters(board):
    for i in range(len(board)):
        for j in range(len(board[i])):
            if board[i][j] == "1":
                board[i][j] = "10"
    board[0].append("x")
    return board[1]


@use((BOARD,), (WORDS,), long=True)
def drawn(board):
    return "\n".join("".join(row) for row in board), [list(row)[::-1] for row in board]


@use((WORDS,), (BOARD,), long=True)
def words_in_rows_counted(rows):
    counts = {}
    for row in rows:
        for word in row:
            counts[word] = counts.get(word, 0) + len(word)
    rows.sort(key=lambda row: row[0])
    return counts


@use((FLIGHTS,), long=True)
def itinerary(tickets):
    targets = {}
    for start, end in tickets:
        targets.setdefault(start, []).append(end)
    for start in targets:
        targets[start].sort(reverse=True)
    route, stack = [], ["JFK"]
    while stack:
        while targets.get(stack[-1]):
            stack.append(targets[stack[-1]].pop())
        route.append(stack.pop())
    return route[::-1]


@use((SALES,), (SALES[:3],))
def sold(rows):
    best, totals = rows[0], {}
    for row in rows:
        name, count, price = row
        totals[name] = totals.get(name, 0.0) + count * price
        row[1] += 1
        if price > best[2]:
            best = row
    best[0] = "best"
    return totals, best
