"""Bad input for everything that reads files: samples of every format, mutations of them, and what may come of it.

Input i of a campaign is a function of (seed, i), so each can be tried again alone. ``python -m fuzz --help``, with
tests/ on the path, says how; ``make fuzz`` runs a campaign, ``test_fuzz.py`` a short one.
"""
