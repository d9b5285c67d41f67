"""Plant faults of known cause in runs and see at which cause each failure is laid.

A small world of bridges, their designers and repairs: every case passes as long as nothing is
planted, so the cause of each failure is known. `python -m benchmarks.attribution` prints how many
failures of each planted cause were laid at which; `--quick` takes two cases of each kind.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest import mock

import yaml

import nodes.verify
from app.session import Session
from core.auth import AuthContext
from core.language.sentences import sentence_spans
from core.profile import load_profile
from core.settings import Settings, load_settings
from core.types import Call, Claim, Draft, Evidence, Finding, Grade, Plan, SubQuestion
from evals.answers import contains_answer
from evals.attribution import SEEN, STAGES, attribute
from evals.gold import GoldCase, GoldFile, read_gold
from evals.trajectories import GoldPlace, Planted, ask_case, succeeded
from graph.context import Context
from graph.intercept import intercepted
from ingest.pipeline import Pipeline

CAUSES = (*STAGES, *(name for name in SEEN if name not in STAGES))
TENANT, COLLECTION, STAFF = "planted", "bridges", "staff"
GUEST = "guest was "
NOT_THERE = "it is not in the quote"
# What checks a claim within the node, with what it says of one that does not stand.
VERIFIERS = {"settle": (None, NOT_THERE), "unsupported_reason": NOT_THERE}
EVERY = 12  # cases of each kind
BRIDGES = (
    ("Alder Bridge", "Mira Holt", "Tarnwick", 1871, 212, "iron"),
    ("Birch Bridge", "Owen Pell", "Quarrow", 1884, 148, "granite"),
    ("Cedar Bridge", "Ines Varga", "Lothmere", 1893, 305, "steel"),
    ("Dogwood Bridge", "Tomas Reyl", "Skelby", 1902, 97, "timber"),
    ("Elder Bridge", "Greta Lund", "Marrick", 1911, 431, "concrete"),
    ("Fennel Bridge", "Paul Oster", "Brindale", 1926, 268, "copper"),
    ("Gorse Bridge", "Hana Sato", "Wexcombe", 1938, 176, "slate"),
    ("Hazel Bridge", "Luis Prado", "Ravensby", 1949, 389, "brick"),
    ("Ivy Bridge", "Nora Finch", "Coldharrow", 1957, 127, "marble"),
    ("Juniper Bridge", "Emil Krantz", "Dunmoor", 1964, 254, "basalt"),
    ("Laurel Bridge", "Aisha Noor", "Pendrick", 1976, 343, "limestone"),
    ("Maple Bridge", "Viktor Hale", "Stowmarsh", 1989, 198, "aluminium"),
)
PROFILE = {
    "name": "bridges",
    "tools": [
        {
            "name": "search_bridges",
            "base": "search",
            "purpose": "Bridges; when a bridge was opened, its length, material and designer.",
            "not_for": ["where a person was born"],
            "examples": ["When was the bridge opened?", "How long is the bridge?"],
            "sources": ["bridges/*"],
        },
        {
            "name": "search_people",
            "base": "search",
            "purpose": "People; where a person was born and what they studied.",
            "not_for": ["length and opening of bridges"],
            "examples": ["In which town was this person born?"],
            "sources": ["people/*"],
        },
        {
            "name": "search_repairs",
            "base": "search",
            "purpose": "Repairs; painting, rust, closed lanes and their costs.",
            "not_for": ["when a bridge was opened", "where a person was born"],
            "examples": ["Which lane was closed for painting?"],
            "sources": ["repairs/*"],
        },
    ],
}


def write_world(folder: Path, without: str = "") -> Path:
    """Write the documents and the profile; leave out the sources that begin with `without`."""
    for place, (name, person, town, year, length, material) in enumerate(BRIDGES):
        guest = BRIDGES[place - 5][1]
        slug = name.split()[0].lower()
        texts = {
            f"bridges/{slug}.md": f"# {name}\n\nThe {name} was opened in {year}. The {name} is"
            f" {length} metres long. The {name} is made of {material}."
            f" The {name} was designed by {person}. Its first guest was {guest}.\n",
            f"people/{person.replace(' ', '_').lower()}.md": f"# {person}\n\n{person} was born in"
            f" {town}. {person} studied engineering and painted in watercolour.\n",
            f"repairs/{slug}.md": f"# Repairs of the {name}\n\nA lane of the {name} was closed for"
            " painting. Rust was found on a railing and brushed away.\n",
        }
        for source, text in texts.items():
            if not (without and source.startswith(without)):
                path = folder / "world" / source
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
    (folder / "bridges.yaml").write_text(yaml.safe_dump(PROFILE), encoding="utf-8")
    return folder / "world"


def fact(place: int) -> dict[str, Any]:
    """Return a case about one passage."""
    name, _, _, year, *_ = BRIDGES[place]
    return {
        "id": f"fact-{place}",
        "question": f"When was the {name} opened?",
        "tools": ["search_bridges"],
        "evidence": {
            "document": f"bridges/{name.split()[0].lower()}.md",
            "quote": f"opened in {year}",
        },
        "answer": year,
    }


def follow_up(place: int) -> dict[str, Any]:
    """Return a case that needs the question before it."""
    name, *_ = BRIDGES[place]
    before = BRIDGES[place - 1]
    return {
        **fact(place),
        "id": f"follow-{place}",
        "history": [
            {
                "question": f"When was the {before[0]} opened?",
                "answer": f"The {before[0]} was opened in {before[3]}.",
            }
        ],
        "question": f"And the {name}?",
        "standalone": f"When was the {name} opened?",
    }


def two_parts(place: int) -> dict[str, Any]:
    """Return a case of two questions side by side."""
    name, _, _, year, length, _ = BRIDGES[place]
    document = f"bridges/{name.split()[0].lower()}.md"
    texts = [f"When was the {name} opened", f"how long is the {name}"]
    return {
        "id": f"parts-{place}",
        "question": f"{texts[0]}, and {texts[1]}?",
        "tools": ["search_bridges"],
        "evidence": [
            {"document": document, "quote": f"opened in {year}"},
            {"document": document, "quote": f"{length} metres long"},
        ],
        "answers": [year, f"{length} metres"],
        "plan": [{"id": f"q{n}", "text": text} for n, text in enumerate(texts, start=1)],
    }


def chain(place: int) -> dict[str, Any]:
    """Return a case whose second question waits for a value."""
    name, person, town, *_ = BRIDGES[place]
    return {
        "id": f"chain-{place}",
        "question": f"In which town was the designer of the {name} born?",
        "tools": ["search_bridges", "search_people"],
        "evidence": [
            {"document": f"bridges/{name.split()[0].lower()}.md", "quote": f"designed by {person}"},
            {
                "document": f"people/{person.replace(' ', '_').lower()}.md",
                "quote": f"born in {town}",
            },
        ],
        "answer": town,
        "plan": [
            {"id": "q1", "text": f"Who is the designer of the {name}?", "slot": "designer"}
            | {"wants": "person"},
            {"id": "q2", "text": "In which town was {designer} born?", "deps": ["q1"]}
            | {"wants": "place"},
        ],
        "slots": {"designer": person},
    }


def gold_file(folder: Path, make: Callable[[int], dict[str, Any]], count: int) -> GoldFile:
    """Write and read the first cases of a kind."""
    path = folder / f"{make.__name__}.yaml"
    cases = [make(place) for place in range(count)]
    path.write_text(yaml.safe_dump({"cases": cases}, allow_unicode=True), encoding="utf-8")
    return read_gold(path)


@contextmanager
def world(
    folder: Path, settings: Settings, *, without: str = "", acl: str = ""
) -> Iterator[Session]:
    """Ingest a world into a directory of its own and open it; `acl` is who may read it."""
    documents = write_world(folder, without)
    open_to_all = folder / "open"
    open_to_all.mkdir()
    (open_to_all / "note.md").write_text("# Note\n\nThe archive is open on Tuesdays.\n")
    opened = settings.model_copy(update={"data": folder / "data"})
    with Session(opened, create=True, needs_embedder=True) as session:
        profile = load_profile(str(folder / "bridges.yaml"))
        target = session.intake.open_collection(TENANT, COLLECTION, profile)
        assert session.embedder is not None
        for path, readers in ((documents, acl), (open_to_all, "")):
            Pipeline(
                session.store,
                session.embedder,
                session.index(target).settings,
                target,
                acl=frozenset({readers} if readers else ()),
                second=session.second,
            ).run([path])
        yield session


def other(text: str) -> str:
    """Return a text about another bridge than it was."""
    for place, (name, *_) in enumerate(BRIDGES):
        if name in text:
            return text.replace(name, BRIDGES[place - 5][0])
    return text


def changed(plan: Plan, change: Callable[[SubQuestion], dict[str, Any]]) -> Plan:
    """Return a plan whose questions are others."""
    questions = [one.model_copy(update=change(one)) for one in plan.questions]
    return plan.model_copy(update={"questions": questions})


def misplanned(question: SubQuestion) -> dict[str, Any]:
    """Return a question about another bridge."""
    calls = [Call.model_validate_json(other(one.model_dump_json())) for one in question.calls]
    return {"text": other(question.text), "query": other(question.query), "calls": calls}


def mistooled(question: SubQuestion) -> dict[str, Any]:
    """Return a question that is searched for among the repairs."""
    asked = {"query": question.query, "language": question.language}
    return {"calls": [Call(tool="search_repairs", arguments=asked)]}


def lose(case: GoldCase, found: Any) -> Any:
    """Return a result without the gold passages."""
    quotes = [one.quote for group in case.evidence for one in group]
    kept = [one for one in found.evidence if not contains_answer(quotes, [one.text])]
    return replace(found, evidence=kept)


def worst_first(run: Callable[[dict[str, Any]], Any], arguments: dict[str, Any]) -> Any:
    """Return the worst results of a call instead of its best."""
    found = run({**arguments, "limit": 100})
    most = arguments.get("limit") or 3
    return replace(found, evidence=found.evidence[::-1][:most])


def misextracted(evidence: list[Evidence]) -> list[Finding]:
    """Return the first guests of bridges."""
    return [
        Finding(value=guest, evidence_id=item.evidence_id, start=at, end=at + len(guest))
        for item in evidence
        for _, guest, *_ in BRIDGES
        if (at := item.text.find(GUEST + guest) + len(GUEST)) >= len(GUEST)
    ]


def misanswer(case: GoldCase, draft: Draft, evidence: list[Evidence]) -> Draft:
    """Answer with the sentence of the evidence that says nothing of what was asked."""
    claims: list[Claim] = []
    for item in evidence:
        for start, end in sentence_spans(item.text):
            text = item.text[start:end]
            if not any(contains_answer(group, [text]) for group in case.needed):
                ids = [claim.question_id for claim in draft.claims] or [""]
                claims = [Claim(text=text, citations=[item.cited(start, end)], question_id=ids[0])]
    return Draft(claims=claims)


ALL = (fact, two_parts, chain)


@dataclass(frozen=True)
class Fault:
    """A planted fault: of which kinds of cases, and how it changes a run or the world.

    `change` gets what makes the right decision, the case, the context and the verb's arguments.
    """

    cause: str
    kinds: tuple[Callable[[int], dict[str, Any]], ...] = ALL
    verb: str = ""
    change: Callable[..., Any] = lambda make, *_: make()
    without: str = ""
    acl: str = ""
    unmade: str = ""  # a verb that decides nothing, since it would mend the fault

    def planted(self, case: GoldCase) -> Planted:
        """Return what changes the context of a case's runs."""

        def change(context: Context) -> Context:
            def intercept(name: str, given: tuple[Any, ...], make: Callable[[], Any]) -> Any:  # noqa: ANN401
                if name == self.unmade:
                    return None
                return self.change(make, case, context, *given) if name == self.verb else make()

            return intercepted(context, intercept)

        return change


FAULTS = (
    Fault(
        "understanding",
        ALL,
        "understand",
        lambda make, case, context, text, turns: context.reasoner.understand(other(text), turns),
    ),
    Fault("planning", ALL, "plan", lambda make, *_: changed(make(), misplanned)),
    Fault(
        "tool_choice", ALL, "plan", lambda make, *_: changed(make(), mistooled), unmade="rewrite"
    ),
    Fault("retrieval", ALL, "run", lambda make, case, *_: lose(case, make())),
    Fault(
        "ranking",
        ALL,
        "run",
        lambda make, case, context, name, arguments: worst_first(
            lambda given: context.tools.run(name, given, context.auth, float("inf")), arguments
        ),
    ),
    Fault(
        "grading",
        ALL,
        "grade",
        lambda make, *_: [
            Grade(evidence_id=one.evidence_id, grade=min(1, one.grade), reason="planted")
            for one in make()
        ],
    ),
    Fault(
        "extraction",
        (chain,),
        "extract",
        lambda make, case, context, question, evidence: misextracted(evidence),
    ),
    Fault(
        "answering",
        ALL,
        "answer",
        lambda make, case, context, query, plan, evidence: misanswer(case, make(), evidence),
    ),
    Fault("verification"),
    Fault("policy", acl=STAFF),
    Fault("not_in_the_documents", (fact, two_parts), without="bridges/"),
    Fault("not_in_the_documents", (chain,), without="people/"),
)


def laid_at(fault: Fault, count: int, settings: Settings) -> Counter[str]:
    """Return at which causes the failures of a fault are laid in a world of its own."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with world(folder, settings, without=fault.without, acl=fault.acl) as session:
            return laid_in(session, folder, fault, count)


def laid_in(session: Session, folder: Path, fault: Fault, count: int) -> Counter[str]:
    """Return at which causes the failures of a fault are laid; "passed" counts what did not fail.

    It is planted in the first `count` cases of each of its kinds.
    """
    laid: Counter[str] = Counter()
    name = next(name for name in VERIFIERS if hasattr(nodes.verify, name))
    broken = mock.patch(f"nodes.verify.{name}", return_value=VERIFIERS[name])
    auth = AuthContext(tenant=TENANT, user="reader")
    with broken if fault.cause == "verification" else nullcontext():
        for make in fault.kinds:
            gold = gold_file(folder, make, count)
            for case in gold.cases:
                place = GoldPlace(session, gold, COLLECTION, auth, planted=fault.planted(case))
                one = ask_case(place, case)
                laid["passed" if succeeded(one) else attribute(place, one).cause] += 1
    return laid


def main() -> None:
    """Print how many failures of each planted cause were laid at which."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    settings = load_settings({"reasoner": "rules"})[0]
    matrix: dict[str, Counter[str]] = {cause: Counter() for cause in CAUSES}
    for fault in FAULTS:
        matrix[fault.cause] += laid_at(fault, 2 if quick else EVERY, settings)
    for cause, laid in matrix.items():
        print(f"{cause}: {dict(laid)}")
    right = sum(laid[cause] for cause, laid in matrix.items())
    failed = sum(laid.total() - laid["passed"] for laid in matrix.values())
    print(f"right: {right} of {failed}")


if __name__ == "__main__":
    main()
