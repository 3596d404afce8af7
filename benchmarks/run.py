"""All benchmarks, one process each, on the lists at --root (`make bench`)."""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent


def main() -> None:
    """Run every script beside this one on the lists at --root."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", default="../shared/data/parse/gum")
    root = parser.parse_args().root
    for script in sorted(HERE.glob("*.py")):
        if script.name != Path(__file__).name:
            print(f"== {script.name}", flush=True)
            subprocess.run([sys.executable, str(script), "--root", root], check=False)


if __name__ == "__main__":
    main()
