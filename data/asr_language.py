"""The sentences of the speech example, and the words that sound alike.

Sentences are orders and statements of a household and travel assistant. A template says which words go together, so
that two or three neighbouring words mostly tell which of the words that sound alike is meant.
"""

from example_files import Draw


def split(words: str) -> tuple[str, ...]:
    """Entries of a class; an underscore joins the words of one entry."""
    return tuple(words.split())


CLASSES = {
    "number": split("two three four five six eight ten thirteen thirty fourteen forty fifteen fifty sixteen sixty"),
    "hour": split("one two three four five six seven eight nine ten eleven"),
    "half": split("in_the_morning in_the_evening tonight today tomorrow"),
    "day": split("on_monday on_sunday next_week this_week today tomorrow tonight"),
    "person": split("anna hanna peter maria john harris lena doctor_lee"),
    "place": split("boston austin paris lima cairo rome oslo dallas"),
    "room": split("kitchen office hall bedroom garage cellar"),
    "device": split("light radio heater fan alarm oven lamp"),
    "document": split("report letter paper mail ticket note"),
    "documents": split("reports letters papers mails tickets notes"),
    "thing": split("chairs plates cards boxes lamps doors tickets boats"),
    "food": split("meat chicken rice bread fish peas"),
    "vehicle": split("train bus boat plane car ship"),
    "building": split("station office harbour hotel bank school"),
    "topic": split("weather sea sun road fair price"),
    "colour": split("red new plain right weak"),
    "state": split("on off"),
}

TEMPLATES = (
    "please send the {document} to {person} {day}",
    "send {number} {documents} to the {building} by ten",
    "book a {vehicle} from {place} to {place} for {number}",
    "turn {state} the {device} in the {room}",
    "please turn {state} the {colour} {device}",
    "what is the weather in {place} {day}",
    "will it rain in {place} {day}",
    "set the alarm for {hour} {half}",
    "we need {number} {thing} by {hour}",
    "we need {number} plates of {food} for our party",
    "{person} will meet {person} at the {building} {day}",
    "the {vehicle} to {place} leaves in {number} minutes",
    "write {number} {documents} about the {topic}",
    "there are {number} {thing} in the {room}",
    "their {colour} {vehicle} is in {place}",
    "i know that {person} will be here at {hour}",
    "i do not know where the {colour} {document} is",
    "can you see the {topic} from their {building}",
    "buy {food} and {food} at the {building} {day}",
    "read the new {document} to {person} and {person}",
    "our {vehicle} leaves for {place} at {hour} {half}",
    "it is an hour by {vehicle} to {place}",
    "tell {person} that there is no {food} in the {room}",
    "{person} won two {documents} to the fair",
)

# What sounds alike: the first number is how far apart, 0 for the same sound.
ALIKE = (
    (0, "for four fore"), (0, "to two too"), (0, "eight ate"), (0, "one won"), (0, "there their"),
    (0, "weather whether"), (0, "right write"), (0, "meet meat"), (0, "mail male"), (0, "mails males"),
    (0, "hour our"), (0, "buy by bye"), (0, "no know"), (0, "new knew"), (0, "week weak"), (0, "plane plain"),
    (0, "see sea"), (0, "sun son"), (0, "here hear"), (0, "red read"), (0, "be bee"), (0, "road rode"),
    (0, "fair fare"), (0, "peas piece"), (0, "where wear"), (0, "need knead"), (0, "not knot"), (0, "i eye"),
    (0, "our are"), (0, "rain reign"), (0, "six sicks"), (0, "are or"),
    (1, "thirteen thirty"), (1, "fourteen forty"), (1, "fifteen fifty"), (1, "sixteen sixty"), (1, "boston austin"),
    (1, "anna hanna"), (1, "in and an"), (1, "a the"), (1, "is as his"), (1, "will well"), (1, "off of"),
    (1, "on an own"), (1, "at add"), (1, "report reports"), (1, "letter letters"), (1, "paper papers"),
    (1, "ticket tickets"), (1, "note notes"), (1, "mail mails"), (1, "card cards"), (1, "leaves lives"),
    (1, "bread red"), (1, "train rain"), (1, "bus boss"), (1, "car card"), (1, "boat both"), (1, "ship sheep"),
    (1, "today to_day"), (1, "tonight the_night"), (1, "alarm a_lamb"), (1, "about a_boat"), (1, "can cannot"),
    (1, "lamp lamb"), (1, "send sent"), (1, "price rice"), (1, "five nine"), (1, "set sat"), (1, "it its"),
    (2, "kitchen chicken"), (2, "office officer"), (2, "peter meter"), (2, "maria area"), (2, "john join"),
    (2, "monday sunday"), (2, "paris harris"), (2, "lima lena"), (2, "morning warning"), (2, "hall all"),
    (2, "radio ready"), (2, "heater header"), (2, "bank back"), (2, "seven eleven"), (2, "tell until"),
    (2, "please police"), (2, "need neat"), (2, "minutes minute"), (2, "cellar seller"), (2, "school cool"),
    (2, "book look"), (2, "turn torn"), (2, "from form"), (2, "plates place"), (2, "fan van"), (2, "oven even"),
)  # fmt: skip

INSERTED = ("a", "the", "and", "to", "uh")
"""Words that a noise may be heard as."""

SHORT = ("a", "the", "to", "in", "is", "and", "of", "at", "by", "it", "an")
"""Words that may be missed."""


def sentence(draw: Draw) -> list[str]:
    """The words of a sentence."""
    words: list[str] = []
    for part in draw.one(TEMPLATES).split():
        words += draw.one(CLASSES[part[1:-1]]).replace("_", " ").split() if part.startswith("{") else [part]
    return words


def confusions() -> dict[str, list[tuple[str, int]]]:
    """What each word may be taken for, with how far apart the two sound; the nearest pair counts."""
    found: dict[str, dict[str, int]] = {}
    for distance, group in ALIKE:
        for word in group.split():
            for other in group.split():
                if word != other:
                    known = found.setdefault(word, {})
                    known[other] = min(distance, known.get(other, distance))
    return {word: sorted(others.items()) for word, others in sorted(found.items())}
