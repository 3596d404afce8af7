import json
import sys

for block in sys.stdin.read().split("EON\n")[:-1]:
    paths = block.replace("\t", "/").split("EOS\n")[:-1]
    found = [" ".join(path.split("\n")).strip() for path in paths]
    print(json.dumps({"candidates": found}))
