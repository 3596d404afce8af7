"""A made-up run for the tests of the report: three learners, two seeds, real-looking numbers, four sentences."""

from datetime import UTC, datetime
from types import SimpleNamespace

from rerank.data.symbols import SymbolTable
from rerank.data.trees import parse_brackets
from rerank.metrics.parseval import Parseval
from rerank.models.scorer import Contribution
from rerank.runs.report.page import report
from rerank.runs.report.results import headline
from rerank.runs.report.table import TextTable
from rerank.runs.results import Example, list_sections

SIGNATURE = (
    "parseval|punctuation:reference|labeled:yes|delete:(none) TOP S1 ROOT -NONE- , : `` '' .|equal:ADVP=PRT|version:3"
)

RECIPE = """\
name: parse-demo
task: parse
seed: 1
seeds: [1, 2]
data:
  train: train
  dev: dev
  tests: [test]
  nbest: "{root}/{split}.nbest.gz"   # <pattern> & more
features: {set: cj2005, min_lists: 5}
learner: {name: vrda, loss: hinge, eta: 0.1, l1: 1.0e-05}
training: {epochs: 10, vote: true}
"""

# Per sentence: gold, base, chosen. In the fourth, base and chosen are the same.
SENTENCES = [
    (
        "(S1 (S (NP-SBJ (PRP She)) (VP (VBD saw) (NP (DT a) (NN heron)) (PP (IN in) (NP (NN fog)))) (. .)))",
        "(S1 (S (NP (PRP She)) (VP (VBD saw) (NP (NP (DT a) (NN heron)) (PP (IN in) (NP (NN fog))))) (. .)))",
        "(S1 (S (NP (PRP She)) (VP (VBD saw) (NP (DT a) (NN heron)) (PP (IN in) (NP (NN fog)))) (. .)))",
    ),
    (
        "(S1 (S (NP (NNP AT&T)) (VP (VBZ pays) (NP (QP (SYM <) (CD 5)) (NN %)) (PP (IN on) (NP (NN 'X'>Y)))) (. .)))",
        "(S1 (S (NP (NNP AT&T)) (VP (VBZ pays) (NP (SYM <) (CD 5) (NN %) (PP (IN on) (NP (NN 'X'>Y))))) (. .)))",
        "(S1 (S (NP (NNP AT&T)) (VP (VBZ pays) (NP (QP (SYM <) (CD 5)) (NN %) (PP (IN on) (NP (NN 'X'>Y))))) (. .)))",
    ),
    (
        "(S1 (S (ADVP (RB Maybe)) (NP (PRP they)) (VP (VBD took) (PRT (RP off)) (NP (NNS hats))) (. .)))",
        "(S1 (S (ADVP (RB Maybe)) (NP (PRP they)) (VP (VBD took) (ADVP (RB off)) (NP (NNS hats))) (. .)))",
        "(S1 (S (ADVP (RB Maybe)) (NP (PRP they)) (VP (VBD took) (PP (IN off) (NP (NNS hats)))) (. .)))",
    ),
    (
        "(S1 (NP (NP (NNS bread)) (, ,) (NP (NN jam)) (CC and) (NP (NP (CD two) (NNS figs)) (PP (IN in) (NN tea)))))",
        *["(S1 (NP (NP (NNS bread)) (, ,) (NP (NN jam)) (CC and) (NP (CD two) (NNS figs) (PP (IN in) (NN tea)))))"] * 2,
    ),
]

FEATURES = [
    ("LogCondP", 0.412, -0.83),
    ("Rule|VP → VBD NP PP|^S", 0.0873, 1.0),
    ("NGramTree|(VP (NP NN) (PP IN))", 0.0641, 1.0),
    ("Heads|(VBD watched) (IN through)|semantic", 0.0517, 1.0),
    ("WordEdges|NP|5+|_ the _ .", -0.0388, -1.0),
    ("Heavy|NP|5+|0|.", -0.0211, -1.0),
    ("RightBranch", 0.0143, -2.0),
]


def quality(f1, exact=0.35):
    """A report of parseval."""
    return {"f1": f1, "precision": f1 + 0.0007, "recall": f1 - 0.0007, "exact_match": exact}


def gain(gold, tree):
    """Sentence F."""
    symbols = SymbolTable()
    metric = Parseval()
    reference, rows = metric.stats(*(parse_brackets([text.encode()], symbols) for text in (gold, tree)), symbols)
    return float(metric.gain(rows, reference)[0])


def make_run(name, seed, learner, dev, test, nonzero, voted=True):
    """One entry of ``runs``."""
    splits = {}
    for split, f1, base, oracle in (("dev", dev, 0.8263, 0.9125), ("test", test, 0.8232, 0.9135)):
        splits[split] = {
            "base": quality(base, 0.346),
            "oracle": quality(oracle, 0.601),
            "last": quality(f1 - 0.0061, 0.352),
            "average": quality(f1, 0.371),
        }
        if voted:
            splits[split]["voted"] = quality(f1 + 0.0004, 0.372)
    significance = {}
    for split, systems in splits.items():
        significance[split] = {}
        for predictor in ("average", "voted") if voted else ("average",):
            gap = systems[predictor]["f1"] - systems["base"]["f1"]
            significance[split][f"{predictor}_vs_base"] = {
                "test": "approximate_randomization",
                "difference": gap,
                "p": 0.0001 if gap > 0.01 else 0.0312,
                "interval": [gap - 0.0055, gap + 0.0054],
            }
    mistakes = [int(6120 * 0.84**epoch) + 40 * seed for epoch in range(10)]
    return {
        "name": name,
        "seed": seed,
        "learner": learner,
        "training": {
            "learner": learner["name"],
            "loss": "hinge",
            "epochs": 10,
            "mistakes": mistakes,
            "updates": sum(mistakes),
            "nonzero_weights": nonzero,
            "seconds": 41.3 + seed,
            "nonzeros_per_second": 61_400_000.0,
            "bound": {"source": "Theorem 2", "mistakes": sum(mistakes), "bound": 88_412.3, "largest_norm": 61.25},
        },
        "splits": splits,
        "significance": significance,
    }


def trained(name, mistakes, dev=()):
    """A run of one seed as it was trained, as far as figures ask for it: of every epoch mistakes and a score on dev."""
    history = [{"epoch": epoch, "mistakes": wrong} for epoch, wrong in enumerate(mistakes, start=1)]
    for line, score in zip(history, dev, strict=False):
        line["dev"] = score
    return SimpleNamespace(name=name, history=history, training={"lists": 9500})


def make_trained(run):
    """How a run of ``make_run`` went."""
    epochs, best = run["training"]["mistakes"], run["splits"]["dev"]["average"]["f1"]
    dev = [best - 0.008 * 0.6**epoch + 0.0004 * ((epoch + run["seed"]) % 2) for epoch in range(len(epochs))]
    return trained(run["name"], epochs, dev)


def make_corpus(lists, candidates, skipped):
    """One entry of ``corpora``."""
    return {
        "lists": lists,
        "candidates": candidates,
        "nonzeros": 212 * candidates,
        "columns": 372_254,
        "seconds": 187.2 * lists / 9507,
        "skipped": skipped,
        "statistics": {
            "lists": lists,
            "candidates": candidates,
            "smallest": 1,
            "mean": candidates / lists,
            "median": 50.0,
            "largest": 50,
            "empty": 0,
            "singletons": 31,
            "unique_oracle": 0.612,
            "oracle_ranks": [int(0.46 * lists), *(int(lists * 0.11 / (rank + 0.6)) for rank in range(1, 50))],
            "base": quality(0.8232),
            "oracle": quality(0.9135),
            "corpus_oracle": quality(0.9141),
            "anti_oracle": quality(0.6312, 0.04),
            "random": quality(0.7760, 0.16),
        },
    }


def make_examples():
    """One example a sentence."""
    found = []
    for number, texts in enumerate(SENTENCES, start=1):
        gold, base, chosen = (" ".join(text.split()) for text in texts)
        parts = [Contribution(name, weight, value, 0.0) for name, weight, value in FEATURES]
        parts.sort(key=lambda part: -abs(part.amount))
        found.append(
            Example(
                split="test",
                list_id=f"demo_news_bridge-{number}",
                gold=gold,
                texts=(base, chosen),
                gains=(gain(gold, base), gain(gold, chosen), 1.0),
                contributions=() if base == chosen else parts,
            )
        )
    return found


def make_metrics(runs, chosen):
    """metrics.json of these runs."""
    top = {key: runs[chosen][key] for key in ("training", "splits", "significance")}
    corpora = {
        "train": make_corpus(9507, 447_925, {"gold and candidates have different words": 12, "no candidates": 3}),
        "dev": make_corpus(1553, 73_278, {}),
        "test": make_corpus(1447, 69_508, {"gold and candidates have different words": 1}),
    }
    about = {"schema": 1, "task": "parse", "name": "parse-demo", "seed": 1, "version": "0.1.0", "metric": SIGNATURE}
    named = {key: runs[chosen][key] for key in ("name", "seed")}
    return {**about, "chosen": named, "predictor": "average", "corpora": corpora, **top, "runs": runs}


def make_runs():
    """Three learners with two seeds each; the perceptron has no voted predictor."""
    vrda = {"name": "vrda", "eta": 0.1, "l1": 1e-05}
    return [
        make_run("perceptron", 1, {"name": "perceptron"}, 0.8362, 0.8363, 300_072, voted=False),
        make_run("perceptron", 2, {"name": "perceptron"}, 0.8365, 0.8370, 301_554, voted=False),
        make_run("voted RDA", 1, vrda, 0.8391, 0.8379, 41_870),
        make_run("voted RDA", 2, vrda, 0.8394, 0.8384, 42_115),
        make_run("AROW", 1, {"name": "arow", "r": 10.0, "covariance": "diagonal"}, 0.8377, 0.8371, 352_408),
        make_run("AROW", 2, {"name": "arow", "r": 10.0, "covariance": "diagonal"}, 0.8380, 0.8366, 352_001),
    ]


MACHINE = ["Linux x86_64, 8 cores, 16 GiB", "Python 3.12.3, numpy 2.1.0, numba 0.61.0"]


def render(metrics, *, recipe=RECIPE, machine=MACHINE, **parts):
    """The page of these results; ``parts`` are those of ``list_sections``."""
    date, sections, summary = (
        datetime(2024, 5, 17, 14, 3, tzinfo=UTC),
        list_sections(metrics, **parts),
        headline(metrics),
    )
    return report(metrics, sections, recipe=recipe, seconds=1284.0, date=date, machine=machine, summary=summary)


def make_report():
    """What the whole page is made of."""
    runs = make_runs()
    return {"metrics": make_metrics(runs, 3), "runs": [*map(make_trained, runs)], "examples": make_examples()}


def make_full_report():
    """The whole page with everything that a run may add to it, and names as long as they get."""
    long = "Heads(governor=word, dependent=word)|IN / notwithstanding < VBD / misinterpreted"
    weights = TextTable("Strongest weights", ["feature", "weight"], [[long, "12.49"], [long * 3, "−3.1"]])
    changes = [{"split": "test", "better": "412 (28.5 %)", "worse": "201", "the same": "834"}]
    scores = [0.83, 0.835, 0.838, 0.84]
    points = [
        {"lists": lists, "dev": score, "splits": {"test": score}}
        for lists, score in zip([950, 2376, 4753, 9507], scores, strict=True)
    ]
    last = {"test": "paired_bootstrap", "difference": 0.002, "p": 0.01}
    parts = make_report()
    parts["metrics"]["curve"] = {"split": "test", "points": points, "slope": 0.003, "last": last}
    return parts | {"changes": changes, "weights": [weights]}
