"""Files of sentences whose tokens have labels."""
