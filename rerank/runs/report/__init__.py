"""The readable results of a run: tables for the terminal and the documentation, figures, and one HTML page."""
