"""All benchmarks, one process each, those on lists at --root (`make bench`)."""

import argparse
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
ON_LISTS = (
    "extraction.py",
    "faults.py",
    "recipe.py",
    "scaling.py",
    "training.py",
)  # the others make their own data, or have small ones


def main() -> None:
    """Run every script beside this one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", default="../shared/data/parse/gum")
    root = parser.parse_args().root
    for script in sorted(HERE.glob("*.py")):
        if script.name != Path(__file__).name:
            print(f"== {script.name}", flush=True)
            options = ["--root", root] if script.name in ON_LISTS else []
            subprocess.run([sys.executable, str(script), *options], check=False)


if __name__ == "__main__":
    main()
