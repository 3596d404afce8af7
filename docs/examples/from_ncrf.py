import json
import sys

for block in sys.stdin.read().strip().split("\n\n"):
    head, *rows = [line.split() for line in block.splitlines()]
    found = []
    for k, score in enumerate(head[1:], start=1):
        words = " ".join(f"{row[0]}/{row[k]}" for row in rows)
        found.append({"text": words, "score": float(score)})
    print(json.dumps({"candidates": found}))
