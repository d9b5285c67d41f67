"""The command `carrel`, which says so when a package of another owner hides one of ours."""

from __future__ import annotations

import sys
from importlib import import_module

from carrel.rooms import check_rooms, explained

OPERATOR = 4  # as errors for whoever runs the machine


def main() -> None:
    """Run the command line."""
    try:
        check_rooms()
        import_module("stores.encryption").use_cipher()  # before any module of ours has sqlite3
        from cli.app import main as run
    except ImportError as error:
        print(f"carrel: {explained(error)}", file=sys.stderr)  # noqa: T201 - what prints may be hidden
        sys.exit(OPERATOR)
    except import_module("core.errors").CarrelError as error:
        print(f"carrel: {error}", file=sys.stderr)  # noqa: T201 - nothing else is there yet
        sys.exit(OPERATOR)
    run()


if __name__ == "__main__":
    main()
