"""Maps over tasks, and who works: this process, processes, Dask, Ray."""
