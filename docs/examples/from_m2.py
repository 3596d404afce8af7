import json
import sys

for block in sys.stdin.read().strip().split("\n\n"):
    source, *edits = block.splitlines()
    words = source.split()[1:]
    for edit in reversed(edits):
        span, kind, new, *_, annotator = edit[2:].split("|||")
        start, end = map(int, span.split())
        if kind != "noop" and annotator == "0":
            words[start:end] = new.split()
    found = {"source": source[2:], "candidates": [source[2:]]}
    print(json.dumps(found | {"reference": " ".join(words)}))
