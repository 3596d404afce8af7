import json
import sys
from itertools import groupby

lines = sys.stdin.read().splitlines()
pairs = zip(lines[::2], lines[1::2], strict=True)
for name, rows in groupby(pairs, key=lambda pair: pair[0].split(",")[0]):
    found = [{"text": t, "score": float(h.split("=")[-1])} for h, t in rows]
    print(json.dumps({"id": name, "candidates": found}))
