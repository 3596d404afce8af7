"""The spool of an extraction: who finds what is left in it, and when it goes."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest
import small

from rerank.base.errors import DataError, RunError
from rerank.engines.settings import LocalEngine
from rerank.extraction import blocks, extraction
from rerank.extraction.extraction import CorpusCache
from rerank.recipes.recipe import Recipe
from rerank.storage.kept_spool import drop_spool, kept_spool


class Told(LocalEngine):
    """An engine that notes whether it was told that the work is long."""

    told = False

    def expect_long(self) -> None:
        self.told = True


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def stop(entry: Path, error: BaseException) -> None:
    """Leave a block in the spool, and an error."""
    with pytest.raises(type(error)), kept_spool(entry) as spool:  # noqa: PT012
        (spool / "000000").mkdir()
        (spool / "000000.json").write_text("{}")
        raise error


def test_it_goes_when_all_is_done(tmp_path):
    with kept_spool(tmp_path / "entry") as spool:
        assert spool.parent == tmp_path
        (spool / "000000").mkdir()
    assert names(tmp_path) == []


@pytest.mark.parametrize(("error", "kept"), [(DataError("bad"), False), (KeyboardInterrupt(), True)])
def test_an_interrupt_keeps_it_and_an_error_does_not(tmp_path, error, kept):
    stop(tmp_path / "entry", error)
    assert names(tmp_path) == ([".entry.spool"] if kept else [])
    with kept_spool(tmp_path / "entry") as spool:
        assert (spool / "000000").exists() == kept
    assert names(tmp_path) == []


def test_blocks_from_before_the_system_was_started_are_not_trusted(tmp_path, monkeypatch):
    stop(tmp_path / "entry", KeyboardInterrupt())
    monkeypatch.setattr(psutil, "boot_time", lambda: 12.0)
    with kept_spool(tmp_path / "entry") as spool:
        assert names(spool) == ["made"]


def test_another_at_work_on_the_same_has_one_of_its_own(tmp_path):
    with kept_spool(tmp_path / "entry") as first:
        with kept_spool(tmp_path / "entry") as second:
            assert first != second
            assert names(second) == []
        assert first.exists()
        assert not second.exists()
    assert names(tmp_path) == []


def test_what_is_left_beside_an_entry_goes(tmp_path):
    stop(tmp_path / "entry", KeyboardInterrupt())
    with kept_spool(tmp_path / "entry"):
        drop_spool(tmp_path / "entry")
        assert names(tmp_path) == [".entry.spool"]  # another is at work there
    stop(tmp_path / "entry", KeyboardInterrupt())
    drop_spool(tmp_path / "entry")
    drop_spool(tmp_path / "entry")
    assert names(tmp_path) == []


def test_somebody_elses_directory_of_its_name_is_left_alone(tmp_path):
    (tmp_path / ".entry.spool").mkdir()
    for name in ("000000.json", "made"):
        (tmp_path / ".entry.spool" / name).write_text("mine")
        before = small.files_of(tmp_path)
        with kept_spool(tmp_path / "entry") as spool:
            assert names(spool) == []
        drop_spool(tmp_path / "entry")
        assert small.files_of(tmp_path) == before


def test_where_it_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match=r"cannot write .*spool"):
        kept_spool(tmp_path / "file" / "entry").__enter__()


def test_only_what_is_missing_is_extracted(small_data, tmp_path, monkeypatch):
    monkeypatch.setattr(blocks, "BLOCK_LISTS", 20)
    recipe: Recipe = small.recipe(small_data)
    CorpusCache(tmp_path / "whole").training(recipe)
    done: list[int] = []

    def extract(job: blocks.BlockJob, block: blocks.Block) -> blocks.Summary:
        if len(done) == 3:
            raise KeyboardInterrupt
        found = true(job, block)
        done.append(block.number)
        return found

    true = blocks._extract
    monkeypatch.setattr(blocks, "_extract", extract)
    monkeypatch.setattr(extraction, "LONG", 3)
    engine = Told()
    with pytest.raises(KeyboardInterrupt):
        CorpusCache(tmp_path / "stopped").training(recipe, engine)
    assert done == [0, 1, 2]
    assert not engine.told
    assert [name[-6:] for name in names(tmp_path / "stopped")] == [".spool"]
    monkeypatch.setattr(blocks, "_extract", lambda job, block: (done.append(block.number), true(job, block))[1])
    CorpusCache(tmp_path / "stopped").training(recipe, engine)
    assert engine.told
    assert done == list(range(8))
    found, expected = (small.files_of(tmp_path / name) for name in ("stopped", "whole"))
    headers = {name for name in expected if name.count("/") == 1}  # split.json says how long it took
    assert {name.split("/")[1] for name in headers} == {"split.json", "checksums.json"}
    assert found.keys() == expected.keys()
    assert all(found[name] == expected[name] for name in expected.keys() - headers)
    again, whole = (extraction.CorpusCache(tmp_path / name).training(recipe)[0] for name in ("stopped", "whole"))
    assert again.ids == whole.ids
    assert small.without_clock(again.about) == small.without_clock(whole.about)
