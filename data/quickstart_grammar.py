"""The lexicalised grammar that writes the quickstart sentences, as trees with Penn Treebank labels.

The structure is drawn first, by probabilities that know no words; the words are drawn second, so that every attachment
in the tree suits the tables of `quickstart_lexicon`. Parts of speech therefore say little about the right reading, and
words say much. In a share `NOISE` of the choices the words suit the *wrong* reading instead: no model can learn those.

What is ambiguous, and what decides it:

=====================  =====================================================  ==================================
prepositional phrase   saw (a man) with a lens / saw (a man with a hat)       verb, noun, preposition, its object
participle             saw (a man) using a lens / saw (a man wearing a hat)   verb, noun, participle, its object
relative clause        (dog of a man) that slept / dog of (a man that sold)   noun and verb of the clause
adverb                 said (he slept) openly / said (he slept peacefully)    the two verbs
conjuncts              (man with a hat) and woman / with a (hat and scarf)    whose classes are alike
adjective's scope      old (men and women) / (new cars) and cats              whose classes are alike
shared head            (church and school) door / door and (car door)         whose classes are alike
noun compound          (village church) door / oak (church door)              which noun the first one modifies
=====================  =====================================================  ==================================
"""

import math
import random
from collections.abc import Sequence
from typing import TypeVar

import quickstart_lexicon as lex
from nltk import Tree

T = TypeVar("T")

NOISE = 0.07
"""Share of lexical choices that suit the wrong reading."""

SHORTEST, LONGEST = 5, 25
"""Tokens of a sentence, punctuation included."""

Frames = Sequence[tuple[str, tuple[str, ...]]]


def leaf(tag: str, word: str) -> Tree:
    """A preterminal."""
    return Tree(tag, [word])


class Writer:
    """Draws sentences; every choice comes from one `random.Random`, whose `random()` is the same on all platforms."""

    def __init__(self, seed: str) -> None:
        self.draw = random.Random(seed).random

    def weighted(self, options: Sequence[T], weights: Sequence[float]) -> T:
        """One of the options, in proportion to its weight."""
        left = self.draw() * math.fsum(weights)
        for option, weight in zip(options, weights, strict=True):
            left -= weight
            if left < 0:
                return option
        return options[-1]

    def ranked(self, options: Sequence[T]) -> T:
        """One of the options; rank r (from 0) in proportion to 1 / (r + 2)."""
        return self.weighted(options, [1 / (rank + 2) for rank in range(len(options))])

    def chance(self, probability: float) -> bool:
        """True in this share of the calls."""
        return self.draw() < probability

    # Sentences and clauses

    def sentence(self) -> Tree:
        """A whole tree `(S1 (S ... (. .)))` of SHORTEST to LONGEST tokens."""
        while True:
            kind = self.weighted(("plain", "adverb", "phrase", "joined"), (0.72, 0.1, 0.1, 0.08))
            if kind == "joined":
                join = leaf("CC", self.ranked(("and", "but")))
                children = [Tree("S", self.clause(1)), leaf(",", ","), join, Tree("S", self.clause(1))]
            else:
                children = [*self.opening(kind), *self.clause(3)]
            tree = Tree("S1", [Tree("S", [*children, leaf(".", ".")])])
            if SHORTEST <= len(tree.leaves()) <= LONGEST:
                return spelled(tree)

    def opening(self, kind: str) -> list[Tree]:
        """What stands before the subject, with its comma."""
        if kind == "adverb":
            return [Tree("ADVP", [leaf("RB", self.ranked(lex.OPENING_ADVERBS))]), leaf(",", ",")]
        if kind == "phrase":
            return [self.prepositional((("during", ("event", "time")), ("in", ("place",))), (), 0), leaf(",", ",")]
        return []

    def clause(self, depth: int) -> list[Tree]:
        """Subject and predicate; `depth` bounds how far phrases nest."""
        verb = self.weighted(list(lex.VERBS), (5, 4, 4, 4, 3, 4, 4, 3, 6 if depth > 1 else 0))
        subject, _ = self.noun_phrase(lex.SUBJECTS[verb], min(depth - 1, 1))
        return [subject, self.verb_phrase(verb, depth)]

    # Verb phrases

    def verb_phrase(self, verb: str, depth: int) -> Tree:
        """The predicate of a verb of this class, or two of them joined."""
        if depth > 1 and verb != "say" and self.chance(0.08):
            other = self.ranked([name for name in lex.OBJECTS if lex.SUBJECTS[name] == ("person",)])
            join = leaf("CC", "and")
            return Tree("VP", [self.verb_phrase(verb, 1), join, self.verb_phrase(other, depth - 1)])
        head = leaf("VBD", self.ranked(lex.VERBS[verb]))
        if verb == "say":
            return self.report(head, depth)
        if verb == "rest":
            kind = self.weighted(("bare", "phrase", "adverb"), (0.2, 0.5, 0.3))
            return Tree("VP", [head, *self.adjunct(verb, kind, "", depth)])
        thing, noun = self.noun_phrase(lex.OBJECTS[verb], depth, verb)
        kinds = ("bare", "phrase", "two", "adverb", "gerund")
        kind = self.weighted(kinds, (0.1, 0.46, 0.14, 0.14, 0.16 if verb in lex.VERB_GERUNDS else 0))
        return Tree("VP", [head, thing, *self.adjunct(verb, kind, noun, depth)])

    def adjunct(self, verb: str, kind: str, noun: str, depth: int) -> list[Tree]:
        """What modifies a verb of class `verb` after its object of class `noun` ("" without one)."""
        if kind == "phrase":
            return [self.prepositional(lex.VERB_FRAMES[verb], lex.NOUN_FRAMES.get(noun, ()), depth - 1)]
        if kind == "two":
            return self.adjunct(verb, "phrase", noun, 1) + self.adjunct(verb, "phrase", noun, depth)
        if kind == "adverb":
            return [self.adverb(verb)]
        if kind == "gerund":
            wrong = lex.NOUN_GERUNDS.get(noun)
            return [Tree("S", [self.gerund(lex.VERB_GERUNDS[verb], wrong)])]
        return []

    def report(self, head: Tree, depth: int) -> Tree:
        """A verb of saying with its clause, and perhaps a modifier that belongs to the saying."""
        inner = self.clause(depth - 1)
        kind = self.weighted(("bare", "adverb", "phrase"), (0.5, 0.28, 0.22))
        clause = Tree("SBAR", [leaf("IN", "that"), Tree("S", inner)])
        return Tree("VP", [head, clause, *self.adjunct("say", kind, "", 1)])

    def adverb(self, verb: str) -> Tree:
        """An adverb that suits the verb's class; with NOISE, one that suits another."""
        suits = self.ranked(list(lex.ADVERBS)) if self.chance(NOISE) else verb
        degree = [leaf("RB", self.ranked(lex.DEGREES))] if self.chance(0.2) else []
        return Tree("ADVP", [*degree, leaf("RB", self.ranked(lex.ADVERBS[suits]))])

    def gerund(self, right: tuple[str, tuple[str, ...]], wrong: tuple[str, tuple[str, ...]] | None) -> Tree:
        """A participle with its object; with NOISE, one that suits the rival."""
        kind, things = wrong if wrong and self.chance(NOISE) else right
        thing, _ = self.noun_phrase(things, 0)
        return Tree("VP", [leaf("VBG", self.ranked(lex.GERUNDS[kind])), thing])

    def prepositional(self, right: Frames, wrong: Frames, depth: int) -> Tree:
        """A prepositional phrase from the governor's frames; with NOISE, from the rival's."""
        preposition, things = self.ranked(wrong if wrong and self.chance(NOISE) else right)
        thing, _ = self.noun_phrase(things, depth)
        return Tree("PP", [leaf("TO" if preposition == "to" else "IN", preposition), thing])

    # Noun phrases

    def noun_phrase(self, classes: Sequence[str], depth: int, verb: str = "") -> tuple[Tree, str]:
        """A noun phrase and the class of its head; `verb` is the rival governor of what modifies it."""
        noun = self.ranked(classes)
        kinds = ["core"]
        weights = [0.36]
        if depth > 0:
            kinds += ["joined"]
            weights += [0.22]
            for kind, table, weight in (
                ("phrase", lex.NOUN_FRAMES, 0.38),
                ("gerund", lex.NOUN_GERUNDS, 0.09),
                ("relative", lex.RELATIVE_VERBS, 0.08),
            ):
                if noun in table:
                    kinds.append(kind)
                    weights.append(weight)
        kind = self.weighted(kinds, weights)
        if kind == "core":
            return self.core(noun), noun
        if kind == "joined":
            return self.joined(noun, depth), noun
        if kind == "phrase":
            rival = lex.VERB_FRAMES[verb] if verb else ()
            modifier = self.prepositional(lex.NOUN_FRAMES[noun], rival, depth - 1)
        elif kind == "gerund":
            modifier = self.gerund(lex.NOUN_GERUNDS[noun], lex.VERB_GERUNDS.get(verb))
        else:
            return self.related(noun, depth), noun
        return Tree("NP", [self.core(noun), modifier]), noun

    def joined(self, noun: str, depth: int) -> Tree:
        """Two noun phrases of one class, or (with NOISE) of any."""
        join = leaf("CC", self.ranked(("and", "or")))
        kind = self.weighted(("plain", "plural", "compound"), (0.5, 0.3, 0.2 if noun in lex.COMPOUNDS else 0))
        if kind == "plain":
            other = self.ranked(list(lex.NOUNS)) if self.chance(NOISE) else noun
            first, _ = self.noun_phrase((noun,), depth - 1)
            second, _ = self.noun_phrase((other,), depth - 1)
        elif kind == "plural":  # "(new cars) and cats", not "new (cars and cats)"
            other = noun if self.chance(NOISE) else self.ranked([name for name in lex.NOUNS if name != noun])
            first = Tree("NP", [*self.determiner("NNS"), self.adjective(noun), self.noun("NNS", noun)])
            second = Tree("NP", [self.noun("NNS", other)])
        else:  # "(the table) and (office chair)", not "the (table and office) chair"
            inner = self.ranked(lex.COMPOUNDS[noun])
            first = Tree("NP", [*self.determiner("NN"), self.noun("NN", inner if self.chance(NOISE) else noun)])
            second = Tree("NP", [self.noun("NN", inner), self.noun("NN", noun)])
        return Tree("NP", [first, join, second])

    def related(self, noun: str, depth: int) -> Tree:
        """A noun phrase with a relative clause about its head, which may come after a prepositional phrase."""
        inner = self.core(noun)
        owner = "person" if noun == "animal" else "animal"
        if self.chance(0.5):
            inner = Tree("NP", [inner, Tree("PP", [leaf("IN", "of"), self.core(owner)])])
        about = owner if self.chance(NOISE) else noun
        verb = self.ranked(lex.RELATIVE_VERBS[about])
        pronoun = leaf("WP", "who") if about == "person" and self.chance(0.5) else leaf("WDT", "that")
        clause = Tree("S", [self.verb_phrase(verb, depth - 1)])
        return Tree("NP", [inner, Tree("SBAR", [Tree("WHNP", [pronoun]), clause])])

    def core(self, noun: str) -> Tree:
        """A noun phrase without anything after its head."""
        kinds = ("plain", "plural", "name", "pair", "compound", "long", "shared")
        modified = noun in lex.COMPOUNDS
        named = 0.1 if noun == "person" else 0
        kind = self.weighted(kinds, (0.42, 0.24, named, 0.08, *((0.06, 0.2, 0.06) if modified else (0, 0, 0))))
        if kind == "name":
            return Tree("NP", [leaf("NNP", self.ranked(lex.NAMES))])
        if kind == "plural":
            return Tree("NP", [*self.determiner("NNS"), *self.attribute(noun), self.noun("NNS", noun)])
        if kind == "pair":
            return Tree("NP", [*self.determiner("NNS"), *self.pair(noun)])
        determiner = self.determiner("NN")
        if kind == "plain":
            return Tree("NP", [*determiner, *self.attribute(noun), self.noun("NN", noun)])
        inner = self.ranked(lex.COMPOUNDS[noun])
        if kind == "compound":
            return Tree("NP", [*determiner, *self.attribute(noun), self.noun("NN", inner), self.noun("NN", noun)])
        return Tree("NP", [*determiner, *(self.long if kind == "long" else self.shared)(noun, inner)])

    def pair(self, noun: str) -> list[Tree]:
        """Two plurals of one class (with NOISE, of two) with an adjective that belongs to both."""
        other = self.ranked(list(lex.NOUNS)) if self.chance(NOISE) else noun
        first = self.noun("NNS", noun)
        second = self.noun("NNS", other, first)
        return [self.adjective(noun), first, leaf("CC", self.ranked(("and", "or"))), second]

    def long(self, noun: str, inner: str) -> list[Tree]:
        """Three nouns: the first modifies the second (left) or the third (right)."""
        left = inner in lex.COMPOUNDS and self.chance(0.7)
        modified = inner if left else noun
        if inner in lex.COMPOUNDS and self.chance(NOISE):
            modified = noun if left else inner
        others = [name for name in lex.COMPOUNDS[modified] if name != inner]
        first = self.noun("NN", self.ranked(others or lex.COMPOUNDS[modified]))
        second, third = self.noun("NN", inner), self.noun("NN", noun)
        return [Tree("NML", [first, second]), third] if left else [first, Tree("NML", [second, third])]

    def shared(self, noun: str, inner: str) -> list[Tree]:
        """Two nouns of one class (with NOISE, the first of the head's) that both modify a third."""
        first = self.noun("NN", noun if self.chance(NOISE) else inner)
        join = leaf("CC", self.ranked(("and", "or")))
        return [Tree("NML", [first, join, self.noun("NN", inner, first)]), self.noun("NN", noun)]

    def determiner(self, tag: str) -> list[Tree]:
        """A determiner; a plural may go without."""
        if tag == "NN":
            return [leaf("DT", self.ranked(lex.DETERMINERS))]
        return [leaf("DT", self.ranked(lex.PLURAL_DETERMINERS))] if self.chance(0.6) else []

    def attribute(self, noun: str) -> list[Tree]:
        """Nothing, an adjective, or an adjective with its degree."""
        kind = self.weighted(("none", "plain", "degree"), (0.8, 0.15, 0.05))
        if kind == "none":
            return []
        adjective = self.adjective(noun)
        return [adjective] if kind == "plain" else [Tree("ADJP", [leaf("RB", self.ranked(lex.DEGREES)), adjective])]

    def adjective(self, noun: str) -> Tree:
        """An adjective for this class of noun, or one for any."""
        return leaf("JJ", self.ranked(lex.ADJECTIVES[noun if noun in lex.ADJECTIVES and self.chance(0.6) else ""]))

    def noun(self, tag: str, noun: str, other: Tree | None = None) -> Tree:
        """A noun of this class, singular (NN) or plural (NNS), not the same as `other`."""
        while True:
            word = self.ranked(lex.NOUNS[noun])
            found = leaf(tag, word if tag == "NN" else plural(word))
            if found != other:
                return found


def plural(word: str) -> str:
    """The plural of a noun of the lexicon."""
    if word in lex.IRREGULAR_PLURALS:
        return lex.IRREGULAR_PLURALS[word]
    if word.endswith("y") and word[-2] not in "aeiou":
        return word[:-1] + "ies"
    return word + ("es" if word.endswith(("s", "x", "ch", "sh")) else "s")


def spelled(tree: Tree) -> Tree:
    """The tree with "an" before vowels and a capital at the start."""
    words = tree.leaves()
    for place, word in enumerate(words):
        if word == "a" and words[place + 1][0] in "aeiou":
            words[place] = "an"
    words[0] = words[0][0].upper() + words[0][1:]
    for place, word in zip(tree.treepositions("leaves"), words, strict=True):
        tree[place] = word
    return tree
