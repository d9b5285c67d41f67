"""The chat model that the settings ask for: what a server is and can do, or why there is none."""

from __future__ import annotations

import hashlib
import json
import secrets
from contextlib import suppress
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from core.errors import CarrelError, ModelError
from core.settings import Settings
from core.types import FrozenModel
from models.chat.server_page import Page, ServerClient
from models.chat.types import (
    LOOK,
    Capabilities,
    ChatModel,
    Kind,
    ModelRefused,
    ModelTimeout,
    ModelUnavailable,
    NoConnection,
    Structured,
    Thinking,
    response_format,
    status_error,
    token_count,
    tokenize_request,
)
from models.folder import remember
from models.llama.server_state import home_of, key_for, read_state, same_server


def open_chat(settings: Settings) -> tuple[ChatModel | None, str]:
    """Return the chat model, or None and a warning that says why the rules decide.

    With `reasoner` "auto" the warning is empty when nothing answers at `llm.url`. Nothing that a
    server or a model file does raises.
    """
    if settings.reasoner == "rules":
        return None, ""
    try:
        return wanted_chat(settings), ""
    except CarrelError as error:
        if settings.reasoner == "auto" and isinstance(error, NoConnection):
            return None, ""
        return None, f"the rules decide, without a model: {error}"


def wanted_chat(settings: Settings) -> ChatModel:
    """Return the chat model that the settings name; raises a CarrelError if it is unusable."""
    if settings.llm.provider:
        from models.chat.guarded import provider_chat

        return provider_chat(settings)
    if settings.llm.file:
        from models.chat.guarded import GuardedChat
        from models.chat.llama_cpp_chat import open_gguf_chat

        llm, capabilities = open_gguf_chat(settings)
        return GuardedChat(llm, capabilities, settings, close=getattr(llm, "close", None))
    capabilities = probe(settings)  # before the heavy imports: often there is no server
    from models.chat.openai_chat import server_chat

    return server_chat(settings, capabilities, server_key(settings))


TRIALS = 2  # of each form: once may be chance; chosen, not measured
SHORT, LONG = 16, 64  # tokens of a reply
NO_ANSWER = (0, 429, 502, 503, 504)  # too slow, too busy, still loading
PLAIN = "Write one short sentence about the weather. Plain prose only: no JSON, no braces."
OFF: dict[str, Any] = {"chat_template_kwargs": {"enable_thinking": False}}
ON: dict[str, Any] = {"chat_template_kwargs": {"enable_thinking": True}}


class Trials:
    """Ask a server for short replies; `finished` turns false when it was too slow for one."""

    def __init__(self, server: ServerClient, model: str, thinking_tokens: int) -> None:
        self._server = server
        self._model = model
        self._thinking_tokens = thinking_tokens
        self.finished = True

    def thinking(self) -> tuple[Thinking, bool]:
        """Return when the model thinks, and whether the server takes the switch for it.

        Raises ModelTimeout or ModelUnavailable when not even the first reply comes: a run would
        wait in vain.
        """
        first = self._ask(SHORT)
        if first.status == 0:
            self._server.late()
        if not self.finished:
            rule = f"the model server at {self._server.url} is not ready"
            raise ModelUnavailable(rule, value=f"HTTP {first.status}", hint=LOOK)
        by_itself = self._thinks(first)
        off = self._ask(SHORT, OFF)
        if off.status != 200:
            return ("always" if by_itself else "none"), False
        if by_itself:
            return ("always" if self._thinks(off) else "switch"), True
        return ("switch" if self._thinks(self._ask(SHORT, ON)) else "none"), True

    def structured(self, thinking: Thinking, switches: bool) -> Structured:
        """Return the first form in which the server keeps to a schema against its prompt."""
        tokens = LONG + (self._thinking_tokens if thinking == "always" else 0)
        forms: tuple[Structured, ...] = ("json_schema", "json_object")
        for form in forms:
            if all(self._keeps(form, tokens, OFF if switches else {}) for _ in range(TRIALS)):
                return form
        return "none"

    def _keeps(self, form: Structured, tokens: int, switch: dict[str, Any]) -> bool:
        nonce = secrets.token_hex(4)
        schema = {
            "type": "object",
            "properties": {"answer": {"type": "string", "enum": [nonce]}},
            "required": ["answer"],
            "additionalProperties": False,
        }
        message = _message(self._ask(tokens, {**switch, **response_format(form, schema)}))
        try:
            kept: bool = json.loads(message.get("content") or "") == {"answer": nonce}
        except (TypeError, ValueError, RecursionError):
            return False
        return kept

    def _thinks(self, page: Page) -> bool:
        message = _message(page)
        thought = message.get("reasoning_content") or message.get("reasoning")
        return bool(thought) or "<think>" in str(message.get("content"))

    def _ask(self, tokens: int, extra: dict[str, Any] | None = None) -> Page:
        body = {
            "model": self._model,
            "messages": [{"role": "user", "content": PLAIN}],
            "max_tokens": tokens,
            "temperature": 0,
            "stream": False,
            **(extra or {}),
        }
        if not self.finished:
            return Page(0, None)
        try:
            page = self._server.read(f"{self._server.url}/chat/completions", body)
        except (ModelTimeout, ModelUnavailable):
            page = Page(0, None)
        self.finished = page.status not in NO_ANSWER
        return page


def _message(page: Page) -> dict[str, Any]:
    try:
        message = page.fields["choices"][0]["message"]
    except (KeyError, IndexError, TypeError):
        return {}
    return message if isinstance(message, dict) else {}


UNKNOWN_CONTEXT = 4096  # what most local servers have; a prompt that is too long is cut and retried
MOST_SLOTS = 1024  # that a server is believed to have; chosen, not measured
SERVED_SHOWN = 10  # models that an error names
META = ("n_params", "size", "n_vocab", "n_embd", "n_ctx_train")


class Findings(FrozenModel):
    """Hold what only trying out can tell; kept for the next start."""

    fingerprint: str
    structured: Structured
    thinking: Thinking
    switches: bool
    tokenizes: bool


def probe(settings: Settings) -> Capabilities:
    """Return the capabilities of the server.

    Raises ModelUnavailable when there is none or it refuses the key or the model, ModelTimeout
    when it accepts a connection and stays silent. What a slow server could not show in
    `llm.check_seconds` counts as not done, and is tried again the next time.
    """
    server = ServerClient(settings.llm.url, server_key(settings), settings.llm.probe_seconds)
    models = _models(server)
    model = _choose(settings.llm.model, models, server.url)
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
        digest=_model_digest(model, props, models[model]),
    )
    found = _findings(server, settings, known, props)
    return known.model_copy(update=found.model_dump(exclude={"fingerprint"}))


def served_model(settings: Settings) -> str:
    """Return the model that `probe` would try, trying nothing out; raises what it raises."""
    server = ServerClient(settings.llm.url, server_key(settings), settings.llm.probe_seconds)
    return _choose(settings.llm.model, _models(server), server.url)


def server_key(settings: Settings) -> str:
    """Return the key to send: the one set, else that of our own server; empty without one."""
    key = key_for(settings)
    return key.get_secret_value() if key else ""


def _models(server: ServerClient) -> dict[str, dict[str, Any]]:
    page = server.read(f"{server.url}/models")
    if page.status != 200:
        raise status_error(page.status, page.error_text, server.url)
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
        hint=f"set CARREL_LLM__MODEL to one of: {served}",
    )


def _kind(server: ServerClient, props: dict[str, Any], model: dict[str, Any]) -> Kind:
    if "total_slots" in props:
        return "llama-server"
    if server.read(f"{server.root}/version").fields.get("version") and model.get("max_model_len"):
        return "vllm"
    return "llama_cpp.server" if model.get("owned_by") == "me" else "openai-compatible"


def _context(settings: Settings, props: dict[str, Any], model: dict[str, Any]) -> int:
    generation = props.get("default_generation_settings")
    own = read_state(home_of(settings))
    candidates = [
        generation.get("n_ctx") if isinstance(generation, dict) else None,
        model.get("max_model_len"),
        own.context if own and own.supervised and same_server(own.url, settings.llm.url) else None,
    ]
    sizes = [size for size in candidates if isinstance(size, int) and size > 0]
    asked = [settings.llm.context] if settings.llm.context else []
    return min(sizes + asked, default=UNKNOWN_CONTEXT)


def _findings(
    server: ServerClient, settings: Settings, known: Capabilities, props: dict[str, Any]
) -> Findings:
    server_facts = {name: props.get(name) for name in ("build_info", "model_path", "chat_template")}
    fingerprint = _digest([server_facts, known.model_dump(exclude={"slots", "digest"})])
    kept = settings.cache / "chat" / f"{_digest([server.url, known.model])}.json"
    with suppress(OSError, ValidationError):
        findings = Findings.model_validate_json(kept.read_bytes())
        if findings.fingerprint == fingerprint:
            return findings
    tokenizes = _tokenizes(server, known)
    server.restart(settings.llm.check_seconds)
    trials = Trials(server, known.model, settings.llm.thinking_tokens)
    thinking, switches = trials.thinking()
    findings = Findings(
        fingerprint=fingerprint,
        structured=trials.structured(thinking, switches),
        thinking=thinking,
        switches=switches,
        tokenizes=tokenizes,
    )
    if trials.finished:
        remember(kept, findings.model_dump_json())
    return findings


def _model_digest(name: str, props: dict[str, Any], model: dict[str, Any]) -> str:
    """Return what tells a model from another: its file's own figures, never how it is served."""
    meta = model.get("meta")
    sizes = {key: meta.get(key) for key in META} if isinstance(meta, dict) else {}
    path = Path(str(props.get("model_path") or "")).name
    return _digest([name, path, props.get("chat_template"), sizes])


def _tokenizes(server: ServerClient, known: Capabilities) -> bool:
    path, body = tokenize_request(known, "one two")
    try:
        return token_count(server.read(server.root + path, body).fields) > 0
    except (ValueError, ModelTimeout):
        return False


def _digest(value: Any) -> str:  # noqa: ANN401
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:24]


USUAL = (("Ollama", "http://localhost:11434/v1"), ("LM Studio", "http://localhost:1234/v1"))
SECONDS = 0.5  # of this machine alone


def servers_found() -> list[dict[str, str]]:
    """Return name and address of the servers that answer where Ollama and LM Studio do."""
    found = []
    for name, url in USUAL:
        try:
            page = ServerClient(url, "", SECONDS).read(f"{url}/models")
        except ModelError:
            continue
        if page.status == 200 and "data" in page.fields:
            found.append({"name": name, "url": url})
    return found
