"""Strings and dictionaries: counting words of a made-up text."""

from collections import Counter


def text(n):
    seed = 12345
    for _ in range(n):
        seed = (seed * 1103515245 + 12345) % 2**31
        yield "w" + str(seed // 65536 % 5000)


counts = Counter()
for line in range(60):
    for word in " ".join(text(3000)).upper().split():
        counts[word.lower()] += 1
print(counts.most_common(3))
