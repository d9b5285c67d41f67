"""What prod refuses to start with, and how a log line stays one line."""

from __future__ import annotations

import json
import logging

import pytest

from core.errors import OperatorError
from core.settings import load_settings
from serve.access.network import check_mode
from serve.telemetry.logs import JsonLines, TextLines, log

CLOSED = {"allow_anonymous": False, "nobody_has_a_key": False}


def prod(**changes: object) -> None:
    given = {name: changes.pop(name, closed) for name, closed in CLOSED.items()}
    check_mode(load_settings({"serve_mode": "prod", **changes})[0], **given)


def test_prod_starts_when_nothing_is_open() -> None:
    prod()
    prod(serve_origins=["https://app.example", "http://localhost:3000"])
    prod(llm_url="http://127.0.0.1:8080/v1")
    prod(llm_url="https://models.example/v1")
    prod(jwt_key="k" * 32, jwt_audience="carrel", jwt_issuer="https://id.example")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"allow_anonymous": True}, "--allow-anonymous"),
        ({"nobody_has_a_key": True}, "carrel keys create"),
        ({"jwt_key": "k" * 32, "jwt_issuer": "x"}, "jwt.audience"),
        ({"jwt_key": "k" * 32, "jwt_audience": "x"}, "jwt.issuer"),
        ({"serve_ask_rate": 0}, "serve.ask_rate"),
        ({"serve_rate": 0}, "serve.rate"),
        ({"serve_wrong_keys": 0}, "serve.wrong_keys"),
        ({"audit": False}, "audit is off"),
        ({"serve_origins": ["http://app.example"]}, "http://app.example"),
        ({"serve_origins": ["*"]}, "serve.origins"),
        ({"llm_url": "http://192.0.2.1:8080/v1"}, "llm.url"),
    ],
)
def test_prod_names_what_is_open(changes: dict[str, object], words: str) -> None:
    with pytest.raises(OperatorError) as error:
        prod(**changes)
    assert words in str(error.value)
    assert "kkkk" not in str(error.value)


def test_prod_names_all_at_once() -> None:
    with pytest.raises(OperatorError) as error:
        prod(audit=False, serve_rate=0, nobody_has_a_key=True)
    assert "(3)" in str(error.value)


@pytest.mark.parametrize("mode", ["default", "dev"])
def test_other_modes_start_as_they_are(mode: str) -> None:
    settings, _ = load_settings({"serve_mode": mode, "audit": False, "serve_rate": 0})
    check_mode(settings, allow_anonymous=True, nobody_has_a_key=True)


@pytest.mark.parametrize("kind", [JsonLines, TextLines])
@pytest.mark.parametrize(
    "sent",
    ["x\n2026-01-01 forged", "a\r\nb", "\x1b[2Jgone", "l\u2028ine \u0085 \u202eright", "\x00"],
)
def test_what_a_caller_sends_begins_no_line(kind: type[JsonLines], sent: str) -> None:
    record = log.makeRecord(
        log.name, logging.INFO, "", 0, "bad value: %s", (sent,), None, extra={"user": sent}
    )
    line = kind().format(record)
    assert len(line.splitlines()) == 1
    assert line.isprintable()
    if kind is JsonLines:
        assert json.loads(line)["user"] == sent
