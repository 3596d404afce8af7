"""N-best parses of a PCFG: parse_with_nltk.py TREEBANK SENTENCES N"""

import math
import sys
from pathlib import Path

import nltk

treebank, sentences = (Path(name).read_text(encoding="utf-8").splitlines() for name in sys.argv[1:3])
trees = [nltk.Tree.fromstring(line) for line in treebank]
rules = [rule for tree in trees for rule in tree.productions()]
parser = nltk.InsideChartParser(nltk.induce_pcfg(nltk.Nonterminal(trees[0].label()), rules))
known = {word for tree in trees for word in tree.leaves()}
for number, words in enumerate(line.split() for line in sentences):
    parses = list(parser.parse(words))[: int(sys.argv[3])] if known.issuperset(words) else []
    print(len(parses), number, sep="\t")
    for tree in parses:
        print(tree.logprob() * math.log(2), tree.pformat(margin=sys.maxsize), sep="\n")  # nltk's logarithm is binary
    print()
