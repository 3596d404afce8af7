import json
import sys

lists, names = {}, next(sys.stdin).rstrip("\n").split("\t")
for line in sys.stdin:
    row = dict(zip(names, line.rstrip("\n").split("\t"), strict=False))
    columns = {name: float(row[name]) for name in names[5:-2]}
    match = {"text": row["Peptide"], "gain": int(row["Label"] == "1")}
    lists.setdefault(row["ScanNr"], []).append(match | {"columns": columns})
for scan, found in lists.items():
    print(json.dumps({"id": scan, "candidates": found}))
