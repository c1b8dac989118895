"""Regular expressions over a log."""

import re

line = '10.0.{}.{} - - [12/Mar/2026:06:25:{:02d} +0000] "GET /item/{}?q=ab%20c HTTP/1.1" 200 {}\n'
log = "".join(line.format(i % 256, i * 7 % 256, i % 60, i, i * 31 % 9999) for i in range(12_000))
pattern = re.compile(r'^(?P<ip>[\d.]+) \S+ \S+ \[(?P<time>[^\]]+)\] "(?P<verb>[A-Z]+) (?P<path>[^ "?]+)[^"]*" (?P<code>\d{3}) (?P<size>\d+)$', re.M)
total = sum(int(m["size"]) for m in pattern.finditer(log))
total += len(re.sub(r"\d+", lambda m: m[0][::-1], log))
print(total)
