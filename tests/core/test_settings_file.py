"""Settings from a file and from a mode: where they stand, and what is wrong with a bad file."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from core.errors import CallerError
from core.settings import (
    FIELDS,
    LIVE,
    PREFIX,
    SECRETS,
    Settings,
    by_name,
    load_settings,
    taken_over,
)
from core.settings_sources import VARIABLE, built_in_modes, mode_values

ROOT = Path(__file__).resolve().parents[2]


def written(folder: Path, text: str) -> str:
    path = folder / "settings.yaml"
    path.write_text(text, encoding="utf-8")
    return str(path)


@pytest.mark.parametrize(
    ("flag", "variable", "value", "origin"),
    [(None, None, 7, "file"), (None, "8", 8, "environment"), (9, "8", 9, "flag")],
)
def test_a_file_is_above_the_profile_and_below_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flag, variable, value, origin
) -> None:
    text = "retrieval:\n  top_k: 7\nembedding:\n  languages: [ru, uk]\n"
    monkeypatch.setenv(VARIABLE, written(tmp_path, text))
    if variable:
        monkeypatch.setenv(PREFIX + "RETRIEVAL__TOP_K", variable)
    settings, origins = load_settings({"top_k": flag}, {"top_k": 5, "text_k": 6})
    assert (settings.retrieval.top_k, origins["retrieval.top_k"]) == (value, origin)
    assert (settings.retrieval.text_k, origins["retrieval.text_k"]) == (6, "profile")
    assert settings.embedding.languages == ["ru", "uk"]
    assert load_settings(file="")[0].embedder_languages is None


def test_a_named_file_is_read_in_place_of_the_variables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "none.yaml"))
    assert load_settings(file=written(tmp_path, "# nothing yet\n"))[0] == load_settings(file="")[0]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("top_k: many", "setting 'retrieval.top_k' (settings file)"),
        ("top_k: 0", "settings file"),
        ("walrus: 1", "unknown setting: walrus"),
        ("- top_k", "one setting a line"),
        ("1: 2", "one setting a line"),
        ("top_k: [", "not valid YAML"),
        ("a: &a [*a, *a]\n" * 2 + "!!python/object:os.system x", "not valid YAML"),
        ("chunk_size: 100\nchunk_overlap: 100", "below ingest.chunk_size"),
        ("llm: {key: [walrus]}", "llm.key"),
        ("retrieval:\n  top_k: 0", "'retrieval.top_k' (settings file)"),
        ("retrieval:\n  topk: 1", "nearest is retrieval.top_k"),
        ("topk: 1\nwalrus: 2", "topk (the nearest is retrieval.top_k), walrus. `carrel"),
        ('[llm]\nurl = "x"', "a settings file is YAML"),
        ("retrieval: 5", "Its settings stand below it"),
    ],
)
def test_a_bad_file_is_one_line_that_says_why(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(CallerError) as error:
        load_settings(file=written(tmp_path, text))
    assert words in str(error.value) and "\n" not in str(error.value)
    assert "walrus" not in str(error.value) or "walrus:" in text


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    large = tmp_path / "large.yaml"
    large.write_bytes(b"#" * 1_000_001)
    for path, words in ((tmp_path / "none", "readable"), (tmp_path, "readable"), (large, "bytes")):
        with pytest.raises(CallerError, match=words):
            load_settings(file=str(path))


def test_a_mode_is_below_everything_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert built_in_modes() == ["dev", "prod"]
    settings, origins = load_settings({"serve_mode": "prod"}, {"serve_rate": 5})
    assert (settings.serve.ask_rate, origins["serve.ask_rate"]) == (60, "mode")
    assert (settings.serve.rate, origins["serve.rate"]) == (5, "profile")
    monkeypatch.setenv(PREFIX + "SERVE__MODE", "prod")
    path = written(tmp_path, "serve_mode: dev\nserve_ask_rate: 3\n")
    settings, _ = load_settings(file=path)
    serve = settings.serve
    assert (serve.mode, serve.ask_rate, serve.log_format) == ("prod", 3, "json")
    monkeypatch.delenv(PREFIX + "SERVE__MODE")
    settings, origins = load_settings(file=path)
    assert (settings.serve.log_format, origins["serve.log_format"]) == ("text", "mode")
    with pytest.raises(CallerError, match="serve.mode"):
        load_settings({"serve_mode": "../dev"})


@pytest.mark.parametrize("mode", ["dev", "prod"])
def test_a_mode_holds_no_secret_and_says_where_it_listens(mode: str) -> None:
    values = by_name(mode_values(mode))
    assert values and not SECRETS & values.keys()
    assert load_settings({"serve_mode": mode})[0].serve_host == "127.0.0.1"


def read_once() -> set[str]:
    """Name the settings that stores and models read, which are made when a server starts."""
    found = set()
    for path in (*ROOT.glob("stores/**/*.py"), *ROOT.glob("models/**/*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and "settings." in (name := ast.unparse(node)):
                found.add(name.rpartition("settings.")[2])
    return found & FIELDS.keys()


def test_what_is_made_once_is_not_called_live() -> None:
    assert set(FIELDS) >= LIVE
    assert len(read_once()) > 40 and not read_once() & LIVE
    for name in (*SECRETS, "data", "serve.host", "serve.port", "embedder", "llm.url", "serve.mode"):
        assert name not in LIVE


def test_live_settings_are_taken_over_and_others_stay() -> None:
    old, _ = load_settings({"top_k": 5, "serve_port": 1, "budget_steps": 9})
    new, _ = load_settings({"top_k": 6, "serve_port": 2, "serve_rate": 3})
    done = taken_over(old, new)
    assert (done.top_k, done.serve_port, done.serve_rate) == (6, 1, 3)
    assert done.budget_steps == Settings().budget_steps
    given = done.given() - load_settings()[0].given()
    assert given == {"retrieval.top_k", "serve.port", "serve.rate"}
    assert old.top_k == 5
