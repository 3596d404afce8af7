"""The learners, a file for each paper, and what those of a family share."""
