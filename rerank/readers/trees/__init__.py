"""Lists of parse trees, and their gold trees."""
