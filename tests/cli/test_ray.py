"""A recipe on Ray: the same model, byte for byte."""

from pathlib import Path

import pytest
import yaml
from small import settings, write_slices
from typer.testing import CliRunner

from rerank.cli.application import app


def test_a_ray_cluster_of_this_machine_trains_the_same_model(tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="rerank[ray] is not installed")
    write_slices(tmp_path)
    made = settings(tmp_path, training={"epochs": 2}, seeds=[1, 2])
    (tmp_path / "recipe.yaml").write_text(yaml.safe_dump(made))
    found = []
    for name, options in (("plain", []), ("ray", ["--engine", "ray", "--workers", "2"])):
        output = tmp_path / name / "run"
        result = CliRunner().invoke(
            app, ["run", "--until", "train", str(tmp_path / "recipe.yaml"), "-o", str(output), *options]
        )
        assert result.exit_code == 0, result.output
        found.append({path.name: path.read_bytes() for path in (output / "model").glob("*.npy")})
    assert len(found[0]) > 3
    assert found[0] == found[1]
