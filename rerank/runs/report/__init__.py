"""What a run leaves for people to read: tables for the terminal and the documentation, figures, and one HTML page."""
