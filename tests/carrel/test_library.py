"""A data directory in a notebook: callers apart, settings changed, errors that say the rule."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from carrel import Library
from core.errors import CallerError, CarrelError
from display.evidence import EvidenceList
from display.runs import evidence_of

TEXT = "# Candles\n\nThe maximum height of the candle flame is 42 mm. It burns the melted wax.\n"
BINARY = Path(__file__).parents[2] / "reasoning" / "worth.npz"
QUESTION = "How high is the flame of a candle?"


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Library]:
    folder = tmp_path_factory.mktemp("texts")
    (folder / "candle.md").write_text(TEXT, encoding="utf-8")
    (folder / "safe.md").write_text("# Safe\n\nThe code of the safe is 7321.\n", encoding="utf-8")
    with Library(user="ann", reasoner="rules") as opened:
        opened.ingest(folder / "candle.md", collection="guide")
        opened.ingest(folder / "safe.md", collection="guide", readers=("keeper",))
        yield opened


def test_a_question_is_answered_as_by_any_command(library: Library) -> None:
    run = library.ask(QUESTION, "guide")
    assert "42 mm" in run.answer.text
    assert evidence_of(run)[0].source == "candle.md"
    assert (run.user, run.tenant, run.collection) == ("ann", "default", "guide")


def test_callers_are_kept_apart(library: Library) -> None:
    question = "What is the code of the safe?"
    assert library.ask(question, "guide").result["refused"]
    assert all("7321" not in one.text for one in library.search(question, "guide"))
    keeper = library.as_caller("kay", roles=("keeper",))
    run = keeper.ask(question, "guide")
    assert "7321" in run.result["answer"] and run.user == "kay"
    with pytest.raises(CallerError, match="the collection must exist"):
        library.as_caller("ann", tenant="zoo", roles=("keeper",)).search("safe", "guide")
    assert library.auth.user == "ann"


@pytest.mark.parametrize("pipeline", ["hybrid", "linked", "vector", "keyword", "classic"])
def test_a_search_shows_itself(library: Library, pipeline: str) -> None:
    found = library.search("candle flame", "guide", pipeline=pipeline, k=1)  # type: ignore[arg-type]
    assert isinstance(found, EvidenceList) and len(found) == 1
    assert found[0].source == "candle.md"
    assert repr(found).startswith("1. Candles")
    assert "<table>" in found._repr_html_()


def test_settings_change_for_a_copy_alone(library: Library) -> None:
    frugal = library.with_settings(budget={"tool_calls": 0})
    assert frugal.ask(QUESTION, "guide").result["stop_reason"] == "max_tool_calls"
    assert library.ask(QUESTION, "guide").result["stop_reason"] == "enough_evidence"
    frugal.close()  # it owns nothing
    assert library.ask(QUESTION, "guide").result["answer"]


def test_an_old_name_of_a_setting_is_noted(
    library: Library, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("core.settings._noted", set())
    assert len(library.with_settings(top_k=1).search("candle", "guide", k=1)) == 1
    notes = capsys.readouterr().err
    assert "note: top_k is retrieval.top_k now" in notes


def test_a_plan_is_checked_and_run(library: Library) -> None:
    plan = {"questions": [{"id": "q1", "text": QUESTION, "language": "en"}]}
    assert "42 mm" in library.ask("anything", "guide", plan=plan).result["answer"]
    with pytest.raises(CarrelError, match="id"):
        library.check_plan({"questions": [{"text": QUESTION}]}, "guide")


@pytest.mark.parametrize(
    ("wrong", "rule"),
    [
        (lambda one: one.ingest("nowhere.md", collection="guide"), "must exist"),
        (lambda one: one.ingest(BINARY, collection="other"), "nothing could be ingested"),
        (lambda one: one.ingest(Path(__file__), collection="a b"), "collection is"),
        (lambda one: one.search("x", "guide", pipeline="magic"), "pipeline is one of"),
        (lambda one: one.search("?", "guide"), "at least one word"),
        (lambda one: one.search("flame", "guide", k=0), "limit"),
        (lambda one: one.ask(QUESTION, "nothing"), "must exist"),
        (lambda one: one.with_settings(top_k=0), "top_k"),
        (lambda one: one.with_settings(no_such=1), "no_such"),
        (lambda one: one.with_settings(topk=1), "topk. The nearest is retrieval.top_k"),
        (lambda one: one.with_settings(index="foo"), "unknown index: foo"),
        (lambda one: one.as_caller("a b"), "letters"),
    ],
)
def test_what_is_wrong_is_said(library: Library, wrong: object, rule: str) -> None:
    with pytest.raises((CarrelError, ValueError), match=rule):
        wrong(library)  # type: ignore[operator]


def test_a_temporary_directory_is_gone_afterwards_and_a_named_one_stays(tmp_path: Path) -> None:
    with Library() as opened:
        folder = opened.folder
        assert folder.is_dir()
    assert not folder.exists()
    with Library(tmp_path / "kept") as opened:
        assert opened.folder == tmp_path / "kept"
    assert (tmp_path / "kept" / "catalogue.sqlite3").is_file()


@pytest.mark.parametrize("names", ["readers", "roles", "sources", "where"])
def test_a_text_where_a_list_belongs_is_not_read_as_letters(library: Library, names: str) -> None:
    with pytest.raises(CallerError, match=f"{names} is a list of texts.*'board'"):
        if names == "readers":
            library.ingest(library.folder, readers="board")
        elif names == "where":
            library.search("flame", "guide", where="board")
        else:
            library.as_caller("kay", **{names: "board"})


def test_a_closed_library_says_so(tmp_path: Path) -> None:
    library = Library(tmp_path / "data", reasoner="rules")
    other = library.as_caller("ann")
    retriever = library.retriever()
    library.close()
    library.close()
    for ask in (library.ask, other.search, retriever.invoke):
        with pytest.raises(CallerError, match="the library is closed"):
            ask("When?")
