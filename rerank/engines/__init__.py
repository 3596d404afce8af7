"""Maps over tasks, and who carries them out: this process, worker processes, Dask."""
