"""C code of the standard library: hashes and compression."""

import bz2
import hashlib
import zlib

data = b"".join(f"line {i * i} of a text that compresses well\n".encode() for i in range(40_000))
out = zlib.compress(data, 6)
assert zlib.decompress(out) == data
print(len(out), len(bz2.compress(data[:300_000])), hashlib.sha256(data * 5).hexdigest()[:8], hashlib.md5(data * 5).hexdigest()[:8])
