"""One answer from a whole list: what candidates are worth measured against each other, and trees made of many."""
