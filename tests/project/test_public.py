"""``import rerank``: exactly the public names, light to load, typed."""

import subprocess
import sys
from pathlib import Path

import rerank

LIGHT = """
import sys
import rerank
assert not {"numba", "scipy", "numpy", "pydantic"} & set(sys.modules), sorted(sys.modules)
try:
    rerank.lode
except AttributeError as error:
    assert "lode" in str(error)
else:
    raise AssertionError
"""


def test_importing_loads_nothing_heavy() -> None:
    subprocess.run([sys.executable, "-c", LIGHT], check=True)


def test_every_public_name_is_there_and_described() -> None:
    assert sorted(rerank.__all__) == dir(rerank)
    for name in rerank.__all__:
        value = getattr(rerank, name)
        assert name == "__version__" or value.__doc__, name
    assert Path(rerank.__file__).with_name("py.typed").exists()
