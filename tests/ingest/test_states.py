"""A short form of the state machine; `python -m benchmarks.states` runs it for long."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

from benchmarks.state_machine import Library

TestLibrary = Library.TestCase
TestLibrary.settings = settings(
    max_examples=4,
    stateful_step_count=12,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
