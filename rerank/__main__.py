"""``python -m rerank``: the command line."""

from rerank.cli import main

if __name__ == "__main__":
    main()
