"""Ask the data directory again and again whether it still finds what it holds.

Daily it asks as well how well opinions tell what their users like.
"""

from __future__ import annotations

import logging
import threading
import time
from contextlib import suppress
from typing import Any

from langchain_core.messages import HumanMessage

from app.session import Session
from core.auth import AuthContext
from core.budget import TimeLimit, limited_time
from core.errors import CarrelError
from core.language.detect import detect_language
from core.settings import Settings
from graph.build import build_graph
from graph.context import Context
from reasoning.rules.reasoner import RulesReasoner
from serve.opinions import evaluate_opinions
from serve.telemetry.logs import CHECKS
from tools.toolbox import Toolbox

DAY_S = 24 * 3600.0
FIRST_S = 10.0  # when the start is over: rot that left no trace is found soon, not at leisure
log = logging.getLogger(CHECKS)


class SelfChecks:
    """Check on a thread of its own, and repair derived data."""

    def __init__(self, session: Session, settings: Settings) -> None:
        """Check the session's store; nothing runs before `start`; other settings may follow."""
        self._session, self._maintenance = session, session.maintenance
        self.opinions: dict[str, dict[str, Any]] = {}  # by tenant, as `evaluate_opinions` has them
        self._evaluated = float("-inf")
        self.settings = settings
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin with what opening has put off, or soon with a first check of everything."""
        self._thread = threading.Thread(target=self._run, name="self-checks", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the thread, after a check that is under way."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join()

    def check(self) -> list[str]:
        """Check once and log the findings; return the problems."""
        began = time.monotonic()
        try:
            problems = self._maintenance.check_again()
        except CarrelError as error:
            problems = [str(error)]
        except Exception as error:  # a check must not end the thread, nor the server
            problems = [f"the self-check failed: {type(error).__name__}: {error}"]
        spent = 1000 * (time.monotonic() - began)
        if problems:
            log.error("self-check: %s (%.0f ms)", "; ".join(problems), spent)
        else:
            log.info("self-check: all is as it was written, and was found (%.0f ms)", spent)
        return problems

    def evaluate(self) -> None:
        """Evaluate the opinions of every tenant, and log the figures."""
        self._evaluated = time.monotonic()
        for tenant in sorted({one.tenant for one in self._session.catalogue.collections()}):
            try:
                found = self.opinions[tenant] = evaluate_opinions(self._session, tenant)
            except Exception:  # nor may this end the thread
                log.exception("the evaluation of opinions failed")
                continue
            if found["users"]:
                log.info("opinions: AUC %s %s", found["auc"], found["interval"])

    def _run(self) -> None:
        seconds = 0.0 if self._maintenance.checking else FIRST_S
        while not self._ended.wait(min(seconds, self.settings.checks.interval_s)):
            self.check()
            if time.monotonic() - self._evaluated > DAY_S:
                self.evaluate()
            seconds = self.settings.checks.interval_s


QUESTION = "Is this ready?"
FOREIGN = "Nous sommes prêts, tout est chargé."  # the model that tells languages apart is asked
SECONDS = 5.0  # that the server may begin to listen later for it, whatever its documents hold


def warm_up(session: Session) -> None:
    """Run a question over the first collection with the rules, under no role; nothing is kept.

    The collection and whatever goes wrong do not matter: models, word lists and libraries are then
    loaded, which many first questions at once would wait for.
    """
    detect_language(FOREIGN)
    for collection in session.catalogue.collections()[:1]:
        limit = TimeLimit(time.monotonic() + SECONDS)
        with suppress(CarrelError), limited_time(limit):
            index = session.index(collection)
            tools = Toolbox(index)
            reasoner = RulesReasoner(
                index.settings, tools.term_weights(), index.embedder, tools.sentence_vectors
            )
            auth = AuthContext(tenant=collection.tenant, user="warm-up")
            budget = index.settings.run_budget().model_copy(update={"seconds": SECONDS})
            context = Context(auth, tools, reasoner, index.settings, limits=budget)
            build_graph().invoke({"messages": [HumanMessage(QUESTION)]}, context=context)
