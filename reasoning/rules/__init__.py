"""The reasoner that needs no language model: deterministic rules over words and vectors."""
