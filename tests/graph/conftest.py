"""The sample corpora, ingested once, and the graph run on them with parts of the test's own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from commands import copied, made_once
from ingesting import EXAMPLES, ingest_corpora

from app.session import Session
from core.auth import AuthContext
from core.settings import load_settings
from graph.build import build_graph
from graph.context import Context

LIBRARY = EXAMPLES / "library"
CORPORA = (
    # paths, collection, profile, tenant, roles
    ([EXAMPLES / "xpay"], "xpay", "xpay", "default", ""),
    ([EXAMPLES / "library"], "library", "library", "default", ""),
    ([EXAMPLES / "other_tenant"], "xpay", "xpay", "ypay", ""),
    ([LIBRARY / "guide.md", LIBRARY / "guide.zh.md"], "closed", None, "default", "secret"),
)


@pytest.fixture(scope="session")
def examples(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """Open a data directory with both corpora, another tenant's tickets and a closed collection."""
    made = made_once(
        tmp_path_factory.getbasetemp(), "examples", lambda data: ingest_corpora(data, CORPORA)
    )
    data = copied(made, tmp_path_factory.mktemp("graph") / "examples")
    # Tests put models of their own in place: what one has said or found is not for the next.
    forgetful = {"cache_rewrite_hours": 0, "cache_result_minutes": 0}
    settings, _ = load_settings({"data": data, "reasoner": "rules", **forgetful})
    with Session(settings) as session:
        yield session


@pytest.fixture
def run(examples: Session) -> Callable[..., dict[str, Any]]:
    """Run the graph once and return its whole state.

    `budget` changes limits of the settings' budget; `reasoner` may replace the rules: it is given
    them and returns the reasoner to use.
    """

    def once(
        question: str,
        collection: str = "xpay",
        *,
        budget: dict[str, float] | None = None,
        reasoner: Callable[[Any], Any] | None = None,
        clock: Callable[[], float] | None = None,
        tenant: str = "default",
    ) -> dict[str, Any]:
        made = examples.context(AuthContext(tenant=tenant), collection)
        limits = made.settings.run_budget().model_copy(update=budget or {})
        values: dict[str, Any] = {"clock": clock} if clock else {}
        context = Context(
            made.auth,
            made.tools,
            reasoner(made.reasoner) if reasoner else made.reasoner,
            made.settings,
            limits=limits,
            **values,
        )
        state: dict[str, Any] = {}
        for data in build_graph().stream(
            {"question": question},
            context=context,
            config={"recursion_limit": 4 * limits.steps + 10},
            stream_mode="values",
        ):
            state = dict(data)
        return state

    return once
