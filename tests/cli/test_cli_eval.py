"""`carrel eval` from end to end with the embedded model, its JSON and its refusals."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from xml.etree import ElementTree

import commands
import pytest
from commands import Carrel, in_process
from selectolax.lexbor import LexborHTMLParser

import evals.corpus
from core.settings import Settings

METRICS = (
    *("precision@3", "precision@5", "precision@10", "recall@5", "recall@10", "recall@100"),
    *("mrr", "ndcg@5", "ndcg@10", "full_support@10"),
)
ANIMALS = {
    "owl": "Owls hunt small mammals after dark and swallow them whole.",
    "whale": "A whale breathes air through a blowhole on top of its head.",
    "bee": "Worker bees dance to tell the others where the flowers are.",
    "camel": "A camel stores fat in its hump and can go without water for days.",
    "salmon": "Salmon swim up the river in which they were born to lay their eggs.",
}
QUERIES = {
    "q1": ("At night, what do owls eat?", "factual", {"owl": 2, "whale": 1}),
    "q2": ("How does a whale breathe?", "factual", {"whale": 1}),
    "q3": ("Which insect signals a source of nectar by moving?", "thematic", {"bee": 1}),
    "q4": ("Who built the cathedral?", "factual", {}),
}


def animal_set(folder: Path, name: str = "animals") -> Path:
    folder = folder / name
    folder.mkdir(parents=True)
    (folder / "corpus.jsonl").write_text(
        "".join(json.dumps({"_id": k, "title": k, "text": v}) + "\n" for k, v in ANIMALS.items())
    )
    (folder / "queries.jsonl").write_text(
        "".join(
            json.dumps({"_id": k, "text": text, "metadata": {"type": kind}}) + "\n"
            for k, (text, kind, _) in QUERIES.items()
        )
    )
    (folder / "qrels.tsv").write_text(
        "".join(f"{k}\t{d}\t{g}\n" for k, q in QUERIES.items() for d, g in q[2].items())
    )
    return folder


@pytest.fixture(scope="session")
def animals(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return animal_set(tmp_path_factory.mktemp("eval"))


@pytest.fixture
def carrel(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, animals: Path
) -> Carrel:
    """Run commands with the embedded model, loaded once, and a cache that is not the user's."""
    commands._open_embedder(Settings())
    monkeypatch.setattr(evals.corpus, "open_embedder", commands._open_embedder)
    monkeypatch.setenv("CARREL_CACHE", str(animals.parent / "cache"))
    monkeypatch.setenv("CARREL_EVALUATION__RESAMPLES", "500")
    return in_process(capsys, monkeypatch)


def test_the_json_is_as_promised(carrel: Carrel, animals: Path) -> None:
    done = carrel("eval", "retrieval", animals, "--json")
    assert (done.code, done.err) == (0, "")
    result = done.json
    assert (result["dataset"], result["pipeline"], result["n"]) == ("animals", "hybrid", 3)
    assert tuple(result["metrics"]) == METRICS
    assert result["metrics"]["recall@100"] == 1.0
    assert result["metrics"]["mrr"] == 1.0
    assert set(result["latency_ms"]) == {"p50", "p95"}
    for metric, (low, high) in result["ci"].items():
        assert low <= result["metrics"][metric] <= high
    assert {name: part["n"] for name, part in result["by_type"].items()} == {
        "factual": 2,
        "thematic": 1,
    }
    assert result["warnings"] == []


def test_a_paraphrase_is_found_by_vectors_and_not_by_words(carrel: Carrel, animals: Path) -> None:
    options = ("--pipeline", "vector", "--against", "keyword", "--json")
    result = carrel("eval", "retrieval", animals, *options).json
    assert result["metrics"]["mrr"] == 1.0
    gap = result["against"]["differences"]["mrr"]
    assert (gap["wins"], gap["losses"]) == (1, 0)
    assert gap["difference"] > 0


def test_the_terminal_shows_figures_and_intervals(carrel: Carrel, animals: Path) -> None:
    done = carrel("eval", "retrieval", animals, "--against", "classic")
    assert done.code == 0
    assert "95% interval" in done.out
    assert "latency of hybrid: p50" in done.out
    assert "against classic" in done.out
    assert "thematic" in done.out
    assert all(metric in done.out for metric in METRICS)
    assert max(map(len, done.out.splitlines())) <= 80


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("retrieval", "{nowhere}"), ["folder"]),
        (("retrieval", ""), ["path"]),
        (("retrieval", "{animals}", "--pipeline", "best"), ["pipeline", "hybrid"]),
        (("retrieval", "{animals}", "--against", "hybrid"), ["another"]),
        (("retrieval", "{animals}", "--limit", "0"), ["--limit"]),
        (("retrieval", "{animals}", "--set", "evaluation.depth=1"), ["evaluation.depth"]),
        (("answers", "{nowhere}"), ["folder"]),
        (("answers", "{animals}", "--pipeline", "hybrid"), ["answers", "auto, agentic, classic"]),
        (("answers", "{animals}", "--against", "best"), ["answers", "classic"]),
        (("answers", "{animals}", "--against", "auto"), ["another"]),
        (("answers", "{animals}", "--limit", "0"), ["--limit"]),
        (("answers", "{animals}", "--set", "nothing=1"), ["--set"]),
        (("compare", "{animals}", "--out", "{animals}/r.pdf"), [".md", ".html"]),
        (("compare", "{animals}", "--out", "{nowhere}/r.md"), ["folder"]),
        (("compare", "{animals}", "{animals}", "--out", "{animals}/r.md"), ["different names"]),
        (("compare", "{animals}", "--out", "{animals}/r.md", "--pipelines", "classic"), ["two"]),
        (("ers", "export", "{animals}", "--out", "{animals}/qrels.tsv"), [".csv"]),
        (("ers", "export", "{nowhere}", "--out", "{animals}/s.csv"), ["nowhere"]),
        (("ers", "import", "{nowhere}", "{animals}", "--key", "{animals}"), ["sheet"]),
    ],
)
def test_wrong_use_is_one_line_and_code_2(
    carrel: Carrel, animals: Path, tmp_path: Path, arguments: tuple[str, ...], words: list[str]
) -> None:
    places = {"animals": animals, "nowhere": tmp_path / "nowhere"}
    carrel("eval", *(argument.format(**places) for argument in arguments)).failed(2, *words)


def test_missing_documents_need_a_flag(carrel: Carrel, animals: Path, tmp_path: Path) -> None:
    folder = animal_set(tmp_path)
    with (folder / "qrels.tsv").open("a") as handle:
        handle.write("q1\tunicorn\t1\n")
    carrel("eval", "retrieval", folder).failed(2, "unicorn", "--allow-missing")
    done = carrel("eval", "retrieval", folder, "--allow-missing", "--json")
    assert done.code == 0
    assert done.json["metrics"]["recall@100"] == pytest.approx((2 / 3 + 1 + 1) / 3, abs=1e-6)
    assert any("unicorn" in warning for warning in done.json["warnings"])


def test_answers_are_measured_question_by_question(carrel: Carrel, animals: Path) -> None:
    options = ("--pipeline", "agentic", "--against", "classic", "--json")
    done = carrel("eval", "answers", animals, *options)
    assert (done.code, done.err) == (0, "")
    result = done.json
    assert (result["dataset"], result["pipeline"], result["n"]) == ("animals", "agentic", 4)
    assert result["metrics"]["answer_contained"] is None, "the set has no gold answers"
    assert result["counts"]["any_gold_cited"] == 3
    assert {name: part["n"] for name, part in result["by_type"].items()} == {
        "factual": 3,
        "thematic": 1,
    }
    rows = {row["id"]: row for row in result["questions"]}
    assert list(rows) == list(QUERIES)
    assert rows["q2"] | {"ms": 0, "operations": 0} == {
        **{"id": "q2", "type": "factual", "answered": True, "contained": None, "gold_cited": True},
        **{"all_gold_cited": True, "stop_reason": "enough_evidence", "ms": 0, "operations": 0},
    }
    against = result["against"]
    assert against["pipeline"] == "classic"
    gap = against["differences"]["any_gold_cited"]
    mine, theirs = (part["metrics"]["any_gold_cited"] for part in (result, against))
    assert gap["difference"] == pytest.approx(mine - theirs, abs=1e-5)
    assert gap["wins"] + gap["ties"] + gap["losses"] == 3


def test_the_terminal_shows_answers_and_what_they_cost(carrel: Carrel, animals: Path) -> None:
    done = carrel("eval", "answers", animals, "--limit", 2, "--against", "classic")
    assert done.code == 0, done.err
    assert "animals · auto · 2 questions" in done.out
    assert "citation_precision" in done.out
    assert "tool calls" in done.out
    assert "latency of classic: p50" in done.out
    assert "ended: " in done.out
    assert max(map(len, done.out.splitlines())) <= 80


def test_compare_writes_a_page_with_the_numbers_it_prints(
    carrel: Carrel, animals: Path, tmp_path: Path
) -> None:
    other = animal_set(tmp_path, "creatures")
    out = tmp_path / "report.html"
    done = carrel("eval", "compare", animals, other, "--out", out, "--json")
    assert done.code == 0
    result = done.json
    assert result["files"] == [str(out)]
    assert [part["dataset"] for part in result["datasets"]] == [
        "all data sets",
        "animals",
        "creatures",
    ]
    assert [part["n"] for part in result["datasets"]] == [6, 3, 3]
    tree = LexborHTMLParser(out.read_text(encoding="utf-8"))
    assert len(tree.css("h2")) == 3
    assert len(tree.css("svg")) == len(tree.css("figcaption")) == 3 * 4
    cells = [
        cell.text() for row in tree.css("table")[0].css("tbody tr") for cell in row.css("th, td")
    ]
    agentic = result["datasets"][0]["pipelines"]["agentic"]["metrics"]
    assert any(cell.startswith(f"{agentic['ndcg@5']:.3f} (") for cell in cells)
    assert cells[0] == "Precision@3"


def test_compare_writes_markdown_with_drawings_beside_it(
    carrel: Carrel, animals: Path, tmp_path: Path
) -> None:
    out = tmp_path / "report.md"
    done = carrel("eval", "compare", animals, "--pipelines", "vector,keyword", "--out", out)
    assert done.code == 0
    assert "keyword − vector" in done.out
    text = out.read_text(encoding="utf-8")
    drawings = sorted(tmp_path.glob("report-*.svg"))
    assert len(drawings) == 4
    for drawing in drawings:
        ElementTree.fromstring(drawing.read_bytes())
        assert f"({drawing.name})" in text
    assert "| MRR | 1.000 (1.000, 1.000) | " in text


def test_answers_are_exported_rated_and_read_back(
    carrel: Carrel, animals: Path, tmp_path: Path
) -> None:
    out = tmp_path / "sheet.csv"
    done = carrel("eval", "ers", "export", animals, "--out", out, "--limit", 2, "--seed", 7)
    assert done.code == 0, done.err
    key = tmp_path / "sheet.key.csv"
    rows = list(csv.DictReader(out.read_text(encoding="utf-8-sig").splitlines()))
    assert len(rows) == 4
    assert "agentic" not in out.read_text(encoding="utf-8-sig")
    assert key.read_text(encoding="utf-8-sig").count("agentic") == 2
    carrel("eval", "ers", "export", animals, "--out", out).failed(2, "exists already")
    rated = []
    for number, scores in enumerate(((5, 4, 3, 2), (5, 5, 3, 1))):
        rated.append(tmp_path / f"rater{number}.csv")
        with rated[-1].open("w", newline="", encoding="utf-8") as handle:
            writer = csv.DictWriter(handle, list(rows[0]))
            writer.writeheader()
            writer.writerows(
                {**row, "score": score} for row, score in zip(rows, scores, strict=True)
            )
    done = carrel("eval", "ers", "import", *rated, "--key", key, "--json")
    assert done.code == 0
    assert done.json["mean"]["ers"] == 3.5
    assert {name: part["n"] for name, part in done.json["pipelines"].items()} == {
        "agentic": 2,
        "classic": 2,
    }
    shown = carrel("eval", "ers", "import", *rated, "--key", key)
    assert "Cohen's kappa" in shown.out


def test_questions_are_answered_from_the_users_own_collection(
    carrel: Carrel, animals: Path, tmp_path: Path
) -> None:
    data = tmp_path / "own"
    assert carrel("ingest", animals / "corpus.jsonl", data=data).code == 0
    questions = tmp_path / "questions.txt"
    questions.write_text("How does a whale breathe?\n")
    out = tmp_path / "own.csv"
    arguments = ("eval", "ers", "export", questions, "--pipelines", "agentic", "--out", out)
    assert carrel(*arguments, data=data).code == 0
    (row,) = csv.DictReader(out.read_text(encoding="utf-8-sig").splitlines())
    assert "blowhole" in row["answer"]
    assert row["sources"] == "corpus.jsonl#whale"
