"""Byte arrays and slices: primes below four million."""


def sieve(limit):
    composite = bytearray(limit)
    for n in range(2, int(limit**0.5) + 1):
        if not composite[n]:
            composite[n * n :: n] = b"\1" * len(range(n * n, limit, n))
    return [n for n in range(2, limit) if not composite[n]]


print(len(sieve(4_000_000)))
