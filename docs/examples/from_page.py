import json
import sys
from xml.etree import ElementTree

for line in ElementTree.parse(sys.stdin).iterfind(".//{*}TextLine"):
    found = []
    for each in line.findall("{*}TextEquiv"):
        text, conf = each.findtext("{*}Unicode"), float(each.get("conf"))
        found.append({"text": text, "score": conf})
    print(json.dumps({"id": line.get("id"), "candidates": found}))
