import json
import sys
from xml.etree import ElementTree

for word in ElementTree.parse(sys.stdin).iter():
    if word.get("class") == "alternatives":
        costs = [float(each.get("title").split()[1]) for each in word]
        found = [{"text": a.text, "score": -c} for a, c in zip(word, costs, strict=True)]
        print(json.dumps({"candidates": found}))
