"""The spool of an extraction: who finds what is left in it, and when it goes."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import small

from rerank.base.errors import DataError, RunError
from rerank.engines.settings import LocalEngine
from rerank.extraction import blocks, extraction
from rerank.extraction.cache import CorpusCache
from rerank.storage.checkpoints import KeptResult
from rerank.storage.files import remove_leftovers
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
        KeptResult(spool / "000000", "key").save({}, {})
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


def test_one_that_is_half_removed_is_known_as_a_leftover(tmp_path, monkeypatch):
    """A process that is killed while it removes files has perhaps removed what says whose they are."""
    stop(tmp_path / "entry", KeyboardInterrupt())
    with monkeypatch.context() as changed:
        changed.setattr(shutil, "rmtree", lambda place, **_: (place / "000000" / "checksums.json").unlink())
        drop_spool(tmp_path / "entry")
    assert not (tmp_path / ".entry.spool").exists()
    assert len(names(tmp_path)) == 1
    remove_leftovers(tmp_path)
    assert names(tmp_path) == []


def test_somebody_elses_directory_of_its_name_is_left_alone(tmp_path):
    (tmp_path / ".entry.spool").mkdir()
    for name in ("000000.json", "checksums.json"):
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


def test_what_is_left_says_that_the_work_is_long(small_data, tmp_path, monkeypatch):
    monkeypatch.setattr(blocks, "BLOCK_LISTS", 20)
    monkeypatch.setattr(extraction, "LONG", 3)
    recipe, store, engine = small.recipe(small_data), CorpusCache(tmp_path), Told()
    save = KeptResult.save

    def stop(self: KeptResult, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        save(self, header, arrays)
        if self.directory.name == "000002":
            raise KeyboardInterrupt

    monkeypatch.setattr(KeptResult, "save", stop)
    with pytest.raises(KeyboardInterrupt):
        store.training(recipe, engine)
    assert not engine.told
    assert [name[-6:] for name in names(tmp_path)] == [".spool"]
    monkeypatch.setattr(KeptResult, "save", save)
    store.training(recipe, engine)
    assert engine.told


def test_blocks_of_files_that_have_changed_are_not_used(small_data, tmp_path, monkeypatch):
    monkeypatch.setattr(blocks, "BLOCK_LISTS", 20)
    data = tmp_path / "data"
    shutil.copytree(small_data, data)
    recipe, save = small.recipe(data), KeptResult.save
    monkeypatch.setattr(
        KeptResult, "save", lambda self, *what: (save(self, *what), fail(self.directory.name == "000003"))
    )
    with pytest.raises(KeyboardInterrupt):
        CorpusCache(tmp_path / "stopped").training(recipe)
    monkeypatch.setattr(KeptResult, "save", save)
    lists, golds = small.lists_of(data / "train.nbest.gz"), small.golds_of(data / "train.gold.gz")
    small.write_lists(data / "train.nbest.gz", lists[1:])
    small.write_golds(data / "train.gold.gz", golds[1:])
    found = [CorpusCache(tmp_path / name).training(recipe)[0] for name in ("stopped", "fresh")]
    assert found[0].ids == found[1].ids
    assert found[0].corpus.list_count == len(lists) - 1
    files = [small.files_of(tmp_path / name) for name in ("stopped", "fresh")]
    assert {name: own for name, own in files[0].items() if name.count("/") > 1} == {
        name: own for name, own in files[1].items() if name.count("/") > 1
    }


def fail(now: bool) -> None:
    """Interrupt the extraction."""
    if now:
        raise KeyboardInterrupt
