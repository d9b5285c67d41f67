"""Check every route against the page of all routes with Schemathesis, as three callers.

python -m benchmarks.api DATASET [--examples 20]

A folder in the BEIR layout is served; the routes are called without a key, with a reader's and
with an admin's, by the phases "coverage" and "fuzzing". Left out is the check that valid requests
are accepted: a schema cannot say which collections exist.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.load import prepared, say
from benchmarks.load_server import served

CLI = "from schemathesis.cli import schemathesis; schemathesis()"
UNLIMITED = ["serve_ask_rate=0", "serve_rate=0", "serve_wrong_keys=0", "reasoner=rules"]
SERVER_ERROR = 'status="5'
CASES = re.compile(r"(\d+) generated(?:, (\d+) found (\d+) unique failures)?")


def check(url: str, key: str, examples: int) -> dict[str, Any]:
    """Return how many cases were sent as one caller and how many answers were not as described."""
    command = [
        *(sys.executable, "-c", CLI, "run", f"{url}/api/v1/openapi.json"),
        *(("-H", f"Authorization: Bearer {key}") if key else ()),
        *("--exclude-checks", "positive_data_acceptance", "--suppress-health-check", "all"),
        *("--generation-deterministic", "--request-timeout", "60"),
        *("--phases", "coverage,fuzzing", "--max-examples", str(examples)),
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    found = CASES.search(done.stdout)
    if done.returncode or found is None:
        say(done.stdout + done.stderr)
    cases, _, failures = found.groups() if found else (0, 0, None)
    return {"cases": int(cases), "failures": int(failures or 0), "ok": not done.returncode}


def main() -> None:
    """Check and print one JSON object.

    The exit code is 1 when an answer was wrong or a case could not be sent.
    """
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("dataset", type=Path)
    parser.add_argument("--examples", type=int, default=20)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        data, _ = prepared(given.dataset, Path(folder))
        with served(data, 1, UNLIMITED) as server:
            callers = {"anonymous": "", "user": server.keys[0], "admin": server.admin}
            report = {name: check(server.url, key, given.examples) for name, key in callers.items()}
            counted = server.metrics().items()
            errors = {name: count for name, count in counted if SERVER_ERROR in name}
    sys.stdout.write(json.dumps({**report, "server_errors": errors}, indent=1) + "\n")
    raise SystemExit(bool(errors) or not all(one["ok"] for one in report.values()))


if __name__ == "__main__":
    main()
