"""Sorting records by keys, and heaps."""

import heapq
from operator import itemgetter

seed = 1
rows = []
for i in range(120_000):
    seed = seed * 6364136223846793005 + 1442695040888963407 & 2**64 - 1
    rows.append((seed >> 40, f"name{seed >> 50}", i))
rows.sort(key=itemgetter(1))
rows.sort(key=lambda row: -row[0])
heap = []
for row in rows[:60_000]:
    heapq.heappush(heap, row[2])
print(rows[0][2], heapq.nsmallest(3, heap), len({row[1] for row in rows}))
