"""The composition root: one data directory with all that answers from it."""
