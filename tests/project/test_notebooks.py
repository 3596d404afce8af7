"""The notebooks of the documentation run, and end with what they promise."""

import json
from pathlib import Path
from typing import Any

import pytest
from pages import ROOT

NOTEBOOKS = ROOT / "docs" / "notebooks"


def cells(name: str) -> list[str]:
    """The code of a notebook, cell by cell."""
    held = json.loads((NOTEBOOKS / f"{name}.ipynb").read_text(encoding="utf-8"))
    return ["".join(cell["source"]) for cell in held["cells"] if cell["cell_type"] == "code"]


@pytest.mark.parametrize(
    ("name", "measure", "better"), [("parses", "f1", 1), ("transcripts", "wer", -1), ("best-of-n", "gain", 1)]
)
def test_notebooks_run(name: str, measure: str, better: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": name}
    for number, code in enumerate(cells(name), start=1):
        exec(compile(code, f"{name}.ipynb#{number}", "exec"), names)
    scores = {choice: report[measure] for choice, report in names["result"].scores.items()}
    assert better * (scores["choice"] - scores["base"]) > 0, scores


def test_all_notebooks_are_tried_and_kept_without_output() -> None:
    paths = list(NOTEBOOKS.glob("*.ipynb"))
    assert {path.stem for path in paths} == {"parses", "transcripts", "best-of-n"}
    for path in paths:
        held = json.loads(path.read_text(encoding="utf-8"))
        assert all(not cell["outputs"] for cell in held["cells"] if cell["cell_type"] == "code"), path
