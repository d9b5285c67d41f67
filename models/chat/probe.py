"""Find out what the server at `llm_url` is and can do, without the libraries that talk to it."""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from core.settings import Settings
from core.types import Value
from models.chat.faults import ModelRefused, status_error
from models.chat.server_page import Server
from models.chat.tokenize import token_count, tokenize_request
from models.chat.trials import Trials
from models.chat.types import Capabilities, Kind, ModelTimeout, Structured, Thinking
from models.llama.server_state import home_of, key_for, read_state, same_server

UNKNOWN_CONTEXT = 4096  # what most local servers have; a prompt that is too long is cut and retried
MOST_SLOTS = 1024
SERVED_SHOWN = 10


class Findings(Value):
    """Hold what only trying out can tell; kept for the next start."""

    fingerprint: str
    structured: Structured
    thinking: Thinking
    switches: bool
    tokenizes: bool


def probe(settings: Settings) -> Capabilities:
    """Return what the server does.

    Raises ModelUnavailable when there is none or it refuses the key or the model, ModelTimeout
    when it accepts a connection and stays silent. What a slow server could not show in
    `llm_check_seconds` counts as not done, and is tried again the next time.
    """
    server = Server(settings.llm_url, server_key(settings), settings.llm_probe_seconds)
    models = _models(server)
    model = _choose(settings.llm_model, models, server.url)
    props = server.read(f"{server.root}/props").fields
    kind = _kind(server, props, models[model])
    slots = props.get("total_slots")
    known = Capabilities(
        kind=kind,
        model=model,
        served=list(models),
        context=_context(settings, props, models[model]),
        slots=min(slots, MOST_SLOTS) if isinstance(slots, int) and slots > 0 else 1,
        pins_slots=kind == "llama-server",
    )
    found = _findings(server, settings, known, props)
    return known.model_copy(update=found.model_dump(exclude={"fingerprint"}))


def server_key(settings: Settings) -> str:
    """Return the key to send: the one set, else that of our own server; empty without one."""
    key = key_for(settings)
    return key.get_secret_value() if key else ""


def _models(server: Server) -> dict[str, dict[str, Any]]:
    page = server.read(f"{server.url}/models")
    if page.status != 200:
        raise status_error(page.status, page.said, server.url)
    listed = page.fields.get("data")
    rows = [row for row in listed if isinstance(row, dict)] if isinstance(listed, list) else []
    models = {str(row["id"]): row for row in rows if row.get("id")}
    if not models:
        rule = f"what answers at {server.url} lists no models"
        raise ModelRefused(rule, hint="CARREL_LLM_URL names an OpenAI-compatible server, with /v1")
    return models


def _choose(asked: str, models: dict[str, dict[str, Any]], url: str) -> str:
    if not asked:
        return next(iter(models))
    for name, row in models.items():
        aliases = row.get("aliases")
        if asked == name or (isinstance(aliases, list) and asked in aliases):
            return name
    served = ", ".join(list(models)[:SERVED_SHOWN])
    raise ModelRefused(
        f"the model is not served at {url}, though some servers would silently take another",
        value=asked,
        hint=f"set CARREL_LLM_MODEL to one of: {served}",
    )


def _kind(server: Server, props: dict[str, Any], model: dict[str, Any]) -> Kind:
    if "total_slots" in props:
        return "llama-server"
    if server.read(f"{server.root}/version").fields.get("version") and model.get("max_model_len"):
        return "vllm"
    return "llama_cpp.server" if model.get("owned_by") == "me" else "openai-compatible"


def _context(settings: Settings, props: dict[str, Any], model: dict[str, Any]) -> int:
    generation = props.get("default_generation_settings")
    own = read_state(home_of(settings))
    sizes = [
        generation.get("n_ctx") if isinstance(generation, dict) else None,
        model.get("max_model_len"),
        own.context if own and own.supervised and same_server(own.url, settings.llm_url) else None,
    ]
    told = [size for size in sizes if isinstance(size, int) and size > 0]
    asked = [settings.llm_context] if settings.llm_context else []
    return min(told + asked, default=UNKNOWN_CONTEXT)


def _findings(
    server: Server, settings: Settings, known: Capabilities, props: dict[str, Any]
) -> Findings:
    told = {name: props.get(name) for name in ("build_info", "model_path", "chat_template")}
    fingerprint = _digest([told, known.model_dump(exclude={"slots"})])
    kept = settings.cache / "chat" / f"{_digest([server.url, known.model])}.json"
    with suppress(OSError, ValidationError):
        findings = Findings.model_validate_json(kept.read_bytes())
        if findings.fingerprint == fingerprint:
            return findings
    tokenizes = _tokenizes(server, known)
    server.restart(settings.llm_check_seconds)
    trials = Trials(server, known.model, settings.llm_thinking_tokens)
    thinking, switches = trials.thinking()
    findings = Findings(
        fingerprint=fingerprint,
        structured=trials.structured(thinking, switches),
        thinking=thinking,
        switches=switches,
        tokenizes=tokenizes,
    )
    if trials.finished:
        _keep(kept, findings)
    return findings


def _tokenizes(server: Server, known: Capabilities) -> bool:
    path, body = tokenize_request(known, "one two")
    try:
        return token_count(server.read(server.root + path, body).fields) > 0
    except (ValueError, ModelTimeout):
        return False


def _keep(path: Path, findings: Findings) -> None:
    with suppress(OSError):  # a cache that cannot be written costs time only
        path.parent.mkdir(parents=True, exist_ok=True)
        new = path.with_name(f"{path.name}.{os.getpid()}")
        new.write_text(findings.model_dump_json(), encoding="utf-8")
        new.replace(path)


def _digest(value: Any) -> str:  # noqa: ANN401
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:24]
