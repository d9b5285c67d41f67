"""Run the state machine of a collection for long: python -m benchmarks.states --examples 200.

Every example is a random sequence of up to --steps changes, ingests, deaths, restarts, rebuilds and
queries; after each step all indexes are compared with a dict. Ends with 1 when one differs, with
the steps that lead there.
"""

from __future__ import annotations

import argparse
import time

from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from benchmarks.state_machine import Library

PART = 5  # examples between two looks at the clock


class Counting(Library):
    """Count what was really run."""

    examples = 0
    steps = 0

    def __init__(self) -> None:
        """Count one more example."""
        super().__init__()
        Counting.examples += 1

    def check_invariants(self, *arguments: object, **named: object) -> None:
        """Count one more step."""
        Counting.steps += 1
        super().check_invariants(*arguments, **named)  # type: ignore[arg-type]


def main() -> None:
    """Run the examples and say how many there were."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--examples", type=int, default=200)
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--minutes", type=float, default=600, help="begin no examples after")
    parser.add_argument("--shrink", action="store_true", help="shorten what fails (minutes)")
    arguments = parser.parse_args()
    began = time.monotonic()
    while Counting.examples < arguments.examples:
        if time.monotonic() - began > 60 * arguments.minutes:
            break
        run_state_machine_as_test(
            Counting,
            settings=settings(
                max_examples=min(PART, arguments.examples - Counting.examples),
                stateful_step_count=arguments.steps,
                deadline=None,
                database=None,
                print_blob=True,
                phases=[Phase.generate, Phase.shrink] if arguments.shrink else [Phase.generate],
                suppress_health_check=list(HealthCheck),
            ),
        )
    spent = time.monotonic() - began
    print(f"{Counting.examples} examples, {Counting.steps} steps, {spent:.0f} s: no difference")


if __name__ == "__main__":
    main()
