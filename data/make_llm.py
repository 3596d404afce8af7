"""Make the example of best-of-n sampling: eight invented answers to each of many questions, in JSON lines.

    python data/make_llm.py [--output DIR] [--seed N]

`llm_tasks` draws small questions (sums, prices, lists to be sorted, dates to be written) whose answers it knows. The
"language model" of this script answers right or wrong, in one of several wordings, and with planted faults: it refuses,
breaks off, leaves out the unit, repeats itself, hedges. Wrong answers hedge more often, and right ones agree with each
other. Its log probability falls with the length and knows little of the faults, so the most probable answer is often a
refusal or a broken-off sentence. A reward model and a model that judges steps score every answer, and
know its grade in part.
"""

from pathlib import Path
from typing import Any

from example_files import Draw, List, run
from llm_tasks import REFUSALS, TASKS, Task, grade

SIZES = {"train": 600, "dev": 150, "test": 250}
"""Questions of each split."""

ANSWERS = 8

OPENINGS = ("", "the answer is", "it is", "the result is", "sure , here it is :", "that makes")
HEDGES = ("i think it is", "maybe it is", "perhaps the answer is", "my guess is")


def answer(task: Task, skill: float, draw: Draw) -> str:
    """One answer to a question; ``skill`` is the chance that it is right."""
    kind = draw.weighted(("refuses", "breaks off", "answers"), (0.08, 0.07, 0.85))
    if kind == "refuses":
        return draw.one(REFUSALS)
    right = draw.chance(skill)
    result = task.answer if right else draw.one(task.wrong)
    hedged = draw.chance(0.06 if right else 0.35)
    words = [draw.one(HEDGES if hedged else OPENINGS), result]
    if kind == "breaks off":
        return " ".join(" ".join(words).split()[: draw.whole(1, 3)])
    if task.unit and not draw.chance(0.25 if right else 0.45):
        words.append(task.unit)
    text = " ".join([*words, "."]).strip()
    if draw.chance(0.12):
        text = " ".join([text] * draw.whole(2, 3))
    elif draw.chance(0.1):
        text += " " + draw.one(("i hope this helps .", "let me know if you need more .", "is there anything else ."))
    return text


def make_splits(seed: int, sizes: dict[str, int]) -> dict[str, list[List]]:
    """The lists of every split. No question comes twice."""
    seen: set[str] = set()
    splits: dict[str, list[List]] = {}
    for split, size in sizes.items():
        splits[split] = []
        for number in range(1, size + 1):
            draw = Draw(f"{seed}/{split}/{number}")
            task = draw.one(TASKS)(draw)
            while task.prompt in seen:
                task = draw.one(TASKS)(draw)
            seen.add(task.prompt)
            unit = f" {task.unit}" if task.unit else ""
            item = {"id": f"{split}-{number}", "source": task.prompt, "reference": f"{task.answer}{unit} ."}
            found = answers(task, draw)
            rate(found, Draw(f"{seed}/{split}/{number}/rated"))
            splits[split].append({**item, "candidates": found})
    return splits


def answers(task: Task, draw: Draw) -> list[dict[str, Any]]:
    """The answers to a question, the most probable first."""
    skill = draw.one((0.25, 0.5, 0.75))
    found = []
    for _ in range(ANSWERS):
        text = answer(task, skill, draw)
        logprob = round(-0.45 * len(text.split()) - draw.about(2.0, 1.0), 2)
        found.append({"text": text, "logprob": logprob, "gain": grade(task, text)})
    return sorted(found, key=lambda one: -float(one["logprob"]))


def rate(found: list[dict[str, Any]], draw: Draw) -> None:
    """Give every answer the scores of a reward model, on a scale of the question's own, and of a model of its steps.

    Both know the grade in part; the gain stays the last.
    """
    level = draw.about(0.0, 2.0)
    for answer in found:
        gain = answer.pop("gain")
        answer["reward"] = round(level + 2.0 * gain + draw.about(0.0, 1.0), 2)
        answer["process"] = round(min(1.0, max(0.0, 0.4 + 0.3 * gain + draw.about(0.0, 0.2))), 2)
        answer["gain"] = gain


def main(arguments: list[str] | None = None) -> None:
    """The command line."""
    description = "Make the example of best-of-n sampling: invented answers to small questions."
    run(description, Path(__file__).resolve().parent / "llm", lambda seed: make_splits(seed, SIZES), arguments)


if __name__ == "__main__":
    main()
