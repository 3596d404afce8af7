"""Lists, side files and treebanks by URL: the same as on disk, in the library, in recipes and in commands."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import small
import small_texts
from commands import Command, refused
from served import Served, serving

import rerank as library
from rerank.models.model import Model
from rerank.recipes.settings import Settings
from rerank.runs import experiment

pytest.importorskip("aiohttp")


@pytest.fixture(scope="module")
def served(small_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    root = tmp_path_factory.mktemp("served")
    small_texts.write_task(root)
    (root / "parses").symlink_to(small_data)
    with serving(root) as found:
        yield found


def test_side_files_by_url(served: Served) -> None:
    def read(root: str) -> list[library.NBest]:
        sides = {"references": [f"{root}/test.ref.gz"], "sources": f"{root}/test.src.gz"}
        return list(library.read(f"{root}/test.nbest.gz", "moses", **sides))

    found, expected = read(served.url), read(str(served.root))
    assert [(each.source, each.references) for each in found] == [(each.source, each.references) for each in expected]
    assert found[0].source
    assert found[0].references


def test_tables_by_url(served: Served) -> None:
    pa, parquet = (pytest.importorskip(name) for name in ("pyarrow", "pyarrow.parquet"))
    pytest.importorskip("narwhals")
    parquet.write_table(pa.table({"prompt": [1, 2, 1], "text": ["a", "b", "c"]}), served.root / "table.parquet")
    found = library.read(f"{served.url}/table.parquet?download=true", group="prompt", text="text")
    assert [[each.text for each in nbest.candidates] for nbest in found] == [["a", "c"], ["b"]]


def test_a_recipe_by_url_gives_the_same_model(served: Served, small_data: Path, tmp_path: Path) -> None:
    changes: Settings = {"training": {"epochs": 1, "vote": False}}
    models = []
    for name, root in (("disk", str(small_data)), ("url", f"{served.url}/parses")):
        recipe = small.recipe(small_data, **changes).change({"data.root": root})
        experiment.run(recipe, tmp_path / name, tests=False)
        models.append(Model.load(tmp_path / name / "model"))
    assert (models[0].weights["average"].w == models[1].weights["average"].w).all()
    assert models[0].about["training_data"] == models[1].about["training_data"]
    lists = library.read(
        f"{served.url}/parses/train.nbest.gz", "charniak", references=f"{served.url}/parses/train.gold.gz?raw=true"
    )
    dev = library.read(small_data / "dev.nbest.gz", "charniak", references=small_data / "dev.gold.gz")
    fitted = library.fit(lists, dev, recipe=small.settings(small_data, **changes))
    assert (models[0].weights["average"].w == fitted.model.weights["average"].w).all()


def test_recipes_hold_no_passwords(served: Served, small_data: Path) -> None:
    root = served.url.replace("//", "//me:secret@")
    with pytest.raises(library.RerankError, match=r"found a name or password in .* ~/\.netrc") as error:
        small.recipe(small_data).change({"data.root": root})
    assert "secret" not in str(error.value)
    small.recipe(small_data).change({"data.root": "github://me:lists@main/a"})


def test_commands_take_urls(served: Served, small_run: Path, small_data: Path, rerank: Command) -> None:
    found = rerank("rank", small_run / "model", f"{served.url}/parses/test.nbest.gz")
    assert (found.code, found.out) == (0, rerank("rank", small_run / "model", small_data / "test.nbest.gz").out)
    golds = f"{served.url}/parses/test.gold.gz"
    found = rerank("evaluate", golds, golds)
    assert (found.code, found.out) == (
        0,
        rerank("evaluate", small_data / "test.gold.gz", small_data / "test.gold.gz").out,
    )
    missing = f"{served.url}/parses/no.nbest.gz"
    refused(rerank("rank", small_run / "model", missing), missing, "no such file there; check the URL")
    other = f"{served.url}/test.nbest.gz"
    refused(rerank("rank", small_run / "model", other), other, "this looks like moses")
