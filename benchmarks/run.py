"""All benchmarks, one process each, on the lists at --root (`make bench`)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent


def main() -> None:
    """Run every script beside this one; arguments are passed on to each."""
    for script in sorted(HERE.glob("*.py")):
        if script.name != Path(__file__).name:
            print(f"== {script.name}", flush=True)
            subprocess.run([sys.executable, str(script), *sys.argv[1:]], check=False)


if __name__ == "__main__":
    main()
