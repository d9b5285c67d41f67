"""Run given plans over a small harbour town, with the values that a test lets be found."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fakes import FakeEmbedder, document, write

from core.auth import AuthContext
from core.settings import FLAT, Settings
from core.types import Evidence, Finding, Plan, SubQuestion
from graph.build import build_graph
from graph.context import Context
from reasoning.planning.compiler import compiled
from reasoning.planning.files import PlanFile
from reasoning.rules.reasoner import RulesReasoner
from retrievers.types import Index
from stores.store import Store
from tools.toolbox import Toolbox

AUTH = AuthContext(tenant="acme")
TEXTS = {
    "tides": "The journal Tides is published by the Harbour Society. The Boat Club prints it. "
    "The Rope Guild binds it. The Net Union sells it.",
    "society": "The general assembly of the Harbour Society elected Anna Berg its first president.",
    "union": "The general assembly of the Net Union elected Carl Dahl its first president.",
    "guild": "The Rope Guild meets on Mondays.",
    "club": "The Boat Club owns two boats.",
    "berg": "Anna Berg was born in the village of Odde.",
}
OTHERS = {
    "secret": "The general assembly of the Harbour Society elected Mallory of the other tenant."
}
SETTINGS = {"budget_seconds": 60}
TIDES = SubQuestion(
    id="q1",
    text="Who publishes the journal Tides?",
    query="journal Tides published",
    language="en",
    slot="house",
)
PRESIDENT = SubQuestion(
    id="q2",
    text="Whom did the general assembly of the {house} elect its first president?",
    query="general assembly of the {house} elected first president",
    language="en",
    deps=["q1"],
)
CHAIN = Plan(questions=[TIDES, PRESIDENT])


class Finds(RulesReasoner):
    """Decide by the rules, and find just the values that a test names, in their order."""

    values: Mapping[str, Sequence[str]] = {}

    def extract(self, question: SubQuestion, evidence: Sequence[Evidence]) -> list[Finding]:
        """Return the spans of the named values."""
        found = []
        for value in self.values.get(question.id, ()):
            for item in evidence:
                start = item.text.find(value)
                if start >= 0:
                    end = start + len(value)
                    ids = {"evidence_id": item.evidence_id, "value": value}
                    found.append(Finding(start=start, end=end, **ids))
                    break
        return found


def town(store: Store, embedder: FakeEmbedder) -> Toolbox:
    """Return the tools of the town; another tenant has a document as well."""
    for tenant, texts in (("other", OTHERS), ("acme", TEXTS)):
        collection = store.intake.open_collection(tenant, "main", None)
        rows = [document(collection, name, text, title=name) for name, text in texts.items()]
        write(store, collection, rows, embedder)
    return Toolbox(Index(store, collection, embedder, Settings(data=store.folder)))


def context_of(tools: Toolbox, plan: Plan, **values: object) -> Context:
    """Return the context in which a given plan is run; `finds` maps questions to values."""
    finds = values.pop("finds", {})
    merge: Any = values.pop("merge", "union")
    limits = {name: values.pop(name) for name in list(values) if name in FLAT}
    settings = Settings(**{**SETTINGS, **limits})
    reasoner = Finds(settings, tools.term_weights(), None)
    reasoner.values = finds  # type: ignore[assignment] # of the test
    given = PlanFile(plan=plan, operations=compiled(plan, settings, merge))
    clock: Callable[[], float] = time.monotonic
    return Context(AUTH, tools, reasoner, settings, clock=clock, given=given)


def run_plan(tools: Toolbox, plan: Plan, **values: object) -> dict[str, Any]:
    """Run a plan to its end and return the whole state."""
    return run_in(context_of(tools, plan, **values))


def run_in(context: Context) -> dict[str, Any]:
    """Run the plan of a context to its end and return the whole state."""
    state: dict[str, Any] = {}
    for data in build_graph().stream(
        {"question": "Who was the first president of the house that publishes Tides?"},
        context=context,
        config={"recursion_limit": 4 * context.budget.steps + 10},
        stream_mode="values",
    ):
        state = dict(data)
    return state
