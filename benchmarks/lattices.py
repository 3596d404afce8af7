"""Word lattices: from lattices to lists, to weights, and back; and how long a large one takes.

    python benchmarks/lattices.py [--utterances 300]

The lattices are made here, as Kaldi writes them: every word of an utterance has two rivals, with scores of graph and
acoustics that are worse by 0.6 and 3 on average; some words can be skipped. Prints word error rates with all scores
alike and with weights that other lattices taught (the command's log), and the seconds of one long lattice.
"""

import argparse
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def write(path: Path, count: int, longest: int, seed: int) -> None:
    """Lattices of utterances of up to so many words, in ``path``, and the words, in ``path``.ref."""
    draw, words, right = random.Random(seed), [f"w{k}" for k in range(500)], list[str]()
    with path.open("w") as out:
        for u in range(count):
            said = [draw.choice(words) for _ in range(draw.randint(longest // 2, longest))]
            out.write(f"utt{u}\n")
            for t, word in enumerate(said):
                for other in (word, *draw.sample(words, 2)):
                    graph, acoustic = (
                        draw.gauss(1 + 0.6 * (other != word), 0.5),
                        draw.gauss(10 + 3 * (other != word), 2),
                    )
                    out.write(f"{t} {t + 1} {other} {other} {graph:.4f},{acoustic:.4f},\n")
                if draw.random() < 0.2:
                    out.write(f"{t} {t + 1} <eps> <eps> {draw.gauss(2.5, 0.5):.4f},{draw.gauss(12, 2):.4f},\n")
            out.write(f"{len(said)} 0,0,\n\n")
            right.append(" ".join(said) + "\n")
    Path(f"{path}.ref").write_text("".join(right))


def rerank(*arguments: object) -> str:
    """What a command logs."""
    command = [sys.executable, "-m", "rerank", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stderr


def main() -> None:
    """See above."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--utterances", type=int, default=300)
    count = parser.parse_args().utterances
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        for seed, (name, utterances, longest) in enumerate(
            (("train", count, 12), ("test", count, 12), ("long", 1, 34_000))
        ):
            write(place / name, utterances, longest, seed)
        lattices = "--space", "lattice", "--output"
        train = rerank("decode", place / "train", *lattices, place / "lists.jsonl", "-n", 50, "--references",
                       place / "train.ref")  # fmt: skip
        rerank("weigh", place / "lists.jsonl", "--metric", "wer", "--save", place / "model")
        test = "decode", place / "test", *lattices, "/dev/null", "--references", place / "test.ref"
        logs = ("train", train), ("test", rerank(*test)), ("test, weighed", rerank(*test, "--model", place / "model"))
        for name, log in logs:
            print(name, next(line.partition("INFO ")[2] for line in log.splitlines() if "WER" in line))
        arcs, start = sum(1 for _ in (place / "long").open()), time.perf_counter()
        rerank("decode", place / "long", *lattices, "/dev/null")
        print(f"{arcs:,} arcs: {time.perf_counter() - start:.1f} s with starting")


if __name__ == "__main__":
    main()
