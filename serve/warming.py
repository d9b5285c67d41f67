"""What the first question would load, loaded before anybody asks."""

from __future__ import annotations

import time
from contextlib import suppress

from langchain_core.messages import HumanMessage

from core.auth import AuthContext
from core.errors import CarrelError
from core.language.detect import detect_language
from core.time_limit import TimeLimit, limited_time
from graph.build import build_graph
from graph.context import make_context
from graph.session import Session
from reasoning.rules.reasoner import RulesReasoner
from tools.toolbox import Toolbox

QUESTION = "Is this ready?"
FOREIGN = "Nous sommes prêts, tout est chargé."  # the model that tells languages apart is asked
SECONDS = 5.0  # that the server may begin to listen later for it, whatever its documents hold


def warm_up(session: Session) -> None:
    """Run a question over the first collection with the rules, under no role; nothing is kept.

    The collection and whatever goes wrong do not matter: models, word lists and libraries are then
    loaded, which many first questions at once would wait for.
    """
    detect_language(FOREIGN)
    for collection in session.store.catalogue.collections()[:1]:
        limit = TimeLimit(time.monotonic() + SECONDS)
        with suppress(CarrelError), limited_time(limit):
            index = session.index(collection)
            tools = Toolbox(index)
            reasoner = RulesReasoner(
                index.settings, tools.term_weights(), index.embedder, tools.sentence_vectors
            )
            auth = AuthContext(tenant=collection.tenant, user="warm-up")
            budget = index.settings.budget().model_copy(update={"seconds": SECONDS})
            context = make_context(auth, tools, reasoner, index.settings, budget=budget)
            build_graph().invoke({"messages": [HumanMessage(QUESTION)]}, context=context)
