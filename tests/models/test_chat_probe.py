"""A server is known by what it does, not by what it says."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from llama_servers import RunningServer
from stub_llm import BEHAVIOURS, MODEL, Connection, stub_llm
from tiers import examples

from core.errors import CarrelError
from core.settings import Settings
from models.chat.open_chat import open_chat, probe
from models.chat.types import Capabilities, ModelTimeout, ModelUnavailable

PROPS = {
    "total_slots": 3,
    "default_generation_settings": {"n_ctx": 5000},
    "build_info": "b1",
    "model_path": "/m.gguf",
}


class Model:
    """Reply as a server would that enforces some forms and thinks in some way."""

    def __init__(self, enforces: tuple[str, ...] = (), thinks: str = "none") -> None:
        self.enforces = enforces
        self.thinks = thinks
        self.takes_switch = thinks != "refuses"

    def __call__(self, it: Connection) -> None:
        switch = it.body.get("chat_template_kwargs")
        if switch is not None and not self.takes_switch:
            BEHAVIOURS["bad_request"](it)
            return
        asked = (switch or {}).get("enable_thinking", True)
        message: dict[str, Any] = {"role": "assistant", "content": self.text(it.body)}
        if self.thinks == "always" or (self.thinks == "switch" and asked):
            message["reasoning_content"] = "hm"
        it.page({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})

    def text(self, body: dict[str, Any]) -> str:
        form = body.get("response_format", {})
        if form.get("type") not in self.enforces:
            return '{"answer": "I say what I want"}'
        schema = form.get("schema") or form["json_schema"]["schema"]
        return json.dumps({"answer": schema["properties"]["answer"]["enum"][0]})


def at(url: str, tmp_path: Path, **values: Any) -> Settings:
    return Settings(llm_url=url, cache=tmp_path / "cache", reasoner="llm", **values)


@pytest.mark.parametrize(
    ("enforces", "form"),
    [
        (("json_schema", "json_object"), "json_schema"),
        (("json_schema",), "json_schema"),
        (("json_object",), "json_object"),
        ((), "none"),
    ],
)
def test_the_form_is_the_one_that_is_enforced(
    enforces: tuple[str, ...], form: str, tmp_path: Path
) -> None:
    with stub_llm(Model(enforces)) as stub:
        assert probe(at(stub.url, tmp_path)).structured == form


def test_a_schema_that_is_obeyed_once_only_is_not_enforced(tmp_path: Path) -> None:
    class Lucky(Model):
        def text(self, body: dict[str, Any]) -> str:
            self.enforces = () if self.enforces else ("json_schema", "json_object")
            return super().text(body)

    with stub_llm(Lucky()) as stub:
        assert probe(at(stub.url, tmp_path)).structured == "none"


@pytest.mark.parametrize(
    ("thinks", "switches"), [("none", True), ("switch", True), ("always", True), ("refuses", False)]
)
def test_thinking_is_seen(thinks: str, switches: bool, tmp_path: Path) -> None:
    with stub_llm(Model(("json_schema",), thinks)) as stub:
        found = probe(at(stub.url, tmp_path))
    assert found.thinking == thinks.replace("refuses", "none")
    assert found.switches == switches
    assert found.structured == "json_schema"


@pytest.mark.parametrize(
    ("pages", "kind", "context", "slots"),
    [
        ({"/props": PROPS, "/tokenize": {"tokens": [1, 2]}}, "llama-server", 5000, 3),
        ({}, "openai-compatible", 4096, 1),
        (
            {
                "/v1/models": {"data": [{"id": MODEL, "max_model_len": 9000}]},
                "/version": {"version": "0.9"},
                "/tokenize": {"count": 2},
            },
            "vllm",
            9000,
            1,
        ),
        (
            {
                "/v1/models": {"data": [{"id": MODEL, "owned_by": "me"}]},
                "/extras/tokenize/count": {"count": 2},
            },
            "llama_cpp.server",
            4096,
            1,
        ),
    ],
)
def test_kinds_of_servers(
    pages: dict[str, Any], kind: str, context: int, slots: int, tmp_path: Path
) -> None:
    with stub_llm(Model(), pages) as stub:
        found = probe(at(stub.url, tmp_path))
        smaller = probe(at(stub.url, tmp_path, llm_context=1000))
    assert (found.kind, found.context, found.slots) == (kind, context, slots)
    assert found.pins_slots == (kind == "llama-server")
    assert found.tokenizes == (kind != "openai-compatible")
    assert smaller.context == 1000


def test_the_next_start_tries_nothing_out_again(tmp_path: Path) -> None:
    with stub_llm(Model(("json_schema",)), {"/props": PROPS}) as stub:
        first = probe(at(stub.url, tmp_path))
        tried = len(stub.requests)
        stub.fetched.clear()
        assert probe(at(stub.url, tmp_path)) == first
        assert len(stub.requests) == tried > 0
        assert stub.fetched == ["/v1/models", "/props"]
        stub.pages["/props"] = {**PROPS, "build_info": "b2"}
        probe(at(stub.url, tmp_path))
        assert len(stub.requests) > tried


def test_a_server_too_slow_to_be_tried_out_is_tried_again(tmp_path: Path) -> None:
    def once(it: Connection) -> None:
        """Answer the first request of each probe, as a slow model would."""
        if len(stub.requests) in (1, 3):
            it.page({"choices": [{"message": {"content": "It rains."}}]})
        else:
            it.hang()

    with stub_llm(once) as stub:
        found = probe(at(stub.url, tmp_path, llm_check_seconds=1.5))
        assert (found.structured, found.switches) == ("none", False)
        assert len(stub.requests) == 2
        probe(at(stub.url, tmp_path, llm_check_seconds=1.5))
        assert len(stub.requests) == 4


@pytest.mark.parametrize(
    ("behaviour", "seconds", "said"), [("silent", 1, "1 s"), ("loading", 30, "HTTP 503")]
)
def test_a_server_without_a_first_reply_is_not_waited_for(
    behaviour: str, seconds: int, said: str, tmp_path: Path
) -> None:
    with stub_llm(behaviour) as stub:
        values = at(stub.url, tmp_path, llm_check_seconds=seconds)
        model, warning = open_chat(values.model_copy(update={"reasoner": "llm"}))
    assert model is None
    assert said in warning
    assert len(stub.requests) == 1


def test_a_broken_cache_is_made_anew(tmp_path: Path) -> None:
    with stub_llm(Model(("json_schema",))) as stub:
        first = probe(at(stub.url, tmp_path))
        (kept,) = (tmp_path / "cache" / "chat").iterdir()
        kept.write_text("{")
        assert probe(at(stub.url, tmp_path)) == first
        assert json.loads(kept.read_text())["structured"] == "json_schema"


def test_a_model_that_is_not_served_is_refused_with_those_that_are(tmp_path: Path) -> None:
    with stub_llm() as stub:
        with pytest.raises(ModelUnavailable, match=f"one of: {MODEL}"):
            probe(at(stub.url, tmp_path, llm_model="gpt"))
        for reasoner in ("llm", "auto"):
            values = at(stub.url, tmp_path, llm_model="gpt").model_copy(
                update={"reasoner": reasoner}
            )
            model, warning = open_chat(values)
            assert model is None
            assert MODEL in warning


@pytest.mark.parametrize("behaviour", ["silent", "drip_head", "drip"])
def test_a_silent_server_is_left_in_time(behaviour: str, tmp_path: Path) -> None:
    pages = {"/v1/models": BEHAVIOURS[behaviour]}
    with stub_llm(pages=pages) as stub, pytest.raises(ModelTimeout, match="does not answer"):
        probe(at(stub.url, tmp_path, llm_probe_seconds=0.3))


def test_without_a_server_the_rules_decide_and_nothing_heavy_is_loaded(tmp_path: Path) -> None:
    with stub_llm() as stub:
        url = stub.url
    code = (
        "import sys; from core.settings import Settings;"
        "from models.chat.open_chat import open_chat;"
        f"print(open_chat(Settings(reasoner=sys.argv[1], llm_url={url!r})));"
        "print([m for m in ('openai', 'langchain_core', 'httpx2', 'numpy') if m in sys.modules])"
    )
    for reasoner, said in (("auto", "(None, '')"), ("llm", "carrel llm serve")):
        command = [sys.executable, "-W", "error", "-c", code, reasoner]
        root = Path(__file__).resolve().parents[2]
        output = subprocess.run(command, capture_output=True, text=True, cwd=root, check=True)
        lines = output.stdout.splitlines()
        assert said in lines[0]
        assert lines[1] == "[]"


def test_with_rules_no_server_is_asked(tmp_path: Path) -> None:
    with stub_llm() as stub:
        assert open_chat(Settings(reasoner="rules", llm_url=stub.url)) == (None, "")
        assert stub.fetched == []


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["data", "id", "aliases", "total_slots", "n_ctx", "choices", "message"])
            | st.sampled_from(
                ["content", "tokens", "default_generation_settings", "max_model_len"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(models=JSON, props=JSON, reply=JSON)
def test_nothing_a_server_says_raises(models: Any, props: Any, reply: Any, tmp_path: Path) -> None:
    listed = models if isinstance(models, dict) else {"data": [{"id": MODEL, "aliases": models}]}
    pages = {"/v1/models": listed, "/props": props, "/tokenize": reply, "/version": reply}
    with stub_llm(lambda it: it.page(reply), pages) as stub:
        try:
            found = probe(at(stub.url, tmp_path, llm_model=MODEL))
        except CarrelError:
            return
    assert isinstance(found, Capabilities)
    assert found.context > 0 and found.slots > 0


@pytest.mark.parametrize("behaviour", ["malformed_http", "hangs_up"])
def test_what_is_no_http_server_is_said(behaviour: str, tmp_path: Path) -> None:
    with stub_llm() as stub:
        stub.pages["/v1/models"] = BEHAVIOURS[behaviour]
        model, warning = open_chat(at(stub.url, tmp_path).model_copy(update={"reasoner": "auto"}))
    assert model is None
    assert "CARREL_LLM_URL" in warning


def test_a_real_server_is_known(llama_server: RunningServer, tmp_path: Path) -> None:
    values = at(llama_server.url, tmp_path, llm_key=llama_server.key)
    found = probe(values)
    assert found.structured == ("json_schema" if llama_server.is_llama_server else "json_object")
    assert found.thinking == "none"
    assert found.tokenizes
    if llama_server.is_llama_server:
        assert (found.kind, found.slots, found.context) == ("llama-server", 2, 8192)
    assert probe(values) == found


def test_a_real_server_refuses_a_wrong_key(llama_server: RunningServer, tmp_path: Path) -> None:
    model, warning = open_chat(at(llama_server.url, tmp_path, llm_key="wrong"))
    assert model is None
    assert "CARREL_LLM__KEY" in warning
