"""The questions of the language-model example, their right answers, and the grader.

All texts are tokenised: words and punctuation marks stand between blanks.
"""

from collections.abc import Callable
from typing import NamedTuple

from example_files import Draw


def split(words: str) -> tuple[str, ...]:
    """The words one by one."""
    return tuple(words.split())


NAMES = split("anna ben carla david emma felix grace henry")
GOODS = split("apples pens books stamps eggs tickets cups keys")
WORDS = split("lemon river stone cloud tiger bread window garden silver music candle ocean")
MONTHS = split("january february march april may june july august september october november december")
COLOURS = split("red green blue white black yellow")

REFUSALS = (
    "i am sorry , but i cannot help with that .",
    "as a language model i cannot answer this question .",
    "i am not able to do this .",
)


class Task(NamedTuple):
    """A question, the words that a right answer has in a row, and answers nearby that are wrong."""

    prompt: str
    answer: str
    wrong: tuple[str, ...]
    unit: str  # the word that must follow, or ""


def added(draw: Draw) -> Task:
    a, b = draw.whole(12, 79), draw.whole(12, 79)
    return Task(f"what is {a} plus {b} ?", str(a + b), numbers_near(a + b, draw), "")


def distance(draw: Draw) -> Task:
    speed, hours = 10 * draw.whole(3, 12), draw.whole(2, 6)
    who = draw.one(("train", "car", "bus"))
    prompt = f"a {who} goes {speed} km an hour . how far does it go in {hours} hours ?"
    return Task(prompt, str(speed * hours), numbers_near(speed * hours, draw, 10), "km")


def price(draw: Draw) -> Task:
    count, each = draw.whole(3, 9), draw.whole(2, 9)
    thing = draw.one(GOODS)
    prompt = f"{draw.one(NAMES)} buys {count} {thing} at {each} euros each . what does it cost ?"
    return Task(prompt, str(count * each), numbers_near(count * each, draw), "euros")


def left(draw: Draw) -> Task:
    had, gone = draw.whole(20, 60), draw.whole(3, 19)
    name, thing = draw.one(NAMES), draw.one(GOODS)
    prompt = f"{name} has {had} {thing} and gives away {gone} . how many are left ?"
    return Task(prompt, str(had - gone), numbers_near(had - gone, draw), thing)


def sorted_numbers(draw: Draw) -> Task:
    numbers = draw.shuffled(range(2, 60))[: draw.whole(4, 6)]
    right = sorted(numbers)
    lists = [right[::-1], right[1:], right[:-1], [*right[1:], right[0]], [right[1], right[0], *right[2:]]]
    return Task(f"sort these numbers : {joined(numbers)} .", joined(right), tuple(map(joined, lists)), "")


def sorted_words(draw: Draw) -> Task:
    words = draw.shuffled(WORDS)[:4]
    right = sorted(words)
    lists = [words if words != right else right[::-1], right[:-1], right[1:], [right[1], right[0], *right[2:]]]
    shown = [" , ".join(some) for some in lists]
    return Task(f"put these words in order : {' , '.join(words)} .", " , ".join(right), tuple(shown), "")


def written_date(draw: Draw) -> Task:
    day, month, year = draw.whole(1, 28), draw.whole(1, 12), draw.whole(1990, 2030)
    right = f"{year}-{month:02}-{day:02}"
    wrong = (
        f"{day}.{month}.{year}",
        f"{month}/{day}/{year}",
        f"{MONTHS[month - 1]} {day}",
        f"{year}-{day:02}-{month:02}",
    )
    return Task(f"write {day} {MONTHS[month - 1]} {year} as year-month-day .", right, wrong, "")


def longest(draw: Draw) -> Task:
    words = sorted(draw.shuffled(WORDS)[:3], key=len)
    while len(words[-1]) == len(words[-2]):
        words = sorted(draw.shuffled(WORDS)[:3], key=len)
    prompt = f"which word is the longest : {' , '.join(draw.shuffled(words))} ?"
    return Task(prompt, words[-1], (words[0], words[1], "letters", draw.one(COLOURS)), "")


TASKS: tuple[Callable[[Draw], Task], ...] = (
    added, distance, price, left, sorted_numbers, sorted_words, written_date, longest,
)  # fmt: skip


def numbers_near(right: int, draw: Draw, step: int = 1) -> tuple[str, ...]:
    """Wrong results: off by little, off by ten, digits left out."""
    found = [right + step, right - step, right + 10, abs(right - 10), right + draw.whole(2, 9) * step, right * 2]
    return tuple(str(number) for number in found if number != right)


def joined(numbers: list[int]) -> str:
    """The numbers, between commas."""
    return " , ".join(map(str, numbers))


def grade(task: Task, text: str) -> float:
    """How good an answer is, from 0 to 1.

    0 without an answer (a refusal, a text that breaks off); .6 for the right answer, none for another; .2 for the unit
    where one is due, else for being brief; .2 for a text that neither repeats itself nor hedges.
    """
    words = text.split()
    if text in REFUSALS or not words or words[-1] != ".":
        return 0.0
    shown = f" {text} "
    gain = 0.6 if f" {task.answer} " in shown else 0.0
    if task.unit:
        gain += 0.2 if f" {task.unit} " in shown else 0.0
    else:
        gain += 0.2 if len(words) <= len(task.answer.split()) + 8 else 0.0
    parts = [part.rstrip(" .") for part in text.split(" . ")]
    hedged = any(f" {word} " in shown for word in ("maybe", "think", "perhaps", "guess"))
    return round(gain + (0.0 if hedged or len(set(parts)) < len(parts) else 0.2), 1)
