"""json both ways."""

import json

record = {
    "id": 17,
    "title": "Some title with \"quotes\" and ünïcode",
    "tags": ["a", "b", "c"] * 5,
    "nested": {"score": 0.25, "ok": True, "none": None, "list": list(range(30))},
}
size = 0
for i in range(6000):
    record["id"] = i
    size += len(json.dumps(json.loads(json.dumps(record))))
print(size)
