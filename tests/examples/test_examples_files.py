"""Check that the sample corpora are readable, small and agree with themselves."""

from __future__ import annotations

import json
import re
import zipfile
from datetime import date
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
DOCS = EXAMPLES / "xpay" / "docs"
LIBRARY = EXAMPLES / "library"
JSONL = sorted(EXAMPLES.rglob("*.jsonl"))
TEXT_SUFFIXES = {".md", ".txt", ".html", ".jsonl", ".py"}
GUIDES = ["guide.md", "guide.ru.md", "guide.uk.md", "guide.zh.md"]
TOPICS = sorted(path.name.removesuffix(".en.md") for path in DOCS.glob("*.en.md"))


def records(path: Path) -> list[dict[str, Any]]:
    """Read one JSON object per line."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def numbers(path: Path) -> list[str]:
    """List the numbers of a document's tables and prose, sorted, without thousands commas.

    Code is left out; "0,20" and "0.20" count as the same number.
    """
    text = re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    text = re.sub(r"(?<=\d),(?=\d{3}\b)", "", text)
    return sorted(re.findall(r"\d+(?:\.\d+)?", re.sub(r"(?<=\d),(?=\d)", ".", text)))


def files() -> list[Path]:
    """List the sample files, leaving out what Python itself caches."""
    return [p for p in EXAMPLES.rglob("*") if p.is_file() and "__pycache__" not in p.parts]


def test_everything_together_stays_small() -> None:
    assert sum(path.stat().st_size for path in files()) < 600_000


def test_text_files_are_utf8_without_byte_order_mark() -> None:
    for path in files():
        if path.suffix in TEXT_SUFFIXES:
            text = path.read_bytes().decode("utf-8")
            assert not text.startswith("\ufeff"), path
            assert "\r" not in text, path
            assert text.endswith("\n"), path


@pytest.mark.parametrize("path", JSONL, ids=lambda path: str(path.relative_to(EXAMPLES)))
def test_records_parse_and_have_unique_ids(path: Path) -> None:
    rows = records(path)
    ids = [row["_id"] for row in rows]
    assert len(ids) == len(set(ids)) > 0
    keys = set(rows[0])
    same = all(set(row) - {"file"} == keys for row in rows)
    assert same, "every record of a file has the same fields, and some books a file"


def test_each_xpay_page_exists_in_both_languages() -> None:
    assert len(TOPICS) >= 8
    assert len(list(DOCS.glob("*.zh.md"))) == len(TOPICS)


@pytest.mark.parametrize("topic", TOPICS)
def test_both_languages_of_a_page_hold_the_same_facts(topic: str) -> None:
    english, chinese = DOCS / f"{topic}.en.md", DOCS / f"{topic}.zh.md"
    head = re.compile(r"^(version|updated_at): (.+)$", re.MULTILINE)
    assert head.findall(english.read_text("utf-8")) == head.findall(chinese.read_text("utf-8"))
    allowed = {  # words in one language, figures in the other
        "changelog": {"3"},
    }.get(topic, set())
    assert set(numbers(english)) ^ set(numbers(chinese)) <= allowed


def test_pages_do_not_give_away_the_other_sources() -> None:
    for path in DOCS.glob("*.md"):
        text = path.read_text(encoding="utf-8").lower()
        for word in ("maintain", "complain", " team", "维护", "投诉", "团队"):
            assert word not in text, f"{path.name} mentions {word!r}"


@pytest.mark.parametrize(
    ("topic", "english", "chinese"),
    [
        ("refund", "accepts values from 1 to 300 seconds", "1 到 300 秒"),
        ("payments", "accepts values from 1 to 90 seconds", "1 到 90 秒"),
        ("orders", "default timeout of the order query API is 30 seconds", "默认超时时间为 30 秒"),
        ("payouts", "default timeout of the payout API is 120 seconds", "默认超时时间为 120 秒"),
        ("webhooks", "within 10 seconds", "10 秒内"),
    ],
)
def test_timeouts_are_stated_alike(topic: str, english: str, chinese: str) -> None:
    assert english in (DOCS / f"{topic}.en.md").read_text(encoding="utf-8")
    assert chinese in (DOCS / f"{topic}.zh.md").read_text(encoding="utf-8")


def test_services_name_their_team_in_both_languages() -> None:
    rows = records(EXAMPLES / "xpay" / "services.jsonl")
    known = {row["_id"] for row in rows}
    teams: dict[str, str] = {}
    for row in rows:
        assert f"is maintained by the {row['maintained_by']} team." in row["description"]
        assert f"由{row['maintained_by_zh']}维护。" in row["description_zh"]
        assert row["on_call"] in row["description"]
        assert row["on_call"] in row["description_zh"]
        assert (
            teams.setdefault(row["maintained_by"], row["maintained_by_zh"])
            == row["maintained_by_zh"]
        )
        assert set(row["depends_on"]) < known
        date.fromisoformat(row["updated_at"])
    assert len(set(teams.values())) == len(teams)


def test_tickets_refer_to_known_services_and_dates() -> None:
    known = {row["_id"] for row in records(EXAMPLES / "xpay" / "services.jsonl")}
    for row in records(EXAMPLES / "xpay" / "tickets.jsonl"):
        assert row["service"] in known
        assert date(2026, 6, 1) <= date.fromisoformat(row["created_at"]) <= date(2026, 11, 30)


def test_refund_complaints_are_counted_alike_in_both_languages() -> None:
    bodies = {row["_id"]: row["body"] for row in records(EXAMPLES / "xpay" / "tickets.jsonl")}
    assert "12 complaints about refund requests" in bodies["TCK-1043"]
    assert "12 起关于退款接口 timeout" in bodies["TCK-1042"]


def test_only_the_other_tenant_carries_the_marker() -> None:
    for row in records(EXAMPLES / "other_tenant" / "tickets.jsonl"):
        assert "ZEBRA-TENANT" in row["subject"]
        assert "ZEBRA-TENANT" in row["body"]
    for path in [*(EXAMPLES / "xpay").rglob("*.*"), *LIBRARY.glob("*.*")]:
        assert "ZEBRA-TENANT" not in path.read_text(encoding="utf-8"), path


def test_catalogue_is_complete() -> None:
    rows = records(LIBRARY / "catalogue.jsonl")
    assert len({row["annotation"] for row in rows}) == len(rows)
    assert {row["language"] for row in rows} == {"en", "ru", "uk", "zh"}
    for row in rows:
        assert 500 <= len(row["annotation"]) <= 900, row["_id"]
        assert isinstance(row["year"], int)
        assert row["year"] < 1929
        assert row["authors"]
        assert row["keywords"]
        assert row["udc"]
    assert sum("physics" in row["keywords"] for row in rows) >= 6
    assert sum("psychology" in row["keywords"] for row in rows) >= 4


@pytest.mark.parametrize("name", GUIDES[1:])
def test_guides_give_the_same_numbers(name: str) -> None:
    assert set(numbers(LIBRARY / name)) == set(numbers(LIBRARY / GUIDES[0]))


def test_texts_have_five_formats_and_two_hundred_words() -> None:
    texts = LIBRARY / "texts"
    assert {p.suffix for p in texts.iterdir()} == {".txt", ".html", ".md", ".pdf", ".docx"}
    for path in texts.iterdir():
        if path.suffix in TEXT_SUFFIXES:
            assert len(re.sub(r"<[^>]+>", " ", path.read_text(encoding="utf-8")).split()) >= 200, (
                path
            )


def test_pdf_has_a_text_layer_and_page_footers() -> None:
    pypdf = pytest.importorskip("pypdf")
    reader = pypdf.PdfReader(LIBRARY / "texts" / "chemical_history_of_a_candle.pdf")
    pages = [page.extract_text() for page in reader.pages]
    assert len(pages) >= 2
    assert all(f"page {number}" in text for number, text in enumerate(pages, 1))
    assert "Michael Faraday" in pages[0]
    assert len(" ".join(pages).split()) >= 200


def test_docx_has_headings_and_core_properties() -> None:
    with zipfile.ZipFile(LIBRARY / "texts" / "flatland_section_1.docx") as archive:
        body = archive.read("word/document.xml").decode("utf-8")
        core = archive.read("docProps/core.xml").decode("utf-8")
    assert 'w:val="Heading1"' in body
    assert "Edwin A. Abbott" in core
    assert len(re.sub(r"<[^>]+>", " ", body).split()) >= 200
