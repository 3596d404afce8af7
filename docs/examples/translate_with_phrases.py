"""Monotone translations by a phrase table: translate_with_phrases.py TABLE SOURCES N"""

import math
import sys
from collections import defaultdict
from heapq import nlargest
from pathlib import Path

table, sources = (Path(name).read_text(encoding="utf-8").splitlines() for name in sys.argv[1:3])
phrases = defaultdict(list)
for source, target, scores, *_ in (line.split("|||") for line in table):
    phrases[tuple(source.split())].append((target.split(), [math.log(float(score)) for score in scores.split()]))
for number, words in enumerate(line.split() for line in sources):
    beams = [[([], [], [])]]  # of the first words: texts, scores of their phrases, segmentations
    for end in range(1, len(words) + 1):
        found = [
            (text + phrase, [*scores, more], [*spans, f"{start}-{end - 1}={len(text)}-{len(text) + len(phrase) - 1}"])
            for start in range(end)
            for phrase, more in phrases.get(tuple(words[start:end]), [])
            for text, scores, spans in beams[start]
        ]
        beams.append(nlargest(int(sys.argv[3]), found, key=lambda one: sum(map(sum, one[1]))))
    for text, scores, spans in beams[-1]:
        sums = [sum(column) for column in zip(*scores, strict=True)]
        print(number, " ".join(text), "TM0= " + " ".join(map(str, sums)), sum(sums), " ".join(spans), sep=" ||| ")
    if not beams[-1]:
        print(number, "|||")
