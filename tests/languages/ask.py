"""Ask of two short documents in a process of its own: ask.py FOLDER DATA LANGUAGE QUESTION …."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from languages.language import add_folder

add_folder(Path(sys.argv[1]))

from fakes import FakeEmbedder, document, write  # noqa: E402 - what is imported reads the languages

from core.auth import AuthContext  # noqa: E402
from core.settings import Settings  # noqa: E402
from graph.build import build_graph  # noqa: E402
from graph.context import Context  # noqa: E402
from reasoning.rules.reasoner import RulesReasoner  # noqa: E402
from retrievers.types import Index  # noqa: E402
from stores.store import Store  # noqa: E402
from tools.toolbox import Toolbox  # noqa: E402

TEXTS = {
    "haveno": "La haveno estas en Lisbono. Petro Marin zorgas pri la haveno.",
    "turo": "La turo estas alta je 80 metroj. Ĝi staras sur la monteto.",
}


def main() -> None:
    embedder = FakeEmbedder()
    settings = Settings(data=Path(sys.argv[2]))
    language, *questions = sys.argv[3:]
    with Store(settings, embedder.model_id, create=True) as store:
        collection = store.intake.open_collection("acme", "main", None)
        rows = [document(collection, n, t, title=n, language=language) for n, t in TEXTS.items()]
        write(store, collection, rows, embedder)
        tools = Toolbox(Index(store, collection, embedder, settings))
        reasoner = RulesReasoner(settings, tools.term_weights(), embedder)
        for question in questions:
            context = Context(
                AuthContext(tenant="acme"), tools, reasoner, settings, clock=time.monotonic
            )
            found = build_graph().invoke({"question": question}, context=context)
            known = reasoner.understand(question, [])
            shown = {
                "language": known.language,
                "parts": [part.text for part in known.parts],
                "wants": known.required_fields,
                "text": found["answer"].text,
            }
            print(json.dumps(shown))  # noqa: T201


if __name__ == "__main__":
    main()
