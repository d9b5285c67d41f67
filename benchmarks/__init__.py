"""Measured benchmarks; timed checks live here and never in tests."""
