"""The figures of a collection, what they advise, and the page: on rows written by hand."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pytest

from core.profile import Profile
from core.settings import load_settings
from serve.study.page import figures, study_page
from serve.study.study import WEIGHTS, Study, advise, advised_profile, study

CODE = "import kite.sky\nfrom kite import wind\n\nkite.sky.launch(3)\nwind.read()"
PROSE = "A kite flies in the wind. It needs a long line and a person who holds it well. " * 3


def row(document: int, text: str, **given: Any) -> dict[str, Any]:
    metadata = given.pop("metadata", {})
    usual = {"title": "", "format": "markdown", "language": "en", "is_record": 0}
    return {
        **usual,
        **{"document": document, "kind": "text", "section": "", "text": text},
        **given,
        "metadata": json.dumps(metadata),
    }


def studied(*rows: Mapping[str, Any], name: str = "kites") -> Study:
    read: Callable[[], Iterable[Mapping[str, Any]]] = lambda: iter(rows)  # noqa: E731
    return study(name, "default", read)


@pytest.fixture
def kites() -> Study:
    entries = [{"name": "Launching", "type": "guide", "anchor": ""}]
    entries += [{"name": "kite.sky.launch", "type": "function", "anchor": "x"}]
    page = {"type": ["function", "guide"], "entries": entries, "module": "kite.sky"}
    return studied(
        row(1, PROSE, title="How to fly", section="a", metadata=page),
        row(1, CODE, title="How to fly", kind="code", section="b", metadata=page),
        row(2, "Read how to fly, or call kite.sky.launch. " + PROSE, title="Wind"),
    )


def test_documents_are_counted_by_type_with_their_lengths(kites: Study) -> None:
    assert kites.documents == 2 and kites.passages == 3 and kites.languages == {"en": 2}
    assert set(kites.types) == {"guide", "markdown"}  # the page's own type, else the format
    assert kites.types["guide"].median == len(PROSE) + len(CODE)
    assert kites.types["guide"].section == len(PROSE)
    assert kites.types["guide"].code == pytest.approx(len(CODE) / 306, abs=1e-3)
    assert 0 < kites.code_share < 0.2
    assert kites.sizes.count == 2 and sum(bar[2] for bar in kites.sizes.bars) == 2


def test_references_are_titles_and_names_of_others(kites: Study) -> None:
    assert (kites.references.least, kites.references.most) == (0, 1)


def test_modules_are_declared_or_imported(kites: Study) -> None:
    assert kites.module_depth == {0: 1, 1: 1}
    assert kites.modules == {"kite": 2, "kite.sky": 2}
    assert kites.thin_modules == ["kite", "kite.sky"]


def test_words_that_passages_repeat_are_counted_once() -> None:
    text = "A kite flies in the wind. It needs a long line."
    found = studied(row(1, text), row(1, f"{text[26:]} The kite lands."))
    assert found.words == studied(row(1, f"{text} The kite lands.")).words


def test_plain_words_are_easier_to_read_than_long_ones() -> None:
    hard = "Comprehensive internationalisation necessitates considerable organisational effort. "
    easy, difficult = studied(row(1, PROSE)), studied(row(1, hard * 6))
    assert easy.flesch is not None and difficult.flesch is not None
    assert easy.flesch > 80 > 0 > difficult.flesch
    assert (easy.fog or 0) < 8 < 20 < (difficult.fog or 0)


@pytest.mark.parametrize(
    ("text", "documents"),
    [
        ("Книга лежит на столе, и человек её читает каждый вечер после работы дома. " * 4, 1),
        ("Книжка лежить на столі, і людина її читає щовечора після роботи вдома. " * 4, 1),
        ("这本书放在桌子上,每个晚上有人在家里读它,然后再把它放回书架。" * 6, 0),
    ],
)
def test_readability_is_of_the_language_of_the_text(text: str, documents: int) -> None:
    found = studied(row(1, text, language="en"))  # wrongly declared
    assert found.readable == documents and found.words > 20


def test_code_in_a_chunk_of_a_whole_section_is_told_from_its_text() -> None:
    code = "print(jnp.max(jnp.abs(rows[0] - 1.0)))"
    assert studied(row(1, f"{PROSE}\n\n{code}\n\n{PROSE}")).code_share == 0
    fenced = f"{PROSE}\n\n```\n{code}\n```\n\n{PROSE}"
    assert 0.06 < studied(row(1, fenced)).code_share < 0.09


@pytest.mark.parametrize(
    "metadata",
    [{"code_density": "much"}, {"entries": ["x", 1]}, {"entries": 3, "type": 4}, {"module": [1]}],
)
def test_metadata_may_hold_anything(metadata: dict[str, Any]) -> None:
    assert studied(row(1, PROSE, metadata=metadata)).documents == 1


def test_nothing_is_a_study_too() -> None:
    assert studied().documents == 0 and len(figures([studied()])) == 10


def advised(found: Study, **given: Any) -> dict[str, Any]:
    return {one.setting: one.advised for one in advise(found, load_settings(given)[0])}


def test_documents_with_code_are_kept_whole_and_weighted(kites: Study) -> None:
    found = advised(kites)
    assert found == {
        "ingest.chunker": "structural",
        "selection.factor_amounts": [f"{name}={amount}" for name, amount in WEIGHTS.items()],
    }
    assert advised(kites, **found) == {}


def test_amounts_that_somebody_chose_stay(kites: Study) -> None:
    found = advised(kites, **{"selection.factor_amounts": ["title=0.4", "code=0.2"]})
    more = [f"{name}={WEIGHTS[name]}" for name in list(WEIGHTS)[1:]]
    assert found["selection.factor_amounts"] == ["title=0.4", "code=0.2", *more]


def test_sections_stay_whole_up_to_the_longest_usual_one(kites: Study) -> None:
    assert advised(kites, **{"ingest.structural_max": 500})["ingest.structural_max"] == 4000
    long = studied(row(1, PROSE * 100, metadata={"code_density": 0.5}))
    assert advised(long, **{"ingest.structural_max": 500})["ingest.structural_max"] == 24_000


def test_prose_is_left_as_it_is_but_for_a_wide_overlap() -> None:
    found = studied(row(1, PROSE))
    assert advised(found) == {}
    assert advised(found, **{"ingest.chunk_overlap": 300}) == {"ingest.chunk_overlap": 100}


def test_advice_changes_its_settings_alone(kites: Study) -> None:
    before = Profile(name="mine", settings={"retrieval.top_k": 7})
    after = advised_profile(before, advise(kites, load_settings({})[0]))
    assert after.name == "mine" and after.settings["retrieval.top_k"] == 7
    assert after.settings["ingest.chunker"] == "structural"
    assert Profile.model_validate_json(after.model_dump_json()) == after


def test_the_page_has_ten_figures_and_nothing_that_runs(kites: Study) -> None:
    other = studied(row(1, PROSE), name="<b>calm</b>")
    found = kites.model_copy(update={"advice": advise(kites, load_settings({})[0])})
    page = study_page([found, other])
    assert page.count("<figure>") == 10 and "<script" not in page and "<b>calm" not in page
    for text in ("1. Documents by type", "10. Length of sentences", "kite.sky", "Gunning fog"):
        assert text in page
    assert "carrel report kites --apply" in page and "--apply" in page
    assert "http://" not in page and "https://" not in page


def test_bars_of_collections_stand_on_the_same_steps(kites: Study) -> None:
    sizes = figures([kites, studied(row(1, PROSE * 60), name="long")])[1].values
    assert list(sizes)[0] == "0–499" and list(sizes)[-1] == "10,000–19,999"
    assert sizes["10,000–19,999"] == [0, 1.0]
