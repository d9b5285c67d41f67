"""What the first question would load, loaded before anybody asks."""

from __future__ import annotations

from contextlib import suppress

from langchain_core.messages import HumanMessage

from core.auth import AuthContext
from core.errors import CarrelError
from graph.build import build_graph
from graph.context import make_context
from graph.session import Session
from reasoning.rules.reasoner import RulesReasoner
from tools.toolbox import Toolbox

QUESTION = "Is this ready?"


def warm_up(session: Session) -> None:
    """Run a question over the first collection with the rules, under no role; nothing is kept.

    The collection and whatever goes wrong do not matter: models, word lists and libraries are then
    loaded, which many first questions at once would wait for.
    """
    for collection in session.store.catalogue.collections()[:1]:
        with suppress(CarrelError):
            index = session.index(collection)
            tools = Toolbox(index)
            reasoner = RulesReasoner(index.settings, tools.term_weights(), index.embedder)
            auth = AuthContext(tenant=collection.tenant, user="warm-up")
            context = make_context(auth, tools, reasoner, index.settings)
            build_graph().invoke({"messages": [HumanMessage(QUESTION)]}, context=context)
