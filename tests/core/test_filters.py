"""Filters: what they say, what passes, and what is no filter."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import CallerError
from core.metadata import (
    Filter,
    as_texts,
    document_family,
    meets_filter,
    parse_filter,
    parse_filters,
    version_order,
)

COLUMNS = {
    "source": "docs/v2/Refund.md",
    "title": "Refunds",
    "format": "markdown",
    "language": "en",
    "version": "2.10",
    "updated_at": "2024-03-01",
    "metadata": json.dumps(
        {
            "authors": ["Jane Smith", "Толстой, Лев"],
            "keywords": ["api", "Money back"],
            "published": "2023-05-07T10:00",
            "price": 9.5,
            "Status": "open",
            "draft": False,
        }
    ),
}


def passes(text: str) -> bool:
    return meets_filter(text, *(COLUMNS[name] for name in parse_filter(text).columns))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("author=Smith", True),
        ("author = smith, jane", True),
        ("author=Smit", False),
        ("author~smit", True),
        ("автор=толстой", True),
        ("creator!=Smith", False),
        ("creator!=Miller", True),
        ("tag=api", True),
        ("tags=money  back", True),
        ("tag=money", False),
        ("keyword=mon*", True),
        ("date>=2020", True),
        ("date=2023", True),
        ("date=2023-05", True),
        ("date<=2023-05", True),
        ("date>2023", False),
        ("date<2023-05-07", False),
        ("date>=2023-06", False),
        ("year>=2023", True),
        ("updated_at>=2024", True),
        ("type=md", True),
        ("type=markdown", True),
        ("type!=pdf", True),
        ("type=pdf", False),
        ("file=*.md", True),
        ("file=refund.md", True),
        ("file=docs/*", True),
        ("file=v2", False),
        ("file~v2", True),
        ("language=en", True),
        ("version=2.10", True),
        ("version=2.*", True),
        ("version=2", True),
        ("version=2.10.0", True),
        ("version=2.1", False),
        ("version>2.9", True),
        ("version<2.9", False),
        ("price<10", True),
        ("price=9.50", True),
        ("price>=cheap", None),
        ("date>=May", None),
        ("status=OPEN", True),
        ("draft=false", True),
        ("colour=red", False),
        ("colour!=red", True),
        ("title~fund", True),
        ("status=closed|Open", True),
        ("status=closed|new", False),
        ("status!=closed|open", False),
        ("metadata.status=open", True),
        ("metadata.language=en", False),
        ("metadata.tag=api", True),
    ],
)
def test_a_filter_compares_one_field(text: str, expected: bool | None) -> None:
    if expected is None:
        with pytest.raises(CallerError, match="compares numbers, versions and dates"):
            passes(text)
    else:
        assert passes(text) is expected


@pytest.mark.parametrize("text", ["", "author", "=x", "author=", " = ", "a!b=c", "version!=latest",
                                  "a=\x00", "f" * 101 + "=1", "f=" + "v" * 2001])  # fmt: skip
def test_what_is_no_filter_is_one_line(text: str) -> None:
    with pytest.raises(CallerError) as caught:
        parse_filter(text)
    assert "\n" not in str(caught.value)


@given(
    st.builds(
        Filter,
        field=st.from_regex(r"[a-zа-я_]{1,9}", fullmatch=True),
        op=st.sampled_from(["=", "!=", "~"]),
        value=st.from_regex(r"[a-z=<>~!*]{1,9}", fullmatch=True),
    )
)
def test_a_filter_is_read_as_it_is_written(one: Filter) -> None:
    assert one.op == "=" and one.latest or parse_filter(str(one)) == one or one.latest


def test_damaged_metadata_meets_nothing() -> None:
    assert not meets_filter("author=x", "{broken")
    assert not meets_filter("author=x", "[1]")


def test_an_object_says_what_fields_must_be() -> None:
    texts = as_texts({"author": "Smith", "year": 2020, "draft": True, "tag": ["a", "b"]})
    assert texts == ["author=Smith", "year=2020", "draft=true", "tag=a", "tag=b"]
    with pytest.raises(CallerError, match="at most 16 filters"):
        parse_filters(["a=1"] * 17)


def test_versions_sort_by_their_numbers() -> None:
    rising = ["", "main", "r9", "r10", "1.0.dev1", "1.0a1", "1.0rc2", "1.0", "1.0.post1", "1.9",
              "1.10", "2", "2024.1", "1!0.1"]  # fmt: skip
    assert sorted(reversed(rising), key=version_order) == rising
    assert version_order("v2.0") == version_order("2")


def test_versions_of_a_document_share_title_and_place() -> None:
    one = document_family("Guide 1.9", "docs/v1.9/guide.md")
    assert one == document_family("Guide 2.10", "docs/v2.10/guide.md")
    assert one != document_family("Guide 1.9", "other/v1.9/guide.md")
