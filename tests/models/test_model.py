"""Models on disk: what is saved is loaded, every damage is one message, and no model makes anybody import anything."""

import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from copy import deepcopy
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import small
import small_texts
from commands import Command, refused
from programs import program
from small_models import LEARNERS, sealed, trained

import rerank as library
from rerank.base.errors import ModelError, RerankError, RunError
from rerank.base.registry import Registry
from rerank.features.table import HashedTable
from rerank.learn.base_weight import make_learner
from rerank.learn.epoch import Votes
from rerank.learn.learner import Weights
from rerank.models.decoding import gain_functions
from rerank.models.model import HEADER, TREES, Model, check_state, header_digest
from rerank.models.provenance import parts_of, require_trusted
from rerank.models.scorer import Scorer
from rerank.storage.documents import read_object


@pytest.fixture
def directory(small_run: Path, tmp_path: Path) -> Path:
    """A copy of a model that a test may damage."""
    shutil.copytree(small_run / "model", tmp_path / "model")
    return tmp_path / "model"


def tiny() -> Model:
    """A model of 16 hashed columns."""
    weights = {name: Weights(np.arange(16.0), 0.5) for name in ("last", "average")}
    return Model({}, {"learner": "perceptron"}, HashedTable.of(4, ("Rule",), {}), weights)


def test_saved_and_loaded(directory, tmp_path):
    model = Model.load(directory)
    model.save(tmp_path / "again")
    again = Model.load(tmp_path / "again")
    assert small.files_of(tmp_path / "again") == small.files_of(directory)
    assert (again.settings, again.about) == (model.settings, model.about)
    for name in ("last", "average"):
        assert np.array_equal(again.weights[name].w, model.weights[name].w)
        assert again.weights[name].base == model.weights[name].base
    assert set(again.state) == set(model.state) != set()
    assert set(again.votes) == set(model.votes) == set(Votes._fields)


def test_no_file_can_run_code(directory):
    for path in directory.iterdir():
        assert path.suffix in (".json", ".npy")
        if path.suffix == ".npy":
            assert not np.load(path, allow_pickle=False).dtype.hasobject


def test_a_failed_save_keeps_the_old_model(tmp_path):
    tiny().save(tmp_path / "model")
    before = small.files_of(tmp_path)
    broken = replace(tiny(), about={"learner": object()})
    with pytest.raises(TypeError):
        broken.save(tmp_path / "model")
    assert small.files_of(tmp_path) == before
    with pytest.raises(RunError, match="cannot write"):
        tiny().save(tmp_path / "model" / "model.json" / "below")


FILES = ["model.json", "table.json", "average.npy", "state_cells.npy", "table_hashes.npy", "votes_value.npy"]


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("how", ["missing", "empty", "cut short", "one bit", "a directory"])
def test_every_damaged_file_is_one_message(directory, name, how):
    file = directory / name
    content = bytearray(file.read_bytes())
    file.unlink()
    if how == "a directory":
        file.mkdir()
    elif how != "missing":
        content[len(content) // 2] ^= 1
        file.write_bytes({"empty": b"", "cut short": bytes(content[:-20]), "one bit": bytes(content)}[how])
    with pytest.raises(ModelError) as caught:
        Model.load(directory)
    assert str(caught.value).startswith(str(directory))
    assert "\n" not in str(caught.value)
    if how == "missing":
        assert f"{file.name} is missing" in str(caught.value)


def change(directory: Path, sign: bool, **entries: object) -> None:
    """Change entries of model.json; with ``sign`` so that its digest fits."""
    path = directory / "model.json"
    header = json.loads(path.read_text()) | entries
    if sign:
        header["digest"] = header_digest(header)
    path.write_text(json.dumps(header))


def test_another_layout_of_the_same_header_is_no_change(directory):
    change(directory, False)
    assert Model.load(directory).about["learner"] in ("vrda", "perceptron")


def test_no_model(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(ModelError, match=r"no model here: model.json is missing"):
        Model.load(tmp_path)
    with pytest.raises(ModelError, match="nowhere: no such directory; check the name"):
        Model.load(tmp_path / "nowhere")
    with pytest.raises(ModelError, match="is a file; expected the directory of a model"):
        Model.load(tmp_path / "file")
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "model.json").write_text("{}")
    with pytest.raises(ModelError, match=f"model.json is missing; did you mean {tmp_path}/model"):
        Model.load(tmp_path)


# Damage that is signed: every checksum is that of the changed files


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    root = tmp_path_factory.mktemp("originals")
    paths = [root / spec["name"] for spec in LEARNERS]
    for spec, path in zip(LEARNERS, paths, strict=True):
        trained(spec).save(path)
    return paths


def npy(name: str, make: Callable[[np.ndarray], np.ndarray]) -> Callable[[Path], Any]:
    """Damage: another array."""
    return lambda directory: np.save(directory / f"{name}.npy", make(np.load(directory / f"{name}.npy")))


def at(index: int, value: Any) -> Callable[[np.ndarray], np.ndarray]:
    """Another value at one place."""

    def make(array: np.ndarray) -> np.ndarray:
        array.flat[index] = value
        return array

    return make


def header(**entries: Any) -> Callable[[Path], Any]:
    return lambda directory: change(directory, True, **entries)


def add(name: str) -> Callable[[Path], Any]:
    """Damage: one more array that the header names."""

    def damage(directory: Path) -> None:
        np.save(directory / name, np.zeros(3))
        files = read_object(directory / HEADER)["files"]
        change(directory, True, files=files | {name: ""})

    return damage


def grown(old: str, new: str) -> Callable[[Path], Any]:
    """Damage: other trees."""
    return lambda directory: (directory / TREES).write_text((directory / TREES).read_text().replace(old, new))


SIGNED: list[tuple[Callable[[Path], Any], str]] = [
    (npy("last", at(2, np.nan)), "last.npy holds weights that are not finite"),
    (npy("average", at(0, np.inf)), "average.npy holds weights that are not finite"),
    (npy("last", lambda a: a[:, None]), "differ in length or type"),
    (npy("last", lambda a: a.astype("f4")), "differ in length or type"),
    (npy("votes_first", at(1, -1)), "votes: an array is out of order or out of range"),
    (npy("votes_first", at(1, 2**62)), "votes: an array is out of order or out of range"),
    (npy("votes_first", lambda a: a[:-1]), "votes: first is int64"),
    (npy("votes_first", lambda a: a.astype("i4")), "votes: first is int32"),
    (npy("votes_columns", at(0, 16)), "votes: an array is out of order or out of range"),
    (npy("votes_columns", at(0, -1)), "votes: an array is out of order or out of range"),
    (npy("votes_value", at(0, np.nan)), "votes: value holds numbers that are not finite"),
    (npy("votes_survived", at(0, -1)), "votes: an array is out of order or out of range"),
    (npy("votes_scale", at(0, -1)), "votes: an array is out of order or out of range"),
    (npy("votes_beta", lambda a: a.reshape(1, -1)), "votes: beta is float64"),
    (npy("votes_beta", lambda a: a[:-1]), "votes: beta is float64"),
    (npy("state_cells", lambda a: a[:-1]), r"state_cells.npy is float64 \(16,\); expected float64 \(17,\)"),
    (npy("state_cells", lambda a: a.astype("i8")), "state_cells.npy is int64"),
    (npy("state_cells", at(0, np.nan)), "state_cells.npy holds numbers that are not finite"),
    (npy("state_counts", at(0, -1)), "state_counts.npy holds a count that is negative or above"),
    (npy("state_counts", at(4, 3)), "its state was trained with 3 free columns, its table has 0"),
    (grown("left_child=1", "left_child=0"), "its trees have a path that ends at no leaf"),
    (grown("split_feature=", "split_feature=9"), "its trees have a path .* or ask for a column that is not there"),
    (grown("num_cat=0", "num_cat=1"), "its trees have other splits than those of numbers"),
    (grown("leaf_value=", "leaf_value=1 "), "its trees has not as many splits as its 4 leaves need"),
    (grown("threshold=", "threshold=" + 400 * "9"), "its trees hold numbers that are not finite"),
    (add("votes_more.npy"), "its votes are"),
    (add("more.npy"), "its weights are average, last, more"),
    (header(about={"learner": "vrda"}), "its provenance lacks training_data and epochs"),
    (header(about={"epochs": -1}), "about.epochs: found -1; expected a whole number from 0"),
    (header(settings={"name": "x"}), "its settings are not a recipe of this program: task"),
    (
        header(settings={"name": "x", "task": "parse", "features": {"hash_bits": 5}, "learner": {"name": "vrda"}}),
        "its settings have features.hash_bits: 5, its table None",
    ),
    (header(settings={"name": "x", "task": "parse", "lerner": 1}), "lerner: unknown setting; did you mean learner"),
    (header(base={"last": 1.0, "average": 10**400}), "base.average"),
    (header(files={"last.npy/../last.npy": "0" * 64}), "string should match pattern"),
    (header(files={"/etc/passwd": "0" * 64}), "string should match pattern"),
    (header(more=1), "more: unknown setting"),
    (header(version=True), "format version True|expected a whole number"),
    (header(version=99), "format version 99; this program reads 1"),
    (header(files={}), "is not part of this model"),
    (header(files=[]), r"files: found \[\]; expected a mapping"),
    (header(base={}), "its weights are average, last; expected those of model.json"),
    (header(base={"last": "x", "average": 1}), "base.last: found 'x'; expected a finite number"),
    (header(settings=5), "settings: found 5; expected a mapping"),
]


@pytest.mark.parametrize(("damage", "message"), SIGNED)
def test_misfits(originals: list[Path], tmp_path: Path, damage: Callable[[Path], Any], message: str) -> None:
    shutil.copytree(originals[-1 if "its trees" in message else 0], tmp_path / "m")
    damage(tmp_path / "m")
    if "pattern" not in message:
        sealed(tmp_path / "m")
    with pytest.raises(ModelError, match=message):
        check_state(Model.load(tmp_path / "m"), "m")  # which whoever continues from it does


def test_links_and_further_files(directory: Path, tmp_path: Path) -> None:
    (directory / "notes.txt").write_text("mine")
    with pytest.raises(ModelError, match=r"notes.txt is not part of this model; remove it"):
        Model.load(directory)
    (directory / "notes.txt").rename(directory / ".notes")
    Model.load(directory)
    for name in ("last.npy", HEADER):
        (directory / name).rename(tmp_path / name)
        os.symlink(tmp_path / name, directory / name)
        with pytest.raises(ModelError, match=r"last.npy is not a plain file|model.json is a link"):
            Model.load(directory)
        (directory / name).unlink()
        (tmp_path / name).rename(directory / name)
    os.symlink(directory, tmp_path / "link")
    Model.load(tmp_path / "link")


def test_hashes_of_features_are_as_documented(directory: Path) -> None:
    """The arithmetic of docs/models.md, from the texts of a table."""
    word = 2**64 - 1

    def mix(z: int) -> int:
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & word
        z = (z ^ z >> 27) * 0x94D049BB133111EB & word
        return z ^ z >> 31

    def text_hash(text: str) -> int:
        h = 0xCBF29CE484222325
        for byte in text.encode():
            h = (h ^ byte) * 0x100000001B3 & word
        return mix(h) or 1

    table = Model.load(directory).table
    for j in range(0, table.width, 7):
        h = text_hash(table.templates[table.template[j]])
        for symbol in table.symbols[table.first[j] : table.first[j + 1]].tolist():
            assert text_hash(table.texts[symbol]) == symbol
            h = (h ^ symbol) * 0xBF58476D1CE4E5B9 & word
            h = (h ^ h >> 32) * 0x94D049BB133111EB & word
        assert h | 1 == table.hashes[j]


DECODING: dict[str, Any] = {"kind": "mbr", "sharpness": 1.0, "deviation": 1.0, "threshold": 0.5, "most": 9}
MORE: dict[str, Any] = {
    "features": {"set": "dense", "templates": ["Given", {"Copy": {}}], "user": {"x": "plain"}, "hash_bits": 4},
    "training": {"select": {"learner": {"name": "perceptron"}}},
    "decode": {"gains": "plain"},
}
READER = {"name": "merged", "of": ["moses", {"name": "joined", "of": "{name: moses}"}]}


def saved(place: Path, changes: dict[str, Any], about: dict[str, Any] | None = None) -> Path:
    """A model of texts, of 16 hashed columns, with these settings of its recipe."""
    settings = small_texts.recipe(place).change({"features": {"set": "dense", "hash_bits": 4}}).model_dump(mode="json")
    for key, value in changes.items():
        *parents, last = key.split(".")
        node = settings
        for parent in parents:
            node = node[parent]
        node[last] = value
    weights = {name: Weights(np.zeros(16), 1.0) for name in ("last", "average")}
    Model(settings, about or {}, HashedTable.of(4, ("Dense",), {}), weights).save(place / "model")
    return place / "model"


@pytest.fixture
def trap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that modules are found in, with one that leaves a file when it is imported."""
    (tmp_path / "trap.py").write_text("open('sprung', 'w').close()\ndef f(*given): return {}\nclass C: ...\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    sys.modules.pop("trap", None)


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("features.user", {"x": "trap:f"}, "features.user.x: trap:f"),
        ("features.user", {"x": "code:interact"}, "features.user.x: code:interact"),
        ("features.templates", ["trap:C(k=3)"], "features.templates: trap:C"),
        ("features.templates", [{"trap:C": {"k": 3}}], "features.templates: trap:C"),
        ("metric", {"name": "trap:C"}, "metric: trap:C"),
        ("data.reader", {"name": "trap:C"}, "data.reader: trap:C"),
        ("data.reader", {"name": "joined", "of": "trap:C"}, "data.reader: trap:C"),
        ("data.reader", {"name": "merged", "of": ["moses", "{name: 'trap : C'}"]}, "data.reader: trap : C"),
        ("learner", {"name": "trap:C"}, "learner: trap:C"),
        ("training.select", {"learner": {"name": "trap:C"}}, "learner: trap:C"),
        ("decode.gains", "trap:f", "decode.gains: trap:f"),
    ],
)
def test_code_that_a_model_names_is_refused(trap: Path, rerank: Command, key: str, value: Any, said: str) -> None:
    model = saved(trap, {key: value})
    with pytest.raises(ModelError, match=r"names code by import path .* allow it with --trust, in Python with trust="):
        library.load(model)
    with pytest.raises(ModelError):
        library.load(model, trust=["tra", "trap.more"])
    small_texts.write_lines(trap / "lists", ["0 ||| a b ||| LM0= -1 ||| -1"])
    for words in (
        ["rank", model, "lists"], ["serve", model, "--port", 0],
        ["explain", model, "lists", "--list", 0],
    ):  # fmt: skip
        refused(rerank(*words), f"{model}: names code by import path ({said})")
    for words in (["inspect", model], ["inspect", model, "--provenance"], ["export", model]):
        assert rerank(*words).code == 0
    assert not (trap / "sprung").exists()


def test_what_a_model_was_tuned_with_is_refused(trap: Path) -> None:
    about = {"decodings": {"mbr": {**DECODING, "gains": "trap:f"}}, "decode": "mbr"}
    with pytest.raises(ModelError, match=r"decode\.gains: trap:f"):
        library.load(saved(trap, {}, about))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("runs", [{"name": "a", "set": {"learner.name": "trap:C"}}]),
        ("grid", {"learner.name": ["trap:C"]}),
        ("engine", {"name": "dask", "address": "tcp://127.0.0.1:1"}),
    ],
)
def test_a_model_is_of_a_single_run(trap: Path, key: str, value: Any) -> None:
    with pytest.raises(ModelError, match=f"its settings have {key}; expected those of a single run"):
        library.load(saved(trap, {key: value}), trust=True)


def test_code_that_is_trusted_is_called(trap: Path, rerank: Command) -> None:
    model = saved(trap, {"features.user": {"x": "trap:f"}})
    small_texts.write_lines(trap / "lists", ["0 ||| a b ||| LM0= -1 ||| -1"])
    for trust in (True, "trap", ["other", "trap"]):
        assert library.load(model, trust=trust).best([{"text": "a", "columns": {"LM0": 1}}])["text"] == "a"
    assert (trap / "sprung").exists()
    assert rerank("rank", model, "lists", "--trust").out == "a b\n"


def leaves(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """All texts in nested settings, keys of mappings too, with their places."""
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        if isinstance(key, str):
            yield (*place, key), None
        if isinstance(inner, str):
            yield (*place, key), inner
        yield from leaves(inner, (*place, key))


def poisoned(settings: dict[str, Any], place: tuple[Any, ...], own: str | None) -> dict[str, Any]:
    """Settings with ``trap:C`` in place of a text or, if ``own`` is None, of a key."""
    found = deepcopy(settings)
    node = found
    for key in place[:-1]:
        node = node[key]
    if own is None:
        node["trap:C"] = node.pop(place[-1])
    else:
        node[place[-1]] = "{name: 'trap:C'}" if own.startswith("{") else "trap:C"
    return found


@pytest.mark.parametrize("kind", ["texts", "parses"])
def test_no_text_in_the_settings_gets_past(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each by turns is an import path: it is refused, or nothing that a model does imports it."""
    asked: list[str] = []

    plain_load = Registry._load

    def load(self: Registry[Any], name: str, place: Any) -> Any:
        if not isinstance(place, str) or place.startswith("rerank."):
            return plain_load(self, name, place)
        asked.append(place)
        raise RerankError("a trap")

    def spec(plain: Callable[..., Any]) -> Callable[..., Any]:
        return lambda self, name: (lambda *_: {}) if name == "plain" else plain(self, name)

    monkeypatch.setattr(Registry, "get", spec(Registry.get))
    monkeypatch.setattr(Registry, "_load", load)
    made = small_texts.recipe(tmp_path) if kind == "texts" else small.recipe(tmp_path)
    more = MORE if kind == "texts" else {**MORE, "features": {**MORE["features"], "templates": ["Rule", {"Heavy": {}}]}}
    settings = made.change({**more, "data.reader": READER}).model_dump(mode="json")
    weights = {name: Weights(np.zeros(16), 1.0) for name in ("last", "average")}
    model = Model(settings, {}, HashedTable.of(4, ("Dense",), {}), weights)
    outcomes: dict[bool, int] = {True: 0, False: 0}
    for place, own in leaves(settings):
        changed = poisoned(settings, place, own)
        try:
            require_trusted(parts_of(changed, {}), False, "")
        except RerankError as error:
            outcomes["by import path (" in str(error)] += 1
            continue
        scorer = Scorer(replace(model, settings=changed))
        for use in (
            lambda s: s.content, lambda s: s.reader, lambda s: gain_functions.get(s.recipe.decode.gains),
            lambda s: [make_learner(each.recipe.learner) for each in s.recipe.expand()],
        ):  # fmt: skip
            with suppress(RerankError):
                use(scorer)
        assert not asked, (place, own)
    assert min(outcomes.values()) > 8, outcomes


def test_a_directory_with_modules_is_not_looked_into(small_run: Path, tmp_path: Path) -> None:
    """Not even for a package that is not installed."""
    missing = next((name for name in ("gcsfs", "s3fs", "huggingface_hub") if find_spec(name) is None), None)
    if missing is None:
        pytest.skip("all packages for URLs are installed")
    (tmp_path / f"{missing}.py").write_text("open('sprung', 'w').close()")
    scheme = {"gcsfs": "gs", "s3fs": "s3", "huggingface_hub": "hf"}[missing]
    words = ["-P", "-m", "rerank", "rank", small_run / "model", f"{scheme}://bucket/lists", "--reader", "charniak"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with program(sys.executable, *words, cwd=tmp_path, env=environment, stderr=-1) as running:
        _, said = running.communicate()
    assert running.returncode == 2, said
    assert not (tmp_path / "sprung").exists()
