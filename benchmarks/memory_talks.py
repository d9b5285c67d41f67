"""Hold short talks, each by a user of its own, and tell what memory keeps, corrects and answers.

`python -m benchmarks.memory_talks FILE [--beside FILE]... [--show]` reads talks as
`memory_talks.jsonl` has them (on which memory was built), `memory_held.jsonl` and
`memory_second.jsonl` (written after it, and looked at since): what is stated in `turns`, in another
conversation `ask`, of which the answer must hold one of `expect`, and outdated values of `forbid`
at most beside it. Of `junk` no note may be left; of `two` like things the second must not take the
place of the first; to a question of yes or no the statement will do, but no wrong verdict. Of a
`contradiction` the answer must hold `every` value.
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from app.session import Session
from core.auth import AuthContext
from core.settings import load_settings
from core.types import StopReason

DOCUMENT = "# Heating\nThe boiler room is on the ground floor. The boiler is checked in October.\n"
COLLECTION = "beside"  # a collection that knows nothing of what is stated


def main() -> None:
    """Hold the talks of a file and print what went right, by kind and language."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--show", action="store_true", help="print what went wrong")
    parser.add_argument("--beside", type=Path, nargs="*", default=[], help="documents beside notes")
    given = parser.parse_args()
    counts: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    with tempfile.TemporaryDirectory() as folder:
        settings = load_settings({"data": Path(folder) / "data"})[0]
        with Session(settings, create=True, needs_embedder=True) as session:
            page = Path(folder) / "heating.md"
            page.write_text(DOCUMENT, encoding="utf-8")
            session.ingest(
                session.intake.open_collection("default", COLLECTION, None), [page, *given.beside]
            )
            rows = map(json.loads, given.file.read_text(encoding="utf-8").splitlines())
            for place, row in enumerate(rows):
                outcome, answer = hold(session, row, f"user{place}")
                counts[row["kind"], row["language"]][outcome] += 1
                if given.show and outcome != "right":
                    print(row["id"], outcome, *row["turns"], row.get("ask", ""), answer, sep=" | ")
    for (kind, language), found in sorted(counts.items()):
        print(f"{kind:11} {language} {found['right']}/{found.total()}  {dict(found)}")
    for kind in sorted({one for one, _ in counts}):
        found = sum((own for (one, _), own in counts.items() if one == kind), Counter())
        print(f"{kind:11} all {found['right']}/{found.total()}  {dict(found)}")


def hold(session: Session, row: dict[str, Any], user: str) -> tuple[str, str]:
    """Return how a talk went, "right" or what else, and the answer to its question."""
    auth = AuthContext(tenant="default", user=user)
    first = session.runs.create_conversation("default", user, COLLECTION).id
    for turn in row["turns"]:
        session.ask(turn, auth, "", conversation=first, clarify=True)
    if "ask" not in row:
        kept = session.notes.list_notes(auth)
        return ("kept" if kept else "right"), "; ".join(one.content for one in kept)
    second = session.runs.create_conversation("default", user, COLLECTION).id
    run = session.ask(row["ask"], auth, "", conversation=second, clarify=True)
    result, answer = run.result, str(run.result["answer"])
    refused = result["refused"] or result["stop_reason"] != StopReason.enough_evidence
    if row["kind"] == "absent":
        return ("right" if refused else "answered"), answer
    near = any(says(line, row["expect"]) for line in answer.splitlines())
    if row["kind"] == "yesno":
        verdicts = {claim["verdict"] for claim in result["claims"]}
        if not verdicts <= {"", *row["expect"]}:
            return "wrong verdict", answer
        return ("refused" if refused else "right"), answer
    if refused:
        return ("near" if near else "refused"), answer
    if not all(says(answer, [one]) for one in row.get("every", [])):
        return "one of several", answer
    outdated = [one for one in answer.splitlines() if says(one, row.get("forbid", []))]
    wrong = not near or any(not says(one, row["expect"]) for one in outdated)
    return ("wrong" if wrong else "right"), answer


def says(line: str, values: list[str]) -> bool:
    """Tell whether a line holds one of some values, whatever its capitals."""
    return any(re.search(re.escape(str(one)), line, re.IGNORECASE) for one in values)


if __name__ == "__main__":
    main()
