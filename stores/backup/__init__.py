"""One file with all that a data directory cannot rebuild, and how to restore it."""
