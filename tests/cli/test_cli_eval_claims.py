"""`carrel eval claims`: labelled claims judged as those of an answer are."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import Carrel, in_process

BEDS = ["It has 12 beds."]


def row(
    claim: str, evidence: list[str], kind: str, *, supported: bool = False
) -> dict[str, object]:
    return {"claim": claim, "evidence": evidence, "supported": supported, "kind": kind}


GOOD = [
    row("It has 12 beds.", BEDS, "same", supported=True),
    row("It has 13 beds.", BEDS, "number"),
    row("It has 12 beds.", BEDS, "number"),
    row("It has beds.", [], "no evidence"),
]


@pytest.fixture
def carrel(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Carrel:
    return in_process(capsys, monkeypatch)


def written(folder: Path, *lines: object) -> str:
    path = folder / "claims.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    return str(path)


def test_counts(carrel: Carrel, tmp_path: Path) -> None:
    done = carrel("eval", "claims", written(tmp_path, *GOOD), "--json")
    assert done.code == 0
    assert done.json == {
        "supported": {"n": 1, "accepted": 1},
        "by_kind": {"no evidence": {"n": 1, "caught": 1}, "number": {"n": 2, "caught": 1}},
    }


def test_the_wrongly_judged_are_shown(carrel: Carrel, tmp_path: Path) -> None:
    done = carrel("eval", "claims", written(tmp_path, *GOOD), "--show")
    assert "claims.jsonl:3 number: accepted" in done.out
    assert "claims.jsonl:2" not in done.out


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"claim": 3}, "claims.jsonl:2: 'claim' must be a text"),
        ({"claim": " "}, "claims.jsonl:2: 'claim' must be a text"),
        ({"evidence": [1]}, "claims.jsonl:2: 'evidence' must be a list of texts"),
        ({"supported": "yes"}, "claims.jsonl:2: 'supported' must be true or false"),
        ({"kind": 5}, "claims.jsonl:2: 'kind' must be a text"),
    ],
)
def test_a_bad_row_is_named(
    carrel: Carrel, tmp_path: Path, change: dict[str, object], message: str
) -> None:
    done = carrel("eval", "claims", written(tmp_path, GOOD[0], {**GOOD[1], **change}), "--json")
    assert done.code != 0
    assert message in done.err
    assert not done.out


def test_a_file_without_a_claim_is_wrong_use(carrel: Carrel, tmp_path: Path) -> None:
    carrel("eval", "claims", written(tmp_path), "--json").failed(2, "no claim", "claims.jsonl")


def test_a_claim_without_a_word_is_no_statement(carrel: Carrel, tmp_path: Path) -> None:
    odd = row("\x1b[31m\ud800 " + "9" * 400, BEDS, "\x1b[31m\ud800", supported=True)
    path = written(tmp_path, row("???", BEDS, "empty"), odd)
    assert carrel("eval", "claims", path, "--json").json["by_kind"]["empty"]["caught"] == 1
    shown = carrel("eval", "claims", path, "--show")
    assert (shown.code, "\x1b" in shown.out, "?[31m" in shown.out) == (0, False, True)


def test_a_file_that_is_not_there(carrel: Carrel, tmp_path: Path) -> None:
    done = carrel("eval", "claims", str(tmp_path / "none.jsonl"))
    assert done.code != 0
    assert "JSON Lines" in done.err
