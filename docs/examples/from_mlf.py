import json
import sys
from pathlib import Path

for entry in sys.stdin.read().partition("\n")[2].split("\n.\n")[:-1]:
    name, _, body = entry.partition("\n")
    found = []
    for part in body.split("\n///\n"):
        rows = [line.split() for line in part.splitlines()]
        score = sum(float(row[3]) for row in rows)
        found.append({"text": " ".join(row[2] for row in rows), "score": score})
    print(json.dumps({"id": Path(name.strip('"')).stem, "candidates": found}))
