"""Recursion and small integers: the ways to place nine queens."""


def place(row, size, columns, up, down):
    if row == size:
        return 1
    count = 0
    for column in range(size):
        if columns >> column & 1 or up >> (row + column) & 1 or down >> (row - column + size) & 1:
            continue
        count += place(row + 1, size, columns | 1 << column, up | 1 << (row + column), down | 1 << (row - column + size))
    return count


print(place(0, 9, 0, 0, 0))
