"""Dense twins of the learners, a module a family; ENTRIES of each says how its learners are tested."""
