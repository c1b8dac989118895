"""Finds the open points in a folder of notes and writes a summary of them."""

import asyncio
import re
from collections import defaultdict

import mcp.runtime as runtime

print("servers:", *runtime.discovered_servers())

allowed = await mcp_files.list_allowed_directories()
folder = allowed.content.splitlines()[-1]
listing = await mcp_files.list_directory(path=folder)
names = [line.removeprefix("[FILE] ") for line in listing.content.splitlines() if line.endswith(".txt")]
files = await asyncio.gather(*(mcp_files.read_text_file(path=f"{folder}/{name}") for name in names))

open_points = defaultdict(list)
for name, file in zip(names, files):
    for line in file.content.splitlines():
        if point := re.match(r"TODO: (.*)", line):
            open_points[name].append(point[1])

summary = "".join(
    f"## {name}\n" + "".join(f"- {point}\n" for point in points) for name, points in sorted(open_points.items())
)
await mcp_files.write_file(path=f"{folder}/summary.md", content=summary)
print(f"{len(names)} notes, {sum(map(len, open_points.values()))} open points, written to summary.md")
