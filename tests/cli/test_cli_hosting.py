"""The settings and paths of a command that a server runs."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from cli.arguments import named_path
from cli.options import opened
from cli.server.hosting import on_top
from cli.server.running import Host, hosted, shown
from core.errors import CallerError
from core.settings import FIELDS, LIVE, SECRETS, Settings, changes_of, load_settings
from core.settings_sources import using


def test_a_commands_settings_lie_on_top_of_the_servers() -> None:
    server = Settings(top_k=3, pool=77, serve_port=8500, embedder_threads=2)
    with using(
        {
            "CARREL_RETRIEVAL__TOP_K": "5",
            "CARREL_SERVE__PORT": "1",
            "CARREL_AUDIT__ENABLED": "false",
        }
    ):
        command, _ = load_settings({"chunk_size": 333, "embedder_threads": 2}, {"text_k": 40})
        found = on_top(server, command)
    assert (found.top_k, found.chunk_size, found.text_k) == (5, 333, 40)
    assert (found.pool, found.embedder_threads) == (77, 2)
    assert (found.serve_port, found.audit.enabled, found.data) == (8500, True, server.data)
    # A collection's profile gives way to what anybody has said, and to nothing else.
    given = {"ingest.chunk_size", "embedding.threads", "serve.port"}
    assert found.given() == given | {f"retrieval.{name}" for name in ("top_k", "text_k", "pool")}


@pytest.mark.parametrize(
    ("name", "value"),
    [("embedding.threads", 3), ("llm.url", "http://127.0.0.1:1/v1"), ("caching.mb", 1)],
)
def test_what_the_server_made_once_stays(name: str, value: Any) -> None:
    server = Settings()
    with pytest.raises(CallerError, match=f"the running server decides {name}"):
        on_top(server, Settings(**{name: value}))
    assert on_top(Settings(**{name: value}), Settings()) == Settings(**{name: value})
    assert on_top(server, Settings(**{name: server.value(name)})) == server


def test_no_secret_is_told() -> None:
    with pytest.raises(CallerError) as caught:
        on_top(Settings(), Settings(llm_key="sesame"))
    assert "sesame" not in str(caught.value)
    refused = {name for name in FIELDS if changes_of(name).command == "refused"}
    assert not refused & LIVE - SECRETS


def test_settings_that_clash_are_explained() -> None:
    with pytest.raises(CallerError, match="chunk_overlap"):
        on_top(Settings(chunk_size=400, chunk_overlap=300), Settings(chunk_size=200))


def test_paths_lead_to_where_the_command_was_typed(tmp_path: Path) -> None:
    command = SimpleNamespace(request=SimpleNamespace(folder=str(tmp_path)))
    with hosted(cast(Host, SimpleNamespace(command=command, paths={}))):
        found = named_path("notes/a.md")
        assert found == tmp_path / "notes" / "a.md"
        assert shown(found) == "notes/a.md"
        assert named_path("/etc/hosts") == Path("/etc/hosts")
        assert named_path("~/x") == Path.home() / "x"
        with pytest.raises(CallerError), opened(Settings(), alone=True):
            pass
    assert named_path("notes/a.md") == Path("notes/a.md") and shown(Path("a")) == "a"
