#!/usr/bin/env python
"""Make the example lists of sums: samples of a small language model, with the scores of a small verifier.

    pip install torch
    python data/make_sums.py [--output DIR] [--seed N]

A problem is a number and operations, worked off from left to right. A small transformer, the language model, learns to
write the steps; a second one, the verifier, learns the same from other problems. Both begin from nothing and train on
one core. The lists are new problems, each with samples of the language model, and the log probabilities that both give
to their steps. The same seed gives the same text with the same version of torch on the same kind of processor.
"""

import re
import time
from collections.abc import Sequence
from pathlib import Path

import torch
from example_files import Draw, List, run
from torch import Tensor, nn
from torch.nn import functional

OUTPUT = Path(__file__).parent / "sums"
SIZES = {"train": 400, "dev": 100, "test": 400}  # problems of each split
SAMPLES = 12  # of a problem
OPERATIONS = (2, 5)  # of a problem in training, from and to
ASKED = 4  # operations of a problem in the lists
BATCH = 64  # problems of a batch of training, all with equally many operations
BATCHES = {"language model": 1000, "verifier": 850}
SYMBOLS = "0123456789+-*="
NUMBER_OF = {symbol: number for number, symbol in enumerate(SYMBOLS)}
START, STEP = 2, 6  # symbols of a first number; of a step such as +38=85, of which three are in the question
WORKED = START + 3 * OPERATIONS[1]  # the place of the first step, whatever the length of the question

Problem = tuple[int, list[tuple[str, int]]]


def problem(draw: Draw, length: int) -> Problem:
    """A first number and operations, such that every result has at most two digits."""
    first = value = draw.whole(11, 99)
    operations: list[tuple[str, int]] = []
    while len(operations) < length:
        operation = draw.one("+-*")
        number = draw.whole(2, 9) if operation == "*" else draw.whole(11, 99)
        result = applied(value, operation, number)
        if 0 < result < 100:
            operations.append((operation, number))
            value = result
    return first, operations


def applied(value: int, operation: str, number: int) -> int:
    """The result of one step."""
    return value * number if operation == "*" else value + number if operation == "+" else value - number


def question(asked: Problem) -> str:
    """The problem in symbols, two digits a number."""
    return f"{asked[0]:02}" + "".join(f"{operation}{number:02}" for operation, number in asked[1])


def solution(asked: Problem) -> str:
    """The steps in symbols, two digits a result."""
    value, steps = asked[0], ""
    for operation, number in asked[1]:
        value = applied(value, operation, number)
        steps += f"{operation}{number:02}={value:02}"
    return steps


def written(symbols: str) -> str:
    """As people write it: without the noughts in front of a number."""
    return re.sub(r"(?<!\d)0+(?=\d)", "", symbols)


def numbered(texts: Sequence[str]) -> Tensor:
    """Texts of the same length as rows of numbers."""
    return torch.tensor([[NUMBER_OF[symbol] for symbol in text] for text in texts])


class Block(nn.Module):
    """Causal attention and a layer of twice two matrices, each added to what comes in."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before, self.after = nn.LayerNorm(width), nn.LayerNorm(width)
        self.mixed, self.joined = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, rows: Tensor, cache: list[Tensor]) -> Tensor:
        """The rows after the block; `cache` has the keys and values of earlier places, and gets these ones."""
        count, length, width = rows.shape
        parts = self.mixed(self.before(rows)).view(count, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        asked, keys, values = parts[0], parts[1], parts[2]
        if cache:
            keys, values = torch.cat((cache[0], keys), 2), torch.cat((cache[1], values), 2)
        cache[:] = [keys, values]
        seen = functional.scaled_dot_product_attention(asked, keys, values, is_causal=length > 1)
        rows = rows + self.joined(seen.transpose(1, 2).reshape(count, length, width))
        return rows + self.narrow(functional.gelu(self.wide(self.after(rows))))


class Transformer(nn.Module):
    """A small transformer over symbols: at every place the logits of the next one.

    Steps stand at the same places, however long the question.
    """

    def __init__(self, width: int, layers: int, heads: int) -> None:
        super().__init__()
        self.symbols = nn.Embedding(len(SYMBOLS), width)
        self.places = nn.Embedding(WORKED + STEP * OPERATIONS[1], width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.last, self.outputs = nn.LayerNorm(width), nn.Linear(width, len(SYMBOLS))

    def forward(self, rows: Tensor, places: Tensor, caches: list[list[Tensor]] | None = None) -> Tensor:
        """Outputs at every place of the rows."""
        found = self.symbols(rows) + self.places(places)
        for block, cache in zip(self.blocks, caches or [[] for _ in self.blocks], strict=True):
            found = block(found, cache)
        return self.outputs(self.last(found))


def places_of(operations: int) -> Tensor:
    """The places of a question and of its steps."""
    return torch.cat((torch.arange(START + 3 * operations), WORKED + torch.arange(STEP * operations)))


def steps_of(model: Transformer, rows: Tensor, operations: int) -> Tensor:
    """Logits of the symbols of all steps; rows: questions with steps of this many operations."""
    return model(rows[:, :-1], places_of(operations)[:-1])[:, START + 3 * operations - 1 :]


def writer(draw: Draw, batches: int) -> Transformer:
    """A model that has learned to write steps."""
    model = Transformer(128, 2, 4)
    optimiser = torch.optim.AdamW(model.parameters(), weight_decay=0.01)
    began, losses = time.monotonic(), 0.0
    for batch in range(batches):
        for group in optimiser.param_groups:
            group["lr"] = 2e-3 * min(1.0, (batch + 1) / 100) * max(0.02, 1 - batch / batches)
        length = draw.whole(*OPERATIONS)
        rows = numbered([question(each) + solution(each) for each in (problem(draw, length) for _ in range(BATCH))])
        outputs = steps_of(model, rows, length)
        loss = functional.cross_entropy(outputs.transpose(1, 2), rows[:, START + 3 * length :])
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        losses += loss.item()
        if batch % 100 == 99:
            print(f"batch {batch + 1}, loss {losses / 100:.4f}, {time.monotonic() - began:.0f} s", flush=True)
            losses = 0.0
    return model


@torch.no_grad()
def samples(model: Transformer, asked: Sequence[Problem], random: torch.Generator) -> list[str]:
    """Solutions of problems, which have equally many operations: the samples of the first, then of the second, ..."""
    places, texts = places_of(ASKED), list[str]()
    for begin in range(0, len(asked), BATCH):
        seen = numbered([question(each) for each in asked[begin : begin + BATCH]]).repeat_interleave(SAMPLES, 0)
        caches, chosen, first = [list[Tensor]() for _ in model.blocks], list[Tensor](), 0
        for place in range(seen.shape[1], len(places)):
            likely = model(seen, places[first:place], caches)[:, -1].softmax(-1)
            seen, first = torch.multinomial(likely, 1, generator=random), place
            chosen.append(seen)
        texts += ["".join(SYMBOLS[number] for number in row) for row in torch.cat(chosen, 1).tolist()]
    return texts


@torch.no_grad()
def scores(model: Transformer, rows: Tensor) -> Tensor:
    """The log probability of every step, of rows of a question and steps."""
    likely = torch.cat([steps_of(model, part, ASKED).log_softmax(-1) for part in rows.split(512)])
    return likely.gather(2, rows[:, START + 3 * ASKED :, None]).view(-1, ASKED, STEP).sum(2)


def lists_of(
    split: str, asked: Sequence[Problem], models: Sequence[Transformer], random: torch.Generator
) -> list[List]:
    """The lists of a split: every problem with its samples, which the first model writes."""
    texts = samples(models[0], asked, random)
    rows = numbered([question(asked[place // SAMPLES]) + text for place, text in enumerate(texts)])
    own, others = (scores(model, rows).tolist() for model in models)
    lists: list[List] = []
    for number, each in enumerate(asked):
        right, candidates = solution(each)[-2:].lstrip("0"), []
        for place in range(SAMPLES * number, SAMPLES * (number + 1)):
            answer = written(texts[place].rsplit("=", 1)[-1])
            candidates.append({
                "text": written(question(each)[:START] + texts[place]),
                "answer": answer,
                "logprob": round(sum(own[place]), 3),
                "logprob_min": round(min(own[place]), 3),
                "verifier": round(sum(others[place]), 3),
                "verifier_min": round(min(others[place]), 3),
                "gain": int(answer == right),
            })  # fmt: skip
        source = f"{written(question(each))} from left to right"
        lists.append({"id": f"{split}-{number + 1}", "source": source, "reference": right, "candidates": candidates})
    return lists


def make(seed: int) -> dict[str, list[List]]:
    """The lists of all splits."""
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    models = [writer(Draw(f"{seed}/{name}"), batches) for name, batches in BATCHES.items()]
    random = torch.Generator().manual_seed(seed)
    splits: dict[str, list[List]] = {}
    for split, size in SIZES.items():
        asked = [problem(Draw(f"{seed}/{split}/{place}"), ASKED) for place in range(size)]
        splits[split] = lists_of(split, asked, models, random)
    return splits


if __name__ == "__main__":
    run("Make the example lists of sums.", OUTPUT, make, None)
