"""Measure and examine: the health of a data directory, and later datasets, metrics and reports."""
