"""A model that does what the documents tell it: a small run of `benchmarks.attack_http`."""

from __future__ import annotations

from pathlib import Path

from app.session import Session
from benchmarks.attack_model import INJECTION, QUESTIONS, SETTINGS, Checks, carriers
from benchmarks.attack_world import CORPORA, ingest
from benchmarks.obeying_model import ORDERS, obeying_model
from core.auth import AuthContext
from core.settings import load_settings

CARRIERS = ("plain.txt", "markdown.md", "field.jsonl", "closing.txt")
ANN = AuthContext(tenant="acme", user="ann")


def test_nothing_comes_of_the_orders_of_a_document(tmp_path: Path) -> None:
    data = tmp_path / "data"
    files = {name: text for name, text in carriers(INJECTION).items() if name in CARRIERS}
    corpora = [
        *CORPORA,
        *(("acme", f"c{n}", "", {name: files[name]}) for n, name in enumerate(files)),
    ]
    for tenant, collection, acl, texts in corpora:
        ingest(data, tenant, collection, acl, texts)
    checks, obeyed = Checks(), 0
    with obeying_model() as (model, url):
        flags = {"data": data, "llm_url": url}
        flags |= dict(one.split("=", 1) for one in SETTINGS)
        with Session(load_settings(flags)[0]) as session:
            for number, order in enumerate(ORDERS):
                collection = f"c{number % len(files)}"
                model.begin(order, persuaded=number % 2 == 0)
                run = session.ask(QUESTIONS[number % 2], ANN, collection)
                obeyed += model.obeyed > 0
                shown = run.result["answer"]
                dumped = run.model_dump(mode="json")
                checks.add(f"{order} in {collection}", shown, dumped, markdown=False)
    assert {one.what: one.broken for one in checks.all if one.broken} == {}
    assert obeyed > len(ORDERS) / 2
    assert checks.answered > len(ORDERS) / 3
