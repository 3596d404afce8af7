"""Online learners over lists."""
