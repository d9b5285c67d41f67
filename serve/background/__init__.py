"""Work beside requests: uploads, deletions, warming and self-checks."""
