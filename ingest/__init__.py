"""From files to the catalogue: loaders by format, clean, split, and the journaled pipeline."""
