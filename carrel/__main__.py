"""The command `carrel`, which says so when a package of another owner hides one of ours."""

from __future__ import annotations

import sys

from carrel.rooms import check_rooms, explained

OPERATOR = 4  # as errors for whoever runs the machine


def main() -> None:
    """Run the command line."""
    try:
        check_rooms()
        from core.encryption import use_cipher
        from core.errors import CarrelError

        try:
            use_cipher()
        except CarrelError as error:
            print(f"carrel: {error}", file=sys.stderr)  # noqa: T201 - nothing else is there yet
            sys.exit(OPERATOR)
        from cli.app import main as run
    except ImportError as error:
        print(f"carrel: {explained(error)}", file=sys.stderr)  # noqa: T201 - what prints may be hidden
        sys.exit(OPERATOR)
    run()


if __name__ == "__main__":
    main()
