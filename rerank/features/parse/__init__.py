"""Templates over parse trees (Collins 2000; Charniak & Johnson 2005)."""
