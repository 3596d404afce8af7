"""The words of the quickstart language and what they prefer: tables only.

A word belongs to a semantic class; a class says what may modify it. The tables are the truth a reranker can learn:
"the soup with the spoon" is nothing, "ate ... with the spoon" is something, and no part of speech shows it.
Words are listed from frequent to rare (`quickstart_grammar` draws rank r in proportion to 1 / (r + 2)).
"""


def words(text: str) -> tuple[str, ...]:
    """The words of a line of the tables."""
    return tuple(text.split())


NOUNS: dict[str, tuple[str, ...]] = {
    "person": words("man woman teacher doctor farmer student pilot nurse lawyer guard sailor painter"),
    "animal": words("dog horse cat wolf bird goat fox rabbit"),
    "optic": words("telescope camera lens mirror microscope"),
    "cutlery": words("spoon fork ladle chopstick"),
    "tool": words("hammer ladder drill saw rope wrench"),
    "looks": words("beard hat scar coat smile scarf"),
    "fitting": words("door roof window chimney balcony engine"),
    "food": words("soup cake salad sandwich pie pancake omelette"),
    "place": words("city village forest park island valley harbour desert"),
    "room": words("kitchen office garden cellar bedroom"),
    "building": words("house church school hotel factory museum barn"),
    "vehicle": words("car boat truck bus plane tractor"),
    "furniture": words("table chair shelf desk cupboard drawer"),
    "document": words("letter report book article contract poem"),
    "topic": words("election tax war budget law strike river climate"),
    "event": words("meeting wedding concert party trial festival"),
    "time": words("morning week evening summer weekend winter"),
    "material": words("steel leather oak glass plastic"),
}

IRREGULAR_PLURALS: dict[str, str] = {
    "man": "men",
    "woman": "women",
    "wolf": "wolves",
    "shelf": "shelves",
}

NAMES: tuple[str, ...] = words("Anna Peter Maria Thomas Clara Henry Ruth Oscar")

VERBS: dict[str, tuple[str, ...]] = {
    "perceive": words("saw watched noticed spotted photographed"),
    "consume": words("ate tasted devoured served"),
    "build": words("repaired built cleaned restored"),
    "transfer": words("sent gave sold brought mailed"),
    "store": words("put left hid stored"),
    "discuss": words("discussed explained described mentioned"),
    "social": words("met helped visited thanked followed"),
    "rest": words("slept waited worked arrived laughed"),
    "say": words("said thought claimed knew announced"),
}

GERUNDS: dict[str, tuple[str, ...]] = {
    "handle": words("using holding carrying borrowing"),
    "wear": words("wearing showing hiding"),
    "lack": words("lacking missing featuring"),
    "utter": words("reading quoting writing"),
}

# Verb class → classes of its subject and of its object ("rest" and "say" take no noun phrase as object).
SUBJECTS: dict[str, tuple[str, ...]] = {
    "perceive": ("person", "animal"),
    "consume": ("animal", "person"),
    "build": ("person",),
    "transfer": ("person",),
    "store": ("person",),
    "discuss": ("person",),
    "social": ("person",),
    "rest": ("person", "animal"),
    "say": ("person",),
}
OBJECTS: dict[str, tuple[str, ...]] = {
    "perceive": ("person", "animal", "building", "vehicle"),
    "consume": ("food",),
    "build": ("vehicle", "building", "furniture"),
    "transfer": ("document", "food", "vehicle"),
    "store": ("document", "tool", "cutlery", "optic"),
    "discuss": ("topic", "document", "event"),
    "social": ("person",),
}

# Class → the prepositional phrases it likes, from most to least: (preposition, classes of the preposition's object).
VERB_FRAMES: dict[str, tuple[tuple[str, tuple[str, ...]], ...]] = {
    "perceive": (("with", ("optic",)), ("through", ("optic", "fitting")), ("during", ("event", "time"))),
    "consume": (("with", ("cutlery",)), ("in", ("room",)), ("during", ("event", "time"))),
    "build": (("with", ("tool",)), ("for", ("person",)), ("in", ("time",))),
    "transfer": (("to", ("person",)), ("for", ("person", "event")), ("in", ("time",))),
    "store": (("on", ("furniture",)), ("in", ("room", "furniture")), ("under", ("furniture",))),
    "discuss": (("with", ("person",)), ("at", ("event",)), ("in", ("room", "document"))),
    "social": (("at", ("event",)), ("in", ("room", "time")), ("after", ("event",))),
    "rest": (("in", ("room", "building")), ("during", ("event", "time")), ("with", ("animal", "person"))),
    "say": (("in", ("document", "time")), ("at", ("event",)), ("during", ("event", "time"))),
}
NOUN_FRAMES: dict[str, tuple[tuple[str, tuple[str, ...]], ...]] = {
    "person": (("with", ("looks",)), ("from", ("place",)), ("in", ("looks",))),
    "animal": (("with", ("looks",)), ("of", ("person",)), ("from", ("place",))),
    "building": (("with", ("fitting",)), ("in", ("place",)), ("near", ("place",))),
    "vehicle": (("with", ("fitting",)), ("of", ("person",)), ("from", ("place",))),
    "furniture": (("with", ("fitting",)), ("from", ("place",)), ("of", ("person",))),
    "food": (("with", ("food",)), ("from", ("place",)), ("of", ("person",))),
    "document": (("about", ("topic",)), ("on", ("topic",)), ("from", ("person",))),
    "topic": (("in", ("place",)), ("on", ("topic",)), ("of", ("place",))),
    "event": (("about", ("topic",)), ("in", ("place",)), ("near", ("place",))),
    "optic": (("from", ("place",)), ("of", ("person",))),
    "cutlery": (("from", ("place",)), ("of", ("person",))),
    "tool": (("from", ("place",)), ("of", ("person",))),
    "room": (("of", ("building",)), ("with", ("fitting",))),
    "place": (("near", ("place",)), ("with", ("building",))),
}

# Verb class → gerund class and the gerund's objects, when the gerund says how the verb was done.
VERB_GERUNDS: dict[str, tuple[str, tuple[str, ...]]] = {
    "perceive": ("handle", ("optic",)),
    "consume": ("handle", ("cutlery",)),
    "build": ("handle", ("tool",)),
    "discuss": ("utter", ("document",)),
}
# Noun class → gerund class and the gerund's objects, when the gerund describes the noun.
NOUN_GERUNDS: dict[str, tuple[str, tuple[str, ...]]] = {
    "person": ("wear", ("looks",)),
    "animal": ("wear", ("looks",)),
    "document": ("utter", ("topic",)),
    "event": ("utter", ("topic",)),
    "building": ("lack", ("fitting",)),
    "vehicle": ("lack", ("fitting",)),
}

# Head noun's class → classes of the nouns that modify it in a compound.
COMPOUNDS: dict[str, tuple[str, ...]] = {
    "furniture": ("room", "material"),
    "fitting": ("building", "vehicle", "material"),
    "document": ("event", "person"),
    "event": ("topic", "building"),
    "vehicle": ("material", "event"),
    "building": ("place", "material"),
    "tool": ("material", "furniture"),
    "person": ("building", "vehicle"),
    "food": ("event", "time"),
    "room": ("building", "event"),
    "topic": ("place", "document"),
}

# Noun class → verb classes of a relative clause about it.
RELATIVE_VERBS: dict[str, tuple[str, ...]] = {
    "person": ("discuss", "transfer", "build"),
    "animal": ("consume", "rest"),
}

ADJECTIVES: dict[str, tuple[str, ...]] = {
    "person": words("old young famous tired clever"),
    "animal": words("hungry wild young grey"),
    "food": words("fresh sweet cold spicy"),
    "document": words("long secret short official"),
    "": words("new small old large beautiful strange expensive"),
}
DEGREES: tuple[str, ...] = words("very rather quite extremely")

# How an adverb may modify a verb class.
ADVERBS: dict[str, tuple[str, ...]] = {
    "perceive": words("clearly suddenly carefully"),
    "consume": words("greedily slowly hungrily"),
    "build": words("skilfully carefully slowly"),
    "transfer": words("secretly promptly"),
    "store": words("secretly neatly"),
    "discuss": words("briefly calmly thoroughly"),
    "social": words("warmly briefly"),
    "rest": words("peacefully quietly"),
    "say": words("openly repeatedly wrongly firmly"),
}
OPENING_ADVERBS: tuple[str, ...] = words("yesterday later finally fortunately")

DETERMINERS: tuple[str, ...] = words("the a this every that")
PLURAL_DETERMINERS: tuple[str, ...] = words("the some these many")
