"""What a neural language model is worth on the made-up transcripts: a GPT-2 of 0.1 million weights, trained here.

    pip install torch transformers
    python benchmarks/neural_score.py [--sentences 20000] [--seed 1]

The model reads sentences drawn from the language of `data/asr`, none of them of its lists; docs/examples has the script
that scores the lists with it, and `joined` makes a column of that. Prints the word error rates of the recipe `asr` with
and without the column.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
import yaml
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast, set_seed

import rerank

HERE = Path(__file__).parents[1]
sys.path.insert(0, str(HERE / "data"))
from asr_language import sentence  # noqa: E402
from example_files import Draw  # noqa: E402

MARKS = ["<pad>", "<s>", "</s>", "<unk>"]
SPLITS = ("train", "dev", "test")


def main() -> None:
    """Train, score, run both recipes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sentences", type=int, default=20000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        train(Path(folder, "model"), given.sentences, given.seed)
        for split in SPLITS:
            with Path(folder, f"{split}.scores").open("w") as scores:
                script = HERE / "docs/examples/score_with_transformers.py"
                lists = HERE / f"data/asr/{split}.jsonl.gz"
                subprocess.run([sys.executable, script, f"{folder}/model", lists, "jsonl"], stdout=scores, check=True)
        lists = f"{{root}}/{{split}}.jsonl.gz,{folder}/{{split}}.scores"
        joined = {"nbest": lists, "reader": {"name": "joined", "of": "jsonl"}}
        print(json.dumps({"without": figures(folder, {}), "with": figures(folder, joined)}, indent=2))


def train(path: Path, sentences: int, seed: int) -> None:
    """A language model of the sentences that the lists do not have."""
    lists = (rerank.read(HERE / f"data/asr/{split}.jsonl.gz", "jsonl") for split in SPLITS)
    known = {reference for split in lists for one in split for reference in one.references}
    draw = Draw(f"{seed}/neural")
    drawn = [" ".join(sentence(draw)) for _ in range(sentences)]
    texts = sorted(set(drawn) - known, key=drawn.index)
    words = [*MARKS, *sorted({word for text in texts for word in text.split()})]
    table = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, unk_token="<unk>"))
    table.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    names = dict(zip(("pad_token", "bos_token", "eos_token", "unk_token"), MARKS, strict=True))
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=table, model_input_names=["input_ids", "attention_mask"], **names
    )
    set_seed(seed)
    torch.set_num_threads(1)
    marks = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
    model = GPT2LMHeadModel(GPT2Config(len(words), n_positions=64, n_embd=64, n_layer=2, n_head=4, **marks))
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for start in range(0, len(texts), 64):
        batch = tokenizer([f"<s> {text} </s>" for text in texts[start : start + 64]], return_tensors="pt", padding=True)
        labels = batch.input_ids.masked_fill(batch.attention_mask == 0, -100)
        loss = model(**batch, labels=labels).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"{len(texts)} sentences, {model.num_parameters()} weights, loss {loss.item():.2f}", file=sys.stderr)
    model.save_pretrained(path)
    tokenizer.save_pretrained(path)


def figures(folder: str, changes: dict[str, object]) -> dict[str, float]:
    """The word error rates of a run on test, in per cent."""
    recipe = yaml.safe_load((HERE / "recipes/asr.yaml").read_text())
    recipe["data"] |= changes
    path = Path(folder, "joined" if changes else "plain")
    path.with_suffix(".yaml").write_text(yaml.safe_dump(recipe))
    command = [sys.executable, "-m", "rerank", "run", path.with_suffix(".yaml"), "--output", path]
    subprocess.run(command, check=True, stdout=sys.stderr)
    found = json.loads((path / "metrics.json").read_text())["splits"]["test"]
    return {name: round(100 * figure["wer"], 2) for name, figure in found.items()}


if __name__ == "__main__":
    main()
