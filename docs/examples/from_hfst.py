import json
import sys

for block in sys.stdin.read().strip().split("\n\n"):
    rows = [line.split("\t") for line in block.splitlines()]
    known = [(text, float(cost)) for _, text, cost in rows if cost != "inf"]
    found = [{"text": text, "score": -cost} for text, cost in known]
    print(json.dumps({"source": rows[0][0], "candidates": found}))
