import gzip
import json
import sys
from pathlib import Path

for path in map(Path, sys.argv[1:]):
    found = []
    with (gzip.open if path.suffix == ".gz" else open)(path, "rt") as lines:
        for am, lm, count, *words in map(str.split, lines):
            columns = {"am": float(am), "lm": float(lm), "words": int(count)}
            found.append({"text": " ".join(words), "columns": columns})
    print(json.dumps({"id": path.name.split(".")[0], "candidates": found}))
