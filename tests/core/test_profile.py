"""Profiles: those that come with Carrel are sound, and a broken one is told in one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.errors import CallerError
from core.profile import built_in_profiles, load_profile
from core.settings import load_settings

TOOL = "{name: search_books, purpose: Books by their topic.}"


def test_the_built_in_profiles_are_sound() -> None:
    assert built_in_profiles() == ["default", "library", "projects", "techdocs", "xpay"]
    for name in built_in_profiles():
        profile = load_profile(name)
        assert profile.name == name
        assert profile.description
        load_settings(None, profile.settings)


def test_a_profile_is_read_from_a_path(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(f"name: mine\nsettings: {{top_k: 7}}\ntools: [{TOOL}]\n", encoding="utf-8")
    profile = load_profile(str(path))
    assert (profile.name, profile.settings) == ("mine", {"retrieval.top_k": 7})
    assert profile.tools[0].base == "search"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "name: Field required"),
        (b"name: a b", "name: "),
        (b"name: a\nsettings: {topk: 5}", "unknown or fixed settings: topk"),
        (b"name: a\nsettings: {data: /x}", "unknown or fixed settings: data"),
        (b"name: a\ncolour: red", "colour: Extra inputs"),
        (f"name: a\ntools: [{TOOL}, {TOOL}]".encode(), "tool names must differ"),
        (b"name: a\ntools: [{name: X, purpose: Books by topic.}]", "tools.0.name"),
        (b"name: a\ntools: [{name: xyz, base: rm, purpose: Books by topic.}]", "tools.0.base"),
        (b"- a\n- b", "mine.yaml"),
        (b"just text", "mine.yaml"),
        (b"name: [", "not valid YAML"),
        (b"\xff\xfe\x00", "not valid YAML"),
        (b"!!python/object/apply:os.getcwd []", "not valid YAML"),
        (b"[" * 20_000, "not valid YAML"),
    ],
)
def test_a_broken_profile_is_one_line(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "mine.yaml"
    path.write_bytes(content)
    with pytest.raises(CallerError) as caught:
        load_profile(str(path))
    assert message in str(caught.value)
    assert "mine.yaml" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["unheard", "", "../profiles/default", "a/b.yaml", "~"])
def test_an_unknown_profile_is_answered_with_the_known_ones(name: str) -> None:
    with pytest.raises(CallerError, match="Built-in: default, library, projects, techdocs, xpay"):
        load_profile(name)
