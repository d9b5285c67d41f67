"""`carrel ask`, `search` and `trace`: the answer, its shape, the exit code, who may see what."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import FILES, HEIGHT, Carrel, Done, write_files

from cli.questions.ask import PIPELINES
from core.settings import Settings
from stores.store import Store

NOT_THERE = "Who won the sailing regatta in Lisbon in 1974?"


@pytest.fixture(scope="session")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return where `guarded_files` are ingested."""
    return tmp_path_factory.mktemp("guarded")


@pytest.fixture
def shared(guarded: Path, carrel: Carrel) -> Path:
    """Ingest one file for all, one for editors, and one of another tenant."""
    data = guarded / "data"
    if data.exists():
        return data
    files = write_files(
        guarded,
        {
            "open/owl.md": "# Owls\n\nAn owl hunts at night.\n",
            "closed/budget.md": "# Budget\n\nThe secret budget of the museum is 900 euros.\n",
            "other/mole.md": "# Moles\n\nA mole digs eleven tunnels every day.\n",
        },
    )
    assert carrel("ingest", files / "open", data=data).code == 0
    assert carrel("ingest", files / "closed", "--acl", "editor, chief", data=data).code == 0
    assert carrel("ingest", files / "other", "--tenant", "zoo", data=data).code == 0
    return data


def test_an_answer_has_the_promised_shape(carrel: Carrel, library: Path) -> None:
    done = carrel("ask", HEIGHT, "--json", data=library)
    assert (done.code, done.err) == (0, "")
    run = done.json
    assert not run["refused"]
    assert "42 mm" in run["answer"]
    assert run["stop_reason"] == "enough_evidence"
    assert set(run["usage"]) >= {"steps", "tool_calls", "tokens", "ms"}
    assert isinstance(run["warnings"], list)
    texts = {item["evidence_id"]: item["text"] for item in run["evidence"]}
    citations = [citation for claim in run["claims"] for citation in claim["citations"]]
    assert citations
    for citation in citations:
        quoted = texts[citation["evidence_id"]][citation["start"] : citation["end"]]
        assert quoted == citation["quote"]
    assert citations[0]["document_id"] == citations[0]["source"] == "guide/candle.md"


def test_a_question_without_an_answer_is_refused(carrel: Carrel, library: Path) -> None:
    done = carrel("ask", NOT_THERE, "--json", data=library)
    assert done.code == 3
    assert done.json["refused"]
    assert done.json["claims"] == []
    assert carrel("ask", NOT_THERE, data=library).code == 3


def test_an_answer_for_people_names_its_source(carrel: Carrel, library: Path) -> None:
    done = carrel("ask", HEIGHT, "--steps", data=library)
    assert "42 mm" in done.out
    assert "[1] guide/candle.md · Candles › Burning" in done.out
    assert "Searches" in done.err and "Searches" not in done.out


@pytest.mark.parametrize(
    ("question", "source"),
    [
        ("Какой объём чайника?", "guide/чайник.txt"),
        ("Скільки хвилин печуть хліб?", "guide/bread.html"),
        ("红茶的冲泡时间是多少?", "guide/tea.md"),
    ],
)
def test_other_languages(carrel: Carrel, library: Path, question: str, source: str) -> None:
    done = carrel("search", question, "--json", data=library)
    assert done.json["results"][0]["source"] == source
    assert carrel("ask", question, "--json", data=library).code in (0, 3)


@pytest.mark.parametrize("pipeline", ["hybrid", "linked", "vector", "keyword"])
def test_search_ranks_passages(carrel: Carrel, library: Path, pipeline: str) -> None:
    done = carrel("search", "melted wax", "--pipeline", pipeline, "-k", 3, "--json", data=library)
    assert (done.code, done.err) == (0, "")
    results = done.json["results"]
    assert 1 <= len(results) <= 3
    assert results[0]["document_id"] == "guide/candle.md"
    assert set(results[0]) >= {"document_id", "source", "chunk_id", "score", "text"}
    scores = [result["score"] for result in results]
    assert scores == sorted(scores, reverse=True)


def test_search_without_a_hit_is_no_error(carrel: Carrel, library: Path) -> None:
    done = carrel("search", "zzyzx", "--pipeline", "keyword", data=library)
    assert (done.code, done.out) == (0, "nothing found\n")


def test_another_tenant_sees_nothing(carrel: Carrel, shared: Path) -> None:
    assert "mole" not in carrel("search", "mole", "--json", data=shared).out
    question = "How many tunnels does a mole dig every day?"
    assert carrel("ask", question, "--json", data=shared).json["refused"]
    own = carrel("ask", question, "--tenant", "zoo", "--json", data=shared)
    assert own.code == 0
    assert "eleven" in own.json["answer"]
    run = own.json["run_id"]
    carrel("trace", run, data=shared).failed(2, run)
    carrel("trace", run, "--tenant", "zoo", "--user", "eve", data=shared).failed(2, run)
    listed = carrel("trace", "--json", data=shared).json["runs"]
    assert run not in {item["run_id"] for item in listed}
    assert carrel("trace", run[:8], "--tenant", "zoo", "--json", data=shared).code == 0
    carrel("ask", question, "--tenant", "nobody", data=shared).failed(2, "default", "none yet")


def test_only_the_named_roles_see_a_guarded_document(carrel: Carrel, shared: Path) -> None:
    question = "What is the secret budget of the museum?"

    def ask(*arguments: str) -> Done:
        return carrel("ask", question, "--json", *arguments, data=shared)

    assert "900 euros" not in ask().out
    assert "900 euros" not in ask("--role", "reader").out
    assert "900 euros" not in ask("--user", "editor").out
    assert "900 euros" in ask("--role", "reader", "--role", "editor").json["answer"]
    assert "900 euros" in ask("--role", "chief").json["answer"]
    hits = carrel("search", "secret budget", "--json", data=shared).json["results"]
    assert "closed" not in json.dumps(hits) and "900" not in json.dumps(hits)


def test_trace_shows_a_run(carrel: Carrel, library: Path) -> None:
    asked = carrel("ask", HEIGHT, "--user", "tess", "--json", data=library).json["run_id"]
    listed = carrel("trace", "--user", "tess", data=library)
    assert asked in listed.out and "height" in listed.out
    shown = carrel("trace", "last", "--user", "tess", data=library)
    assert shown.code == 0
    assert "understand" in shown.out and "tenant=default" in shown.out
    assert "understand → " in shown.out.replace("\n", " ")
    record = carrel("trace", asked[:6], "--user", "tess", "--json", data=library).json
    assert record["run_id"] == asked
    assert record["trail"][0]["node"] == "understand"
    carrel("trace", "nope", data=library).failed(2, "nope", "carrel trace")
    carrel("trace", "%", data=library).failed(2, "%")


def test_a_run_becomes_a_page_of_its_own(carrel: Carrel, library: Path, tmp_path: Path) -> None:
    asked = carrel("ask", HEIGHT, "--json", data=library).json["run_id"]
    page = tmp_path / "run.html"
    assert asked in carrel("trace", asked, "--out", str(page), data=library).out
    said = carrel("trace", asked, "--out", str(page), "--json", data=library).json
    assert said == {"run_id": asked, "out": str(page)}
    shown = page.read_text(encoding="utf-8")
    assert "<mark>The maximum height of the flame is 42 mm.</mark>" in shown
    assert 'data-node="understand"' in shown and "<script" not in shown
    assert "default-src &#x27;none&#x27;" in shown
    carrel("trace", "--out", str(page), data=library).failed(2, "one run")
    carrel("trace", asked, "--out", "run.pdf", data=library).failed(2, ".html")
    carrel("trace", asked, "--out", str(tmp_path / "no" / "a.html"), data=library).failed(2)


def test_the_help_names_every_pipeline(carrel: Carrel) -> None:
    shown = carrel("ask", "--help").out
    assert not [name for name in PIPELINES if f"{name}:" not in shown]


def test_config_says_where_values_come_from(
    carrel: Carrel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    profile = tmp_path / "p.yaml"
    profile.write_text("name: p\nsettings: {top_k: 7, vector_k: 8, text_k: 9}\n")
    monkeypatch.setenv("CARREL_RETRIEVAL__VECTOR_K", "11")
    monkeypatch.setenv("CARREL_TOPK", "1")
    monkeypatch.setattr("core.settings._noted", set())
    listed = carrel("config", "--profile", profile, "--set", "retrieval.text_k=12", "--json")
    assert "CARREL_TOPK" in listed.err
    found = listed.json
    rows = {name: (row["value"], row["origin"]) for name, row in found["settings"].items()}
    assert rows["retrieval.top_k"] == (7, "profile")
    assert rows["retrieval.vector_k"] == (11, "environment")
    assert rows["retrieval.text_k"] == (12, "flag")
    assert rows["retrieval.records_k"][1] == "default"
    assert rows["data"] == (str(tmp_path / "data"), "environment")
    assert found["unknown_variables"] == ["CARREL_TOPK"]
    table = carrel("config", "--set", "retrieval.text_k=12", "--data", tmp_path / "elsewhere")
    assert "text_k" in table.out and "flag" in table.out


def test_config_shows_the_index_that_the_directory_has(
    carrel: Carrel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = {"index": "chroma", "chroma.url": "http://127.0.0.1:9"}
    data = tmp_path / "own"
    with Store(Settings(data=data, **chosen), "fake", create=True):
        pass

    def shown() -> dict[str, tuple[str, str]]:
        rows = carrel("config", "--json", data=data).json["settings"]
        return {name: (rows[name]["value"], rows[name]["origin"]) for name in chosen}

    assert shown() == {name: (value, "directory") for name, value in chosen.items()}
    monkeypatch.setenv("CARREL_INDEX", "memmap")
    assert shown()["index"] == ("memmap", "environment")


def test_search_gives_as_many_passages_as_the_setting_says(library: Path, carrel: Carrel) -> None:
    def count(*more: str) -> int:
        given = ("search", "the", "--json", "--set", "retrieval.top_k=2", *more)
        return len(carrel(*given, data=library).json["results"])

    assert (count(), count("-k", "3")) == (2, 3)


def test_files_of_the_corpus_keep_their_description(library: Path, carrel: Carrel) -> None:
    def first(words: str) -> dict[str, object]:
        results = carrel("search", words, "--json", data=library).json["results"]
        return dict(results[0])

    candle = first("melted wax wick")
    assert candle["title"] == "Candles"
    assert candle["section"] == "Candles › Burning"
    assert candle["language"] == "en"
    assert candle["metadata"]["authors"] == ["Ann Wick"]  # type: ignore[index]
    walrus = first("walrus sleeps")
    assert (walrus["document_id"], walrus["version"]) == ("n1", "2")
    assert first("Хліб печуть")["language"] == "uk"
    assert first("绿茶")["language"] == "zh"
    assert first("чайник")["language"] == "ru"
    assert len(FILES) == 6


@pytest.mark.parametrize("more", [(), ("--json",)])
def test_an_ingest_of_nothing_but_bad_files_fails(
    tmp_path: Path, carrel: Carrel, more: tuple[str, ...]
) -> None:
    bad = write_files(tmp_path / "bad", {"empty.txt": "", "half.json": "{"})
    done = carrel("ingest", bad, *more, data=tmp_path / "data")
    assert done.code == 1
    assert "nothing could be ingested: 2 failed" in done.err
