"""Best of n samples, by the default recipe of rankings and by scikit-learn's LogisticRegression, on generated prompts.

    python benchmarks/best_of_n.py [--samples 8] [--answers] [--draws 5] [--first 1] [--level 1] [--set learner=arow]

A sample has the score of a reward model, of a model that judges its steps, its log probability and its length; several
samples of a prompt may be right, or none. With --level every score of a prompt is shifted by an amount of the prompt's
own, as rewards of easy and hard prompts are; with --level 0 all prompts are alike, which is what a regression over
single samples assumes. With --answers a sample has one: the right one, or one of eight wrong ones, each half as
frequent as the one before. Accuracy is the share of prompts whose chosen sample is right. The table has the base (log
probability), the recipe's decision, the line of dense columns alone that every run reports, LogisticRegression on
standardised scores, the best that can be chosen, and the recipe less LogisticRegression.
"""

import argparse
import gzip
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from rerank.recipes.loading import load_recipe
from rerank.recipes.recipe import ListRecipe
from rerank.runs import experiment

RECIPE = Path(__file__).parents[1] / "recipes" / "llm.yaml"  # of which the reader's base score is another
SIZES = {"train": 2000, "dev": 500, "test": 5000}
WRONG = 0.5 ** np.arange(1, 9) / (1 - 0.5**8)  # how frequent wrong answers are
SCORES = ("reward", "process", "logprob", "length")
HEADINGS = (
    "draw",
    "base",
    "recipe",
    "dense columns alone",
    "LogisticRegression",
    "best",
    "recipe − LogisticRegression",
)


def main() -> None:
    """Print a line a draw, and their means."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--first", type=int, default=1, help="the seed of the first draw")
    parser.add_argument("--level", type=float, default=1.0)
    parser.add_argument("--samples", type=int, default=8)
    parser.add_argument("--answers", action="store_true")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    arguments = parser.parse_args()
    found = []
    print(f"| {' | '.join(HEADINGS)} |\n|{'---|' * len(HEADINGS)}")
    for seed in range(arguments.first, arguments.first + arguments.draws):
        rng = np.random.default_rng(seed)
        splits = {split: draw(rng, size, arguments.samples, arguments.level) for split, size in SIZES.items()}
        answers = rng if arguments.answers else None
        systems, decision = by_recipe(splits, arguments.set, answers)
        own = [100 * systems[name]["gain"] for name in ("base", decision, "logistic")]
        pointwise, best = 100 * by_scikit_learn(splits), 100 * float(splits["test"][1].max(axis=1).mean())
        found.append([*own, pointwise, best, own[1] - pointwise])
        print(row(str(seed), found[-1]), flush=True)
    print(row("mean", np.mean(found, axis=0)))


def row(name: str, numbers: Any) -> str:
    """A line of the table."""
    *scores, difference = numbers
    return f"| {name} | {' | '.join(f'{score:.2f}' for score in scores)} | {difference:+.2f} |"


def draw(rng: np.random.Generator, prompts: int, samples: int, level: float) -> tuple[np.ndarray, np.ndarray]:
    """SCORES (float64 [prompts, samples, 4]), and which samples are right (float64 [prompts, samples])."""
    shape = prompts, samples
    right = rng.random(shape) < 1 / (1 + np.exp(-rng.normal(0.5, 1.6, (prompts, 1))))
    own = level * rng.normal(size=(prompts, 1))
    reward = 1.1 * right + 0.8 * own + rng.normal(0, 0.8, shape)
    process = 1 / (1 + np.exp(-(0.4 + 1.2 * right + 0.4 * own + rng.normal(0, 0.9, shape))))
    length = np.round(np.exp(rng.normal(5.2, 0.35, shape) - 0.25 * right))
    logprob = -0.35 * length + 8 * right + 6 * own + rng.normal(0, 12, shape)
    return np.stack([reward, process, logprob, length], axis=-1), right.astype(float)


def by_recipe(
    splits: dict[str, tuple[np.ndarray, np.ndarray]], sets: list[str], answers: np.random.Generator | None
) -> tuple[dict[str, dict[str, float]], str]:
    """What a run of the recipe reports of the test split, by selection, and which of these its model decides by."""
    with tempfile.TemporaryDirectory() as place:
        for split, (scores, right) in splits.items():
            lines = (line_of(f"{split}-{i}", scores[i], right[i], answers) for i in range(len(right)))
            (Path(place) / f"{split}.jsonl.gz").write_bytes(gzip.compress("".join(lines).encode(), 1))
        usual = [f"data.root={place}", "data.reader={name: jsonl, base: logprob}", "significance.samples=100"]
        usual += ["examples=0"]
        recipe = load_recipe(RECIPE, [*usual, *sets])
        assert isinstance(recipe, ListRecipe)
        metrics = experiment.run(recipe, Path(place) / "run")
        return metrics["splits"]["test"], metrics["predictor"]


def line_of(name: str, scores: np.ndarray, right: np.ndarray, answers: np.random.Generator | None) -> str:
    """A list as a line of JSON, with drawn answers."""
    candidates = [
        {"text": f"sample {y + 1}", **dict(zip(SCORES, scores[y].tolist(), strict=True)), "gain": right[y]}
        for y in range(len(right))
    ]
    if answers is not None:
        for candidate, wrong in zip(candidates, answers.choice(WRONG.size, right.size, p=WRONG), strict=True):
            candidate["answer"] = "right" if candidate["gain"] else f"wrong {wrong}"
    return json.dumps({"id": name, "candidates": candidates}) + "\n"


def by_scikit_learn(splits: dict[str, tuple[np.ndarray, np.ndarray]]) -> float:
    """The accuracy of the most probable sample of each prompt."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    (x, right), (tried, truth) = splits["train"], splits["test"]
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(x.reshape(-1, len(SCORES)), right.ravel())
    chosen = model.predict_proba(tried.reshape(-1, len(SCORES)))[:, 1].reshape(truth.shape).argmax(axis=1)
    return float(truth[np.arange(len(truth)), chosen].mean())


if __name__ == "__main__":
    main()
