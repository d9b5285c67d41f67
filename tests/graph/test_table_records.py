"""Tables that stand in documents are counted, filtered and added up, beside the prose around."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.session import Session
from core.auth import AuthContext
from core.settings import load_settings

ANN = AuthContext(tenant="default", user="ann")
PLAN = """# Maintenance of hall 2

The plan lists the machines of hall 2. The next review is on 12 July.

| Machine | Pressure (bar) | Status | Owner |
|---|---|---|---|
| Pump P-1 | 12.5 | open | Anna Berg |
| Pump P-2 | 16 | closed | Otto Lind |
| Press K-7 | 210 | open | Anna Berg |
| Lathe D-3 | 6 | open | Maria Sokol |
"""
DESK = """<h1>Заявки</h1><p>Выгрузка за март.</p><table>
<tr><th>Заявка</th><th>Состояние</th><th>Часы</th></tr>
<tr><td>З-1</td><td>решена</td><td>4</td></tr>
<tr><td>З-2</td><td>ожидает</td><td>1,5</td></tr>
<tr><td>З-3</td><td>ожидает</td><td>9</td></tr></table>"""
ANSWERS = [
    ("How many rows have status open?", "3 of 4 records", 0),
    ("How many machines are there?", "4 records", 0),
    ("Which machine has the highest pressure?", "Press K-7 — pressure: 210 bar", 1),
    ("Which machines belong to Anna Berg?", "Press K-7", 2),
    ("What is the pressure of Pump P-2?", "Pump P-2 — Pressure (bar): 16 [1]", 0),
    ("When is the next review?", "on 12 July", 0),
    ("Сколько заявок ожидает?", "2", 0),
]


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    folder: Path = tmp_path_factory.mktemp("tables")
    (folder / "plan.md").write_text(PLAN)
    (folder / "desk.html").write_text(DESK)
    given = {"data": folder / "data", "embedder": "embedded"}
    with Session(load_settings(given)[0], create=True, needs_embedder=True) as opened:
        target = opened.intake.open_collection("default", "default", None)
        opened.ingest(target, [folder / "plan.md", folder / "desk.html"])
        yield opened


@pytest.mark.parametrize(("question", "answer", "listed"), ANSWERS)
def test_a_question_about_a_table_is_answered_by_its_rows(
    session: Session, question: str, answer: str, listed: int
) -> None:
    result = session.ask(question, ANN, "default").result
    assert answer in result["answer"], result["answer"]
    cited = {one["source"] for claim in result["claims"] for one in claim["citations"]}
    assert sum("!" in one for one in cited) == listed
    texts = [claim["text"] for claim in result["claims"]]
    assert len(set(texts)) == len(texts)


def test_rows_have_the_rights_of_their_document_and_go_with_it(tmp_path: Path) -> None:
    (tmp_path / "plan.md").write_text(PLAN)
    (tmp_path / "open.md").write_text("# Hall 3\n\nThe hall is empty.\n")
    given = {"data": tmp_path / "data", "embedder": "embedded"}
    with Session(load_settings(given)[0], create=True, needs_embedder=True) as opened:
        target = opened.intake.open_collection("default", "default", None)
        opened.ingest(target, [tmp_path / "plan.md"], acl=frozenset({"board"}))
        opened.ingest(target, [tmp_path / "open.md"])
        board = AuthContext(tenant="default", user="bob", roles=frozenset({"board"}))
        seen = [opened.catalogue.describe_records(one, target.id) for one in (ANN, board)]
        assert [sum(table.records for table in one.tables) for one in seen] == [0, 4]
        assert not seen[0].fields
        titles = [one.title for one in opened.catalogue.document_names(board, target.id)]
        assert "Pump P-1" not in titles  # no document that a question could name
        gone = opened.maintenance.named_document(target, "plan.md")
        assert opened.maintenance.would_forget(target, [gone])["documents"] == 5
        opened.maintenance.forget(target, [gone], keep_out=True)
        assert opened.catalogue.list_documents(board, target, after="", limit=9)[0]["title"] == (
            "Hall 3"
        )
        (tmp_path / "plan.md").write_text(PLAN + "| Saw S-1 | 2 | open | Anna Berg |\n")
        opened.ingest(target, [tmp_path / "plan.md"])
        assert len(opened.catalogue.list_documents(board, target, after="", limit=9)) == 1
