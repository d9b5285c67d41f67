"""A caller is a plain, closed and unchangeable value."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from core.auth import AuthContext, checked_sources
from core.errors import CallerError


@pytest.mark.parametrize("name", ["acme", "a", "x" * 64, "ann@example.org", "Ünï-1_2.3", "日本"])
def test_plain_names_are_accepted(name: str) -> None:
    auth = AuthContext(tenant=name, user=name, roles=frozenset({name}))
    assert auth.principals == {name, f"user:{name}"}


@pytest.mark.parametrize(
    "name", ["", " ", "a b", "a/b", "a:b", "x" * 65, "a\n", "a\x00", "../x", "'", "e\u0301", "*"]
)
@pytest.mark.parametrize("where", ["tenant", "user", "roles"])
def test_other_names_are_refused_in_one_line(where: str, name: str) -> None:
    value = frozenset({name}) if where == "roles" else name
    with pytest.raises(CallerError, match="1 to 64 letters") as caught:
        AuthContext(**{"tenant": "acme", where: value})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"tenant": None},
        {"tenant": "a", "role": "boss"},
        {"tenant": "a", "allowed_sources": "docs/*"},
        {"tenant": "a", "version_policy": ""},
        {"tenant": "a", "version_policy": "v" * 65},
    ],
)
def test_a_caller_is_closed_to_anything_else(values: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        AuthContext(**values)


def test_a_caller_cannot_be_changed() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        AuthContext(tenant="acme").tenant = "rival"


def test_without_more_a_caller_has_no_role_and_no_confinement() -> None:
    auth = AuthContext(tenant="acme")
    assert auth.principals == {"user:local"}
    assert (auth.allowed_sources, auth.version_policy) == (None, "any")


@pytest.mark.parametrize(("sources", "shown"), [(None, None), ((), []), (("a/*",), ["a/*"])])
def test_the_trace_shows_the_filter(sources, shown) -> None:
    auth = AuthContext(tenant="acme", roles=frozenset({"b", "a"}), allowed_sources=sources)
    assert auth.describe() == {
        "tenant": "acme",
        "user": "local",
        "roles": ["a", "b"],
        "allowed_sources": shown,
        "version_policy": "any",
    }


@pytest.mark.parametrize("sources", [[""], ["a\x00"], ["a" * 1001], ["a"] * 501])
def test_source_patterns_are_bounded_where_somebody_gives_them(sources: list[str]) -> None:
    with pytest.raises(CallerError, match="source pattern"):
        checked_sources(sources)
    assert checked_sources(["docs/*"] * 500) == ("docs/*",) * 500
