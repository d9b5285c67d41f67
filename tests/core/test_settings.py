"""Settings: the figures of the specification, precedence, origins, and errors of one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.errors import CallerError
from core.settings import PREFIX, Settings, load_settings

SPECIFIED = {
    "chunk_size": 1000,
    "chunk_overlap": 100,
    "weight_vector": 0.6,
    "text_cutoff": 0.3,
    "vector_k": 5,
    "vector_k_extended": 15,
    "text_k": 5,
    "text_k_extended": 10,
    "records_k": 5,
    "records_k_extended": 15,
    "top_k": 10,
}


def test_the_defaults_are_those_of_the_specification() -> None:
    settings, origins = load_settings()
    assert {name: getattr(settings, name) for name in SPECIFIED} == SPECIFIED
    assert {origins[name] for name in SPECIFIED} == {"default"}


@pytest.mark.parametrize(
    ("flag", "environment", "profile", "value", "origin"),
    [
        (None, None, None, 10, "default"),
        (None, None, 11, 11, "profile"),
        (None, "12", 11, 12, "environment"),
        (13, "12", 11, 13, "flag"),
        (13, None, None, 13, "flag"),
        (None, "10", None, 10, "environment"),
    ],
)
def test_a_flag_beats_the_environment_beats_the_profile(
    monkeypatch: pytest.MonkeyPatch, flag, environment, profile, value, origin
) -> None:
    if environment is not None:
        monkeypatch.setenv(PREFIX + "TOP_K", environment)
    settings, origins = load_settings({"top_k": flag}, {"top_k": profile} if profile else None)
    assert (settings.top_k, origins["top_k"]) == (value, origin)


@pytest.mark.parametrize(
    ("listed", "languages"),
    [("ru", ["ru"]), ("ru, uk ,en", ["ru", "uk", "en"]), ("ru,,", ["ru"])],
)
def test_a_list_in_the_environment_has_commas(
    monkeypatch: pytest.MonkeyPatch, listed: str, languages: list[str]
) -> None:
    monkeypatch.setenv(PREFIX + "EMBEDDER_LANGUAGES", listed)
    assert load_settings()[0].embedder_languages == languages


def test_a_list_in_a_flag_has_commas_too() -> None:
    settings, _ = load_settings({"serve_anonymous_roles": "writer, admin,"})
    assert settings.serve_anonymous_roles == ["writer", "admin"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("top_k", "many"),
        ("top_k", "0"),
        ("top_k", ""),
        ("weight_vector", "1.5"),
        ("budget_seconds", "-1"),
        ("max_rewrites", "99"),
        ("text_cutoff", "nan"),
    ],
)
def test_a_bad_value_is_one_line_that_names_its_place(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    for given, place in (
        (lambda: load_settings({name: value}), "(flag)"),
        (lambda: load_settings(None, {name: value}), "(profile)"),
    ):
        with pytest.raises(CallerError) as caught:
            given()
        assert f"setting '{name}' {place}" in str(caught.value)
        assert "\n" not in str(caught.value)
    monkeypatch.setenv(PREFIX + name.upper(), value)
    with pytest.raises(CallerError, match=rf"\({PREFIX}{name.upper()}\).*carrel config"):
        load_settings()


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"chunk_size": 100, "chunk_overlap": 100}, "chunk_overlap .100. must be below"),
        ({"grade_related": 0.9}, "grade_related <= grade_partly"),
    ],
)
def test_values_that_do_not_fit_together_are_one_line(values, message: str) -> None:
    with pytest.raises(CallerError, match=message) as caught:
        load_settings(values)
    assert "\n" not in str(caught.value)
    assert "Value error" not in str(caught.value)
    assert "(profile)" not in str(caught.value)


def test_an_unknown_setting_is_refused() -> None:
    with pytest.raises(CallerError, match="topk"):
        load_settings({"topk": 5})


def test_the_data_directory_comes_from_the_environment(tmp_path: Path) -> None:
    settings, origins = load_settings()
    assert (settings.data, origins["data"]) == (tmp_path / "data", "environment")


def test_every_setting_is_described() -> None:
    assert [name for name, field in Settings.model_fields.items() if not field.description] == []


def test_the_budget_is_made_of_the_settings() -> None:
    settings, _ = load_settings({"budget_steps": 7, "budget_answer_share": 0.5})
    budget = settings.budget()
    assert (budget.steps, budget.answer_share, budget.tokens) == (7, 0.5, settings.budget_tokens)


@pytest.mark.parametrize(
    "url",
    ["http://", "http://[::1", "http://localhost:99999/v1", "http://localhost:x/v1", "http://a:0"],
)
def test_the_url_of_a_model_server_is_a_url(url: str) -> None:
    with pytest.raises(CallerError, match=r"'llm_url' \(flag\)"):
        load_settings({"llm_url": url})


def test_no_error_of_a_setting_shows_a_key_or_a_password() -> None:
    for values in ({"llm_url": "http://me:hush@localhost/v1"}, {"llm_key": "hush\nhush"}):
        with pytest.raises(CallerError, match="a URL holds no password|printable ASCII") as raised:
            load_settings(values)
        assert "hush" not in str(raised.value)


def test_blanks_around_a_key_do_not_count() -> None:
    key = load_settings({"llm_key": " abc\n"})[0].llm_key
    assert key is not None
    assert key.get_secret_value() == "abc"
