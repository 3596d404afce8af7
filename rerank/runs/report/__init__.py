"""What a run leaves for people: tables for the terminal and the documentation, figures, and one HTML page."""
