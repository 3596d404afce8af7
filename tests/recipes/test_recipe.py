"""Recipes: defaults, overrides, what is refused and how, and the runs that a recipe expands to."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest
import yaml

from rerank.base.errors import RecipeError
from rerank.extraction.kinds import content_of
from rerank.learn.base_weight import make_learner
from rerank.readers.reader import make_reader
from rerank.recipes.loading import load_recipe, tasks
from rerank.recipes.recipe import Recipe
from rerank.runs.list_kind import check_single


@pytest.fixture
def load(tmp_path: Path) -> Any:
    def load_text(text: str = "{}", *overrides: str) -> Recipe:
        path = tmp_path / "mine.yaml"
        path.write_text(text)
        return load_recipe(path, list(overrides))

    return load_text


def bomb(line: str, before: str) -> str:
    """YAML of eleven lines, each of which says the one before nine times: 9^10 values."""
    lines = ["a0: &a0 {x: 1}"]
    for n in range(10):
        inner = ", ".join([f"{before}*a{n}"] * 9)
        lines.append(f"a{n + 1}: &a{n + 1} {line.format(inner)}")
    return "\n".join(lines)


def message(load: Any, *arguments: str) -> str:
    with pytest.raises(RecipeError) as caught:
        load(*arguments)
    return str(caught.value)


def test_defaults(load):
    recipe = load()
    assert recipe.name == "mine"
    assert (recipe.task, recipe.seed, recipe.seeds, recipe.runs) == ("parse", 1, (), ())
    assert recipe.data.splits == ("train", "dev", "test")
    assert recipe.data.files("dev") == {"nbest": ["./dev.nbest.gz"], "gold": ["./dev.gold.gz"]}
    assert recipe.data.reader == {"name": "charniak"}
    assert recipe.metric == {"name": "parseval"}
    assert recipe.learner == {"name": "vrda", "loss": "hinge", "base": "auto"}
    assert (recipe.features.set, recipe.features.min_lists, recipe.features.hash_bits) == ("extended", 5, None)
    assert (recipe.training.epochs, recipe.training.predictor, recipe.training.vote) == (14, "average", False)


def test_the_resolved_recipe_is_the_recipe(load, tmp_path):
    text = "seeds: [1, 2]\nlearner: {name: vrda, eta: 1e-5}\nruns: [{name: a, set: {training.epochs: 2}}]\n"
    recipe = load(text, "about='größer: x'")
    (tmp_path / "again.yaml").write_text(recipe.as_yaml(), encoding="utf-8")
    assert load_recipe(tmp_path / "again.yaml") == recipe
    keys = list(yaml.safe_load(recipe.as_yaml()))
    assert {*keys} == {*Recipe.model_fields} - {"engine"}
    assert keys.index("data") < keys.index("learner") < keys.index("runs")


@pytest.mark.parametrize(
    ("override", "read"),
    [
        ("data.tests=a", lambda recipe: recipe.data.tests == ("a",)),
        ("data.tests=[a, b, a]", lambda recipe: recipe.data.tests == ("a", "b")),
        ("data.dev=null", lambda recipe: recipe.data.dev is None and recipe.data.splits == ("train", "test")),
        ("features.user={f: 'mine:f'}", lambda recipe: recipe.features.user == {"f": "mine:f"}),
        (
            "training.select.learner.name=rda",
            lambda recipe: recipe.training.select.learner == {"name": "rda", "base": "auto"},
        ),
        ("learner={name: rda, l1: 2}", lambda recipe: recipe.learner == {"name": "rda", "l1": 2, "base": "auto"}),
        ("seeds=1", lambda recipe: recipe.seeds == (1,)),
        (" seed =7", lambda recipe: recipe.seed == 7),
        ("about=a=b", lambda recipe: recipe.about == "a=b"),
        ("metric.punctuation=own", lambda recipe: recipe.metric == {"name": "parseval", "punctuation": "own"}),
    ],
)
def test_overrides(load, override, read):
    assert read(load("{}", override))


def test_overrides_apply_in_turn_and_only_to_what_they_name(load):
    recipe = load("training: {epochs: 5, patience: 2}", "training.epochs=6", "training.epochs=7")
    assert (recipe.training.epochs, recipe.training.patience) == (7, 2)
    assert load("training: null", "training.epochs=6").training.epochs == 6


def test_another_learner_drops_the_parameters_of_the_first(load):
    text = "learner: {name: vrda, eta: 2, l1: 3}"
    assert load(text, "learner.name=perceptron").learner == {"name": "perceptron", "base": "auto"}
    assert load(text, "learner.name=vrda").learner == {"name": "vrda", "eta": 2, "l1": 3, "base": "auto"}
    assert load(text, "learner.name=rda", "learner.eta=4").learner == {"name": "rda", "eta": 4, "base": "auto"}


ALONE = {  # a place where a part may be named alone: a name, the settings that it stands for, the recipe's task
    "learner": ("arow", {"name": "arow", "base": "auto"}, "parse"),
    "metric": ("chrf", {"name": "chrf"}, "translation"),
    "data.reader": ("bare", {"name": "bare"}, "parse"),
    "engine": ("local", {"name": "local"}, "parse"),
    "features": ("base", {"set": "base"}, "translation"),
    "training.pairs": ("sampled", {"name": "sampled"}, "parse"),
    "training.select.learner": ("rda", {"name": "rda", "base": "auto"}, "parse"),
    "data.generator": ("winnow", {"name": "winnow"}, "classification"),
    "runs": ([{"name": "a", "baseline": "svm"}], [{"name": "a", "baseline": {"name": "svm"}}], "classification"),
}


@pytest.mark.parametrize("place", ALONE)
def test_a_part_may_be_given_by_its_name_alone(load, place):
    name, settings, task = ALONE[place]
    assert load(f"task: {task}", f"{place}={json.dumps(name)}") == load(
        f"task: {task}", f"{place}={json.dumps(settings)}"
    )


def test_settings_may_follow_a_part_that_is_named_alone(load):
    """By --set, in a grid and in the settings of a run."""
    more = load("learner: arow\nfeatures: base", "learner.r=2", "training.pairs=sampled", "training.pairs.draws=5")
    assert (more.learner["r"], more.training.pairs) == (2, {"name": "sampled", "draws": 5})
    assert load("features: base", "features.min_lists=2").features.set == "base"
    with pytest.raises(RecipeError, match="no reader is named"):
        make_reader(load("task: ranking\ndata: {reader: {name: [1]}}").data.reader)
    assert load("learner: {name: vrda, eta: 2}", "learner=arow").learner == {"name": "arow", "base": "auto"}
    assert load("learner: arow", "learner.name=rda").learner == {"name": "rda", "base": "auto"}
    runs = load("runs: [{name: a, set: {learner: rda}}]\ngrid: {training.pairs: [oracle, sampled]}").expand()
    assert [each.recipe.learner["name"] for each in runs] == ["rda", "rda"]
    assert [each.recipe.training.pairs for each in runs] == [{"name": "oracle"}, {"name": "sampled"}]


@pytest.mark.parametrize(
    ("task", "section", "entry"),
    [
        ("parse", "runs: ", "{name: a}"),
        ("tagging", "runs: ", "{name: a}"),
        ("parse", "grid: {learner.base: ", "0.5"),
        ("parse", "training: {curve: ", "0.5"),
        ("parse", "features: {templates: ", "{Length: {binned: false}}"),
        ("ranking", "mert: {columns: [lm]}\nfeatures: {apart: ", "lm"),
        ("translation", "mert: {columns: ", "lm"),
        ("translation", "metrics: ", "ter"),
        ("classification", "runs: ", "{name: a}"),
        ("classification", "runs: {name: a}\nsignificance: {against: ", "a"),
        ("classification", "tables: ", "ranks"),
    ],
)
def test_a_list_with_a_single_entry_may_be_written_as_that_entry(load, task, section, entry):
    given = {"classification": "data: {path: x.svm}\nlearner: arow\n"}.get(task, "") + f"task: {task}\n{section}"
    end = "}" * (section.rpartition("\n")[2].count("{"))
    assert load(f"{given}{entry}{end}") == load(f"{given}[{entry}]{end}")


@pytest.mark.parametrize(
    ("text", "key", "hint"),
    [
        ("trainig: {}", "trainig", "did you mean training"),
        ("training: {epoch: 3}", "training.epoch", "did you mean epochs"),
        ("training: {select: {learner: {}, kept: 2}}", "training.select.kept", "did you mean keep"),
        ("runs: [{name: a, sett: {}}]", "runs.0.sett", "did you mean set"),
        ("features: {zzz: 1}", "features.zzz", "known: centred, hash_bits"),
        ("training: {epochs: 0}", "training.epochs", "found 0; expected a whole number from 1 to 100,000"),
        ("features: {min_lists: 2147483648}", "features.min_lists", "a whole number from 1, at most 2,147,483,647"),
        ("training: {share: yes}", "training.share", "found True; expected a finite number above 0 and at most 1"),
        ("data: {holdout: .nan}", "data.holdout", "found nan; expected a finite number above 0 and below 1"),
        ("task: poetry", "task", "found 'poetry'"),
        ("learner: [vrda]", "learner", "found ['vrda']; expected a mapping"),
        ("runs: [{set: {}}]", "runs.0.name", "is missing"),
        ("runs: [{name: a}, {name: a, set: {seed: 2}}]", "runs", "two runs have the same name"),
        ("grid: {learner.eta: []}", "grid.learner.eta", "found []; expected a list of one entry or more"),
        ("training: {curve: [0.5, 2]}", "training.curve.1", "found 2; expected a finite number above 0 and at most 1"),
        ("data: {on_bad_list: skipp}", "data.on_bad_list", "found 'skipp'; expected one of error, skip"),
        ("1: 2", "1", "strings"),
        ("seeds: [1, 2, 1]", "seeds", "a seed is named twice"),
        ("seeds: 5", "seeds", "found 5: the seeds themselves are expected, [5] for this one, or [1, 2, 3, 4, 5]"),
        ("seeds: 500", "seeds", "[500] for this one, or [1, 2, ..., 500]"),
    ],
)
def test_refused_settings(load, text, key, hint, tmp_path):
    found = message(load, text)
    assert found.startswith(f"{tmp_path / 'mine.yaml'}: {key}: ")
    assert hint in found


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("a: [", "not valid YAML"),
        ("seed: 1\nseed: 2", "'seed' is set twice"),
        ("about: 2024-99-99", "not valid YAML: month"),
        ("[" * 3000, "nested too deep"),
        ('name: "a\\ud800"', "half a surrogate pair"),
        ("- 1", "expected a mapping"),
        ("", "expected a mapping"),
        ("a: !!python/object:os.system {}", "not valid YAML"),
        ("seed: 010", "found 010, in YAML a number of base 8 or 60; write a decimal number"),
        ("seed: 1:30", "found 1:30, in YAML a number of base 8 or 60"),
        ("a: \x1b", "not valid YAML: unacceptable character #x001b"),
        ("a: !!pairs [x: 1]", "found the tag !!pairs; recipes may not have tags"),
        ("a: &a [1, *a]", "an alias is used within its own value"),
        (bomb("!!pairs [{}]", "x: "), "found the tag !!pairs"),
        (bomb("{{<<: [{}]}}", ""), "more than 100,000 values"),
        (bomb("[{}]", ""), "more than 100,000 values"),
        ("a: [" + "1," * 100_001 + "]", "more than 100,000 values"),
        ("about: " + "x" * (1 << 20), "more than 1 MiB; expected a recipe"),
    ],
)
def test_what_is_no_recipe(load, text, hint):
    assert hint in message(load, text)


@pytest.mark.parametrize(
    ("override", "hint"),
    [
        ("seed", "found --set 'seed', expected --set key.path=value"),
        ("=3", "expected --set key.path=value"),
        ("data.tests=[a", "not valid YAML"),
        ("about=2024-99-99", "not valid YAML"),
        ("about=\x1b", "not valid YAML: unacceptable character #x001b"),
        ("seed.x=3", "'seed' holds 5"),
        ("trainin.epochs=3", "did you mean training"),
    ],
)
def test_refused_overrides(load, override, hint):
    assert hint in message(load, "seed: 5", override)


ORDERS = [
    ["learner.eta=5", "learner.name=perceptron"],
    ["learner.name=perceptron", "learner.eta=5"],
    ["learner.eta=5", "learner={name: perceptron}"],
]


@pytest.mark.parametrize("overrides", ORDERS)
def test_no_override_undoes_another(load, overrides):
    """A setting that the final learner lacks is an error, in whatever order they are given."""
    recipe = load("learner: {name: vrda, l1: 0.5}", *overrides)
    assert recipe.learner == {"name": "perceptron", "eta": 5, "base": "auto"}
    with pytest.raises(RecipeError, match=r"^learner: learner perceptron has no setting 'eta'; (did you mean|known:)"):
        make_learner(recipe.learner)


def test_a_new_name_leaves_out_the_settings_of_the_recipe_and_says_so(load, caplog):
    with caplog.at_level("INFO", "rerank"):
        recipe = load("learner: {name: vrda, l1: 0.5}", "learner.name=sgd", "learner.eta=2")
    assert recipe.learner == {"name": "sgd", "eta": 2, "base": "auto"}
    assert "--set learner.name sgd replaces vrda and its settings (l1: 0.5)" in caplog.text


@pytest.mark.parametrize(
    ("text", "override", "by"),
    [
        ("seeds: [1, 2]", "seed=3", "seeds"),
        ("runs: {name: a, set: {seed: 2}}", "seed=3", "runs"),
        ("grid: {learner.eta: [1, 2]}", "learner.eta=3", "grid"),
        ("grid: {learner.name: [sgd, pa]}", "learner.eta=3", "grid"),
        ("runs: [{name: a, set: {learner: {name: sgd}}}, {name: b, set: {learner.name: pa}}]", "learner.l1=3", "runs"),
    ],
)
def test_an_override_that_nothing_heeds_is_an_error(load, text, override, by):
    key = override.partition("=")[0]
    assert f"{key}: --set changes nothing: the recipe's {by} override it" in message(load, text, override)
    load(text, override, f"{by}=" + ("{}" if by == "grid" else "[]"))


def test_an_override_that_some_runs_heed(load):
    text = "runs: [{name: a, set: {learner: {name: sgd}}}, {name: b}]"
    found = {single.name: single.recipe.learner for single in load(text, "learner.name=pa").expand()}
    assert found == {"a": {"name": "sgd", "base": "auto"}, "b": {"name": "pa", "base": "auto"}}


def test_values_count_where_aliases_stand(load):
    """What is small enough is understood: an alias that is used twice, a merge key."""
    recipe = load(
        "data: {root: &place here, train: *place}\nruns: [&one {name: a, set: {seed: 2}}, {<<: *one, name: b}]"
    )
    assert (recipe.data.root, recipe.data.train) == ("here", ("here",))
    assert [(run.name, run.set) for run in recipe.runs] == [("a", {"seed": 2}), ("b", {"seed": 2})]


EVERY_TASK = sorted(tasks.names())
LISTS = sorted(set(tasks.names()) - {"classification", "tagging"})


@pytest.mark.parametrize(
    ("tasks", "setting", "most"),
    [
        (EVERY_TASK, "training.epochs", 100_000),
        (EVERY_TASK, "significance.samples", 1_000_000),
        (EVERY_TASK, "engine.workers", 1024),
        (EVERY_TASK, "seed", 2**63 - 1),
        (LISTS, "training.patience", 100_000),
        (LISTS, "examples", 10_000),
        (["classification"], "tune.epochs", 100_000),
        (["classification"], "data.drawn", 10_000),
    ],
)
def test_counts_have_limits(load, tasks, setting, most):
    for task in tasks:
        beside = ["training.select.learner={name: rda}"] if "select" in setting else []
        start = f"task: {task}" + ("\ndata: {path: x}" if task == "classification" else "")
        assert load(start, *beside, f"{setting}={most}").task == task
        found = message(load, start, *beside, f"{setting}=18446744073709551616")
        assert f"{setting}: found 18446744073709551616" in found.replace(".:drawn", "")
        assert "; expected a whole number from" in found


@pytest.mark.parametrize("task", EVERY_TASK)
def test_seeds_and_runs_have_limits(load, task):
    assert "seeds: " in message(load, f"task: {task}\nseeds: {list(range(1001))}")
    recipe = load(f"task: {task}\nruns: [{{name: a}}, {{name: b}}]\ngrid: {{learner.eta: {list(range(1, 10_001))}}}")
    with pytest.raises(RecipeError, match=r"runs: 20,000 runs, with their grids and seeds; at most 10,000 are made"):
        recipe.expand()


def test_missing_and_unreadable_files(tmp_path):
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x00")
    for name in ("none.yaml", "", "binary.yaml"):
        with pytest.raises(RecipeError, match="cannot read the recipe"):
            load_recipe(tmp_path / name)


@pytest.mark.parametrize("pattern", ["{place}/x", "{0}", "{root", "{root.x}", "{split[a]}"])
def test_a_pattern_that_cannot_be_filled(load, pattern):
    recipe = load(yaml.safe_dump({"data": {"gold": pattern}}))
    with pytest.raises(RecipeError, match=r"^data.gold: cannot fill in"):
        recipe.data.files("dev")


def test_runs_times_grid_times_seeds(load):
    text = """
seeds: [3, 4]
learner: {name: vrda, l1: 9}
runs:
  - {name: one, set: {learner.name: perceptron}}
  - {name: two, set: {learner: {name: rda}, training: {epochs: 2}}}
grid: {learner.base: [0, 1], oracle.ties: [base, any]}
"""
    expanded = load(text).expand()
    assert len(expanded) == 2 * 4 * 2
    assert [single.name for single in expanded[:3]] == ["one base=0 ties=base"] * 2 + ["one base=0 ties=any"]
    assert [single.recipe.seed for single in expanded[:4]] == [3, 4, 3, 4]
    assert {single.recipe.learner["name"] for single in expanded[:8]} == {"perceptron"}
    assert expanded[0].recipe.learner == {"name": "perceptron", "base": 0}
    last = expanded[-1].recipe
    assert expanded[-1].name == "two base=1 ties=any"
    assert (last.learner, last.oracle.ties, last.training.epochs) == ({"name": "rda", "base": 1}, "any", 2)
    assert all(not (each.recipe.runs or each.recipe.grid or each.recipe.seeds) for each in expanded)


def test_a_single_run_is_called_after_its_learner(load):
    (single,) = load("learner: {name: rda}\nseed: 8").expand()
    assert (single.name, single.recipe.seed, single.recipe.learner) == ("rda", 8, {"name": "rda", "base": "auto"})


@pytest.mark.parametrize("change", ["data.root: elsewhere", "features.min_lists: 9", "metric.punctuation: own"])
def test_runs_may_not_change_the_data(load, change):
    recipe = load(f"runs: [{{name: a, set: {{{change}}}}}]")
    with pytest.raises(RecipeError, match=r"^runs.a.set: a run may not change data, features, metric or decode"):
        recipe.expand()


def test_a_run_with_an_unknown_key(load):
    with pytest.raises(RecipeError, match=r"training.epoch: unknown setting; did you mean epochs"):
        load("runs: [{name: a, set: {training.epoch: 2}}]").expand()
    with pytest.raises(RecipeError, match=r"training.epochs: found 0"):
        load("grid: {training.epochs: [1, 0]}").expand()


def test_what_was_found_is_not_shown_without_end(load):
    text = message(load, f"runs: [{'x' * 10_000}]")
    assert len(text) < 400
    assert "runs.0: found 'xxx" in text


@pytest.mark.parametrize("value", ["1e-5", "2E3", "1.5e+2", "0x10", "nan", "on", "1_000", "2001-01-01", "a\u2028b\x85"])
def test_a_text_that_looks_like_something_else_stays_a_text_in_the_resolved_recipe(load, tmp_path, value):
    quoted = json.dumps(value)
    recipe = load(f"about: {quoted}\nlearner: {{name: vrda, note: {quoted}}}\n")
    assert (recipe.about, recipe.learner["note"]) == (value, value)
    resolved = tmp_path / "resolved.yaml"
    resolved.write_text(recipe.as_yaml(), encoding="utf-8")
    assert load_recipe(resolved) == recipe


def test_a_grid_of_too_many_points(load):
    values = list(range(101))
    recipe = load(f"grid: {{learner.eta: {values}, learner.base: {values}}}")
    with pytest.raises(RecipeError, match=r"^grid: 10,201 combinations of values; at most 10,000"):
        recipe.expand()


def test_a_template_that_is_none_says_where_it_stands(load):
    with pytest.raises(RecipeError, match=r"^features\.templates: found 1, expected a template"):
        content_of(load("features: {templates: [1]}"))


def test_hashed_columns_are_measured_first(load, monkeypatch, caplog):
    """A perceptron keeps two numbers a column, twice, four predictors, and 8 bytes of scratch space."""
    recipe = load("features: {hash_bits: 30}\nlearner: {name: perceptron}")
    free = {"total": 64 << 30, "available": 100 << 30}
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(**free))
    with pytest.raises(
        RecipeError,
        match=r"^features.hash_bits: 2\^30 columns with perceptron takes 77.3 GB, and this process may have 6",
    ):
        check_single(recipe)
    free["total"] = 200 << 30
    check_single(recipe)
    assert "2^30 columns with perceptron takes 77.3 GB; 107.4 GB of memory are free" in caplog.text
    caplog.clear()
    check_single(load("features: {hash_bits: 20}\nlearner: {name: perceptron}"))
    check_single(load())
    assert not caplog.text


def test_the_first_seed_alone_may_vote(load: Any) -> None:
    runs = load(
        "seeds: [7, 1]\ntraining: {vote: first}\nruns: [{name: a}, {name: b, set: {training.vote: false}}]"
    ).expand()
    assert [(run.run, run.recipe.seed, run.recipe.training.vote) for run in runs] == [
        ("a", 7, True), ("a", 1, False), ("b", 7, False), ("b", 1, False),
    ]  # fmt: skip
