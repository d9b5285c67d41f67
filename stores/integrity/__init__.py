"""Damage, loss and wear of a data directory: found, reported and repaired."""
