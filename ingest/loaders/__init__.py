"""One loader per file format; `registry.load` picks it."""
