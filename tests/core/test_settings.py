"""Settings: the figures of the specification, precedence, origins, and errors of one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from core import settings as settings_module
from core.errors import CallerError
from core.settings import (
    FIELDS,
    LIVE,
    PREFIX,
    Settings,
    changes_of,
    known_values,
    load_settings,
    nearest,
    variable_of,
)
from core.settings_sources import using

SPECIFIED = {
    "ingest.chunk_size": 1000,
    "ingest.chunk_overlap": 100,
    "retrieval.weight_vector": 0.6,
    "retrieval.text_cutoff": 0.3,
    "retrieval.vector_k": 5,
    "retrieval.vector_k_extended": 15,
    "retrieval.text_k": 5,
    "retrieval.text_k_extended": 10,
    "retrieval.records_k": 5,
    "retrieval.records_k_extended": 15,
    "retrieval.top_k": 10,
}


def test_the_defaults_are_those_of_the_specification() -> None:
    settings, origins = load_settings()
    assert {name: settings.value(name) for name in SPECIFIED} == SPECIFIED
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
        monkeypatch.setenv(PREFIX + "RETRIEVAL__TOP_K", environment)
    settings, origins = load_settings({"top_k": flag}, {"top_k": profile} if profile else None)
    assert (settings.retrieval.top_k, origins["retrieval.top_k"]) == (value, origin)


@pytest.mark.parametrize(
    ("listed", "languages"), [("ru", ["ru"]), ("ru, uk ,en", ["ru", "uk", "en"]), ("ru,,", ["ru"])]
)
def test_a_list_in_the_environment_has_commas(
    monkeypatch: pytest.MonkeyPatch, listed: str, languages: list[str]
) -> None:
    monkeypatch.setenv(PREFIX + "EMBEDDING__LANGUAGES", listed)
    assert load_settings()[0].embedder_languages == languages
    settings, _ = load_settings({"embedding.languages": listed})
    assert settings.embedding.languages == languages


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("retrieval.top_k", "many"),
        ("retrieval.top_k", "0"),
        ("retrieval.top_k", ""),
        ("retrieval.weight_vector", "1.5"),
        ("budget.seconds", "-1"),
        ("answering.max_rewrites", "99"),
        ("retrieval.text_cutoff", "nan"),
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
    monkeypatch.setenv(variable_of(name), value)
    with pytest.raises(CallerError, match=rf"\({variable_of(name)}\).*carrel config"):
        load_settings()


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"chunk_size": 100, "chunk_overlap": 100}, "ingest.chunk_overlap .100. must be below"),
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
    assert [name for name, field in FIELDS.items() if not field.description] == []


def test_the_budget_is_made_of_the_settings() -> None:
    settings, _ = load_settings({"budget_steps": 7})
    budget = settings.run_budget()
    tokens = settings.budget.tokens
    assert (budget.steps, budget.answer_share, budget.tokens) == (7, 0.15, tokens)


@pytest.mark.parametrize(
    "url",
    ["http://", "http://[::1", "http://localhost:99999/v1", "http://localhost:x/v1", "http://a:0"],
)
def test_the_url_of_a_model_server_is_a_url(url: str) -> None:
    with pytest.raises(CallerError, match=r"'llm.url' \(flag\)"):
        load_settings({"llm_url": url})


def test_no_error_of_a_setting_shows_a_key_or_a_password() -> None:
    key = load_settings({"llm_key": " abc\n"})[0].llm_key  # blanks around it do not count
    assert key is not None and key.get_secret_value() == "abc"
    for values in ({"llm_url": "http://me:hush@localhost/v1"}, {"llm_key": "hush\nhush"}):
        with pytest.raises(CallerError, match="a URL holds no password|printable ASCII") as raised:
            load_settings(values)
        assert "hush" not in str(raised.value)


def test_the_value_of_a_misspelt_setting_is_not_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PREFIX + "LLM", '{"kye": "sk-4711"}')
    with pytest.raises(CallerError, match=r"llm\.kye") as caught:
        load_settings()
    assert "4711" not in str(caught.value)


@pytest.fixture
def _nothing_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings_module, "_noted", set())


def test_every_old_name_leads_to_a_setting_and_no_two_to_one() -> None:
    assert set(settings_module.FLAT.values()) <= set(FIELDS)
    assert len(set(settings_module.FLAT.values())) == len(settings_module.FLAT)


@pytest.mark.usefixtures("_nothing_noted")
def test_an_old_name_is_read_with_one_note(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv(PREFIX + "TOP_K", "4")
    monkeypatch.setenv(PREFIX + "AUDIT", "off")
    path = tmp_path / "old.yaml"
    path.write_text("pool: 50\ntop_k: 9\n", encoding="utf-8")
    for _ in range(2):
        settings, origins = load_settings(known_values({"text_k": "6"}, "--set"), file=str(path))
    found = settings.retrieval
    assert (found.top_k, found.pool, found.text_k, settings.audit.enabled) == (4, 50, 6, False)
    assert origins["retrieval.top_k"] == "environment"
    told = capsys.readouterr()
    assert told.out == ""
    notes = told.err.splitlines()
    assert len(notes) == 5 and all(note.startswith("note: ") for note in notes)
    for end in ("top_k is retrieval.top_k", "CARREL_TOP_K is CARREL_RETRIEVAL__TOP_K"):
        assert f"note: {end} now; the old name is read until 1.0" in notes


@pytest.mark.usefixtures("_nothing_noted")
def test_a_variable_that_is_no_setting_is_noted_with_one_that_is_near(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("RETRIEVAL__TOPK", "TOPP_K", "XYZZY"):
        monkeypatch.setenv(PREFIX + name, "2")
    for name in ("DEBUG", "EVAL_DATA", "FAULT_AT", "FAULT_SHIM", "TESTS", "TEST_GGUF"):
        monkeypatch.setenv(PREFIX + name, "")
    assert load_settings()[0].retrieval.top_k == 10
    notes = capsys.readouterr().err.splitlines()
    assert len(notes) == 3
    for name in ("RETRIEVAL__TOPK", "TOPP_K"):
        start = f"note: CARREL_{name} is the variable of no setting and has no effect"
        assert f"{start}; the nearest is CARREL_RETRIEVAL__TOP_K" in notes
    assert notes[-1].endswith("CARREL_XYZZY is the variable of no setting and has no effect")


@pytest.mark.parametrize(
    ("variable", "value", "words"),
    [
        ("RETRIEVAL", "abc", "CARREL_RETRIEVAL is a group of settings, given as JSON: abc"),
        ("RETRIEVAL", "5", "CARREL_RETRIEVAL is a group"),
        ("LLM", "sk-4711", "CARREL_LLM is a group"),
        ("SERVE__HOSTS", "[a", "CARREL_SERVE__HOSTS"),
    ],
)
def test_a_variable_that_cannot_be_read_is_named(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str, words: str
) -> None:
    monkeypatch.setenv(PREFIX + variable, value)
    with pytest.raises(CallerError, match=words) as caught:
        load_settings()
    assert "4711" not in str(caught.value)


@pytest.mark.usefixtures("_nothing_noted")
def test_the_variables_that_stay_and_those_of_a_command_are_read_without_a_note(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(PREFIX + "LLM_URL", "http://localhost:1/v1")
    assert load_settings()[0].llm.url == "http://localhost:1/v1"
    with using({PREFIX + "TOP_K": "3"}):
        assert load_settings()[0].retrieval.top_k == 3
    assert capsys.readouterr().err == ""


@pytest.mark.usefixtures("_nothing_noted")
def test_a_new_name_beats_the_old_one_and_a_group_may_be_json(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(PREFIX + "TOP_K", "3")
    monkeypatch.setenv(PREFIX + "RETRIEVAL__TOP_K", "5")
    monkeypatch.setenv(PREFIX + "SERVE", '{"port": 1, "hosts": ["a", "b"]}')
    monkeypatch.setenv(PREFIX + "SERVE__PORT", "2")
    settings, _ = load_settings()
    assert settings.retrieval.top_k == 5
    assert (settings.serve.port, settings.serve.hosts) == (2, ["a", "b"])
    monkeypatch.setenv(PREFIX + "SERVE", "{")
    with pytest.raises(CallerError, match="JSON"):
        load_settings()


def test_values_are_given_by_group_by_name_and_by_old_name() -> None:
    given = Settings(retrieval={"top_k": 3}, pool=50, **{"serve.port": 1})
    assert (given.retrieval.top_k, given.retrieval.pool, given.serve.port) == (3, 50, 1)
    assert given.given() == {"retrieval.top_k", "retrieval.pool", "serve.port"}
    assert given.top_k == 3  # the old name, for notebooks
    changed = given.model_copy(update={"retrieval.top_k": 4, "text_k": 2, "data": Path("x")})
    found = changed.retrieval
    assert (found.top_k, found.pool, found.text_k, changed.data) == (4, 50, 2, Path("x"))
    assert given.retrieval.top_k == 3
    again = Settings(**{**given.model_dump(), "top_k": 9})  # the later of two names counts
    assert (again.retrieval.top_k, again.retrieval.pool) == (9, 50)
    with pytest.raises(AttributeError, match="topk"):
        _ = given.topk


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("topk", "retrieval.top_k"),
        ("retrieval.topk", "retrieval.top_k"),
        ("fusiom", ""),
        ("xyzzy", ""),
    ],
)
def test_an_unknown_name_is_told_the_nearest_one(name: str, near: str) -> None:
    assert nearest(name) == near
    with pytest.raises(CallerError, match=f"unknown setting: {name}") as caught:
        known_values({name: 1}, "--set")
    assert (f"the nearest is {near}" in (caught.value.hint or "")) == bool(near)


def test_who_may_change_a_setting_is_said_beside_it() -> None:
    assert "retrieval.top_k" in LIVE and "serve.rate" in LIVE and "serve.port" not in LIVE
    assert changes_of("llm.url").command == changes_of("embedder").command == "refused"
    assert changes_of("serve.rate").command == "ignored"
    assert changes_of("ingest.chunk_size").command == "own"


def test_there_are_few_enough_settings_to_read() -> None:
    assert len(FIELDS) <= 251
