"""`carrel ask`, `chat`, `trace` and `doctor` with a chat model: real server, stub, and none."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from commands import COMMAND, HEIGHT, ROOT, Carrel, process
from llama_servers import RunningServer, free_port
from stub_llm import Connection, stub_llm

REPLIES = [
    json.dumps(
        {
            "standalone": HEIGHT,
            "kind": "plain",
            "intent": "fact",
            "parts": [{"text": HEIGHT, "wants": "number"}],
        }
    ),
    json.dumps({"questions": [{"id": "q1", "tools": ["search"], "query": HEIGHT}]}),
]
TRUE = "The maximum height of the flame is 42 mm."
WRONG = "The maximum height of the flame is 43 mm."


def use(monkeypatch: pytest.MonkeyPatch, url: str, **settings: object) -> None:
    values = {"reasoner": "llm", "llm_url": url, "llm_context": 8192, **settings}
    for name, value in values.items():
        monkeypatch.setenv(f"CARREL_{name.upper()}", str(value))


def test_without_a_server_the_rules_answer_and_say_so(
    data: Path, carrel: Carrel, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(monkeypatch, f"http://127.0.0.1:{free_port()}/v1")
    done = carrel("ask", HEIGHT, "--json", data=data)
    assert done.code == 0
    assert "42 mm" in done.json["answer"]
    (warning,) = [text for text in done.json["warnings"] if "without a model" in text]
    assert "carrel llm serve" in warning
    assert done.json["usage"]["model_calls"] == 0


def test_auto_without_a_server_says_nothing(
    data: Path, carrel: Carrel, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(monkeypatch, f"http://127.0.0.1:{free_port()}/v1", reasoner="auto")
    done = carrel("ask", HEIGHT, "--json", data=data)
    assert done.json["warnings"] == []
    assert carrel("doctor", "--json", data=data).json["models"]["reasoner"] == "rules"


def test_an_address_that_is_none_is_bad_input(
    data: Path, carrel: Carrel, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(monkeypatch, "localhost:8020")
    carrel("ask", HEIGHT, data=data).failed(2, "llm.url", "localhost:8020")
    carrel("ask", HEIGHT, "--stream", "loud", data=data).failed(2)


def test_wrong_key_and_wrong_model_name_what_to_set(
    data: Path,
    carrel: Carrel,
    monkeypatch: pytest.MonkeyPatch,
    llama_server: RunningServer,
) -> None:
    use(monkeypatch, llama_server.url, llm_key="wrong")
    done = carrel("ask", HEIGHT, "--json", data=data)
    assert done.code == 0
    assert any("CARREL_LLM__KEY" in text for text in done.json["warnings"])
    use(monkeypatch, llama_server.url, llm_key=llama_server.key, llm_model="qwen-of-dreams")
    done = carrel("ask", HEIGHT, "--json", data=data)
    assert any("qwen-of-dreams" in text for text in done.json["warnings"])
    assert "42 mm" in done.json["answer"]


def test_a_model_of_nonsense_ends_in_an_answer_and_a_trace(
    data: Path,
    carrel: Carrel,
    monkeypatch: pytest.MonkeyPatch,
    llama_server: RunningServer,
) -> None:
    few = {"llm_decision_tokens": 60, "llm_answer_tokens": 60}
    use(monkeypatch, llama_server.url, llm_key=llama_server.key, **few)
    done = carrel("ask", HEIGHT, "--json", data=data)
    assert done.code in (0, 3)
    assert done.json["usage"]["model_calls"] >= 1, done.json["warnings"]
    shown = carrel("trace", "last", data=data)
    assert "Model calls" in shown.out
    assert "understand" in shown.out
    report = carrel("doctor", "--json", data=data).json
    assert report["models"]["reasoner"] == "llm"
    assert report["models"]["chat"]["context"] > 0
    assert llama_server.key not in json.dumps(report) + carrel("config", data=data).out


def test_sentences_come_before_the_end_and_only_verified_ones(
    data: Path, carrel: Carrel, monkeypatch: pytest.MonkeyPatch
) -> None:

    def behave(it: Connection) -> None:
        prompt = it.body["messages"][-1]["content"]
        if "Task: UNDERSTAND" in prompt:
            text = REPLIES[0]
        elif "Task: PLAN" in prompt:
            text = REPLIES[1]
        elif "Task: GRADE" in prompt:
            found = prompt.split("<evidence")[1:]
            text = json.dumps(
                {f"e{n}": 3 if "42 mm" in piece else 0 for n, piece in enumerate(found, 1)}
            )
        elif "Task: ANSWER" in prompt:
            text = f"{WRONG} [1] {TRUE} [1]"
        else:
            text = "no idea"
        it.say(text)

    with stub_llm(behave) as stub:
        use(monkeypatch, stub.url)
        done = carrel("ask", HEIGHT, data=data)
        assert done.code == 0, done.err
        assert done.out.startswith(f"{TRUE} [1]\n")
        assert done.out.count(TRUE) == 1
        assert "43 mm" not in done.out
        assert "dropped an unsupported sentence" in done.err
        drafted = carrel("ask", HEIGHT, "--stream", "tokens", data=data)
        assert drafted.out.startswith(f"{TRUE} [1]\n")
        assert "43 mm" not in drafted.out
        assert WRONG in drafted.err.replace("\n", "")


def test_ctrl_c_frees_the_server_and_keeps_the_run(data: Path) -> None:
    """A model that goes on writing is left within seconds, whatever the deadlines say."""

    def behave(it: Connection) -> None:
        if it.body.get("max_tokens", 0) > 100:
            it.head()
            while True:
                it.delta(content="x ")
                time.sleep(0.05)
        it.say("no")

    with stub_llm(behave) as stub:
        asking = subprocess.Popen(
            [*COMMAND, "ask", HEIGHT, "--data", str(data), "--set", "llm.repeats=1000"],
            cwd=ROOT,
            env={**os.environ, "CARREL_REASONER": "llm", "CARREL_LLM_URL": stub.url},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        until = time.monotonic() + 60
        while not any(body.get("max_tokens", 0) > 100 for body in stub.requests):
            assert time.monotonic() < until, asking.stderr
            time.sleep(0.05)
        asking.send_signal(signal.SIGINT)
        _, err = asking.communicate(timeout=60)
    assert asking.returncode == 130, err.decode()
    assert "interrupted" in err.decode()
    assert "Traceback" not in err.decode()
    kept = process("trace", "last", "--json", data=data)
    assert kept.json["result"]["stop_reason"] == "cancelled"
