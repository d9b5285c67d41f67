"""Which command serves a model, with how many layers on a GPU, and which wishes are refused."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import CallerError, ModelError, OperatorError
from core.settings import Settings
from models.llama import plan
from models.llama.command import (
    ServerBinary,
    find_server,
    port_of,
    server_command,
    server_environment,
)
from models.llama.gguf_file import GgufInfo
from models.llama.plan import buffer_bytes, cache_bytes, choose_layers, find_model
from models.llama.server_state import ServerState, birth, ensure_key, key_for, write_state
from models.table import chat_table

NEW = """
-a,    --alias STRING                   set model name
-fa,   --flash-attn [on|off|auto]       set Flash Attention use
-ngl,  --gpu-layers, --n-gpu-layers N   max. number of layers
-n,    --predict, --n-predict N         tokens
-cram, --cache-ram N                    cache
--slots, --no-slots                     slots endpoint
--ui,  --webui, --no-ui, --no-webui     web UI
--api-key-file FNAME                    keys
--threads-http N                        threads
--poll <0...100>                        polling level
--slot-save-path PATH                   slots
--jinja, --no-jinja                     jinja
--offline                               offline
--list-devices                          print list of available devices and exit
"""
OLD = """
-fa,   --flash-attn                     enable Flash Attention
-ngl,  --gpu-layers, --n-gpu-layers N   layers
--no-webui                              no web UI
--api-key-file FNAME                    keys
"""
BIG = GgufInfo(Path("m.gguf"), 36 << 30, "qwen3", "m", "F16", 1, 32768, 35, 1024, 1000, True)


def program(folder: Path, help_text: str, devices: str = "", code: int = 0) -> str:
    """Write a program that answers --help and --list-devices as a llama-server does."""
    path = folder / "llama-server"
    script = f"""#!/bin/sh
case $1 in
--help) cat <<'END'\n{help_text}\nEND
exit {code};;
--list-devices) printf 'Available devices:\\n{devices}';;
esac
"""
    path.write_text(script)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def command(server: ServerBinary) -> str:
    return " ".join(
        server_command(
            server,
            model=Path("/m/a.gguf"),
            name="a",
            port=8020,
            context=4096,
            slots=2,
            gpu_layers=3,
            threads=4,
            connections=64,
            key_file=Path("/h/key"),
            slot_folder=Path("/h/slots"),
        )
    )


def test_a_new_server_gets_every_flag(tmp_path: Path) -> None:
    path = program(tmp_path, NEW)
    said = command(find_server(path))
    assert said.startswith(f"{path} -m /m/a.gguf --host 127.0.0.1 --port 8020 -c 8192 -np 2 -t 4")
    for flags in (
        "--api-key-file /h/key", "--alias a", "-ngl 3", "-n 4096", "--cache-ram 0", "--no-slots",
        "--slot-save-path /h/slots", "--poll 0",
        "--no-ui", "--jinja", "--offline", "--threads-http 64", "--flash-attn auto",
    ):  # fmt: skip
        assert f"{flags} " in said + " "


def test_an_old_server_gets_the_flags_it_knows(tmp_path: Path) -> None:
    said = command(find_server(program(tmp_path, OLD)))
    assert "--no-webui" in said
    for unknown in ("--flash-attn", "--offline", "--no-ui", "--cache-ram", "--alias"):
        assert f"{unknown} " not in said + " "


def test_a_server_without_keys_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OperatorError, match="--api-key-file"):
        command(find_server(program(tmp_path, "--alias STRING")))


def test_the_python_server_is_told_the_same() -> None:
    said = command(ServerBinary("llama_cpp.server", ("python", "-m", "llama_cpp.server")))
    assert "--host 127.0.0.1 --port 8020 --n_ctx 4096 --n_gpu_layers 3" in said
    assert "--interrupt_requests false" in said


def test_variables_cannot_change_what_the_flags_say(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LLAMA_ARG_HOST", "LLAMA_API_KEY", "HOST", "CONFIG_FILE", "CARREL_LLM__KEY"):
        monkeypatch.setenv(name, "0.0.0.0")
    seen = server_environment(False, "secret", 8020)
    assert not seen.keys() & {"LLAMA_ARG_HOST", "LLAMA_API_KEY", "CARREL_LLM__KEY"}
    assert "secret" not in seen.values()
    python = server_environment(True, "secret", 8020)
    assert (python["HOST"], python["PORT"], python["API_KEY"]) == ("127.0.0.1", "8020", "secret")
    assert "CONFIG_FILE" not in python


def test_a_server_that_does_not_run(tmp_path: Path) -> None:
    with pytest.raises(OperatorError, match="must be a program"):
        find_server(str(tmp_path / "none"))
    with pytest.raises(OperatorError, match="no such library"):
        find_server(program(tmp_path, "no such library", code=127))
    (tmp_path / "llama-server").write_bytes(b"\x7fELF of another machine")
    with pytest.raises(OperatorError, match="does not work"):
        find_server(str(tmp_path / "llama-server"))


@pytest.mark.parametrize(
    ("url", "port"),
    [("http://localhost:8020/v1", 8020), ("http://127.0.0.1:9/v1", 9), ("http://[::1]:81", 81)],
)
def test_a_url_of_this_machine(url: str, port: int) -> None:
    assert port_of(url) == port


@pytest.mark.parametrize(
    "url",
    [
        "http://0.0.0.0:8020/v1",
        "http://192.168.0.2:8020/v1",
        "http://example.org:8020/v1",
        "http://127.0.0.1.example.org:8020/v1",
        "https://localhost:8020/v1",
        "http://localhost/v1",
        "http://localhost:99999/v1",
        "http://localhost@example.org:8020/v1",
    ],
)
def test_no_other_machine_is_served(url: str) -> None:
    with pytest.raises(CallerError):
        port_of(url)


def layers(folder: Path, devices: str, asked: int = -1, margin: int = 0) -> int:
    server = find_server(program(folder, NEW, devices))
    return choose_layers(server, BIG, 8192, 2, asked=asked, margin=margin)


def test_layers_that_fit_the_gpus(tmp_path: Path) -> None:
    assert layers(tmp_path, "  (none)\\n") == 0
    assert layers(tmp_path, "  CUDA0: A (81559 MiB, 80000 MiB free)\\n") == 36
    assert layers(tmp_path, "  CUDA0: A (24576 MiB, 100 MiB free)\\n") == 0
    assert layers(tmp_path, "  CUDA0: A (9 MiB, 20000 MiB free)\\n") == 19
    two = "  CUDA0: A (9 MiB, 10000 MiB free)\\n  CUDA1: A (9 MiB, 10000 MiB free)\\n"
    assert layers(tmp_path, two) == 19
    assert layers(tmp_path, two, margin=20000 << 20) == 0
    assert layers(tmp_path, two, asked=0) == 0
    assert layers(tmp_path, "  (none)\\n", asked=99) == 36


@given(free=st.integers(0, 100_000))
def test_layers_never_need_more_than_is_free(free: int) -> None:
    server = ServerBinary("llama-server", ("x",))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plan, "free_gpu_bytes", lambda server: free << 20)
        chosen = choose_layers(server, BIG, 8192, 2, asked=-1, margin=0)
    needed = (BIG.bytes + cache_bytes(BIG, 8192, 2)) * chosen / 36 + buffer_bytes(BIG)
    assert chosen == 0 or needed <= free << 20


def test_a_model_is_found_by_name_path_or_what_was_fetched(tmp_path: Path) -> None:
    first = "Qwen3-4B-Instruct-2507"
    with pytest.raises(ModelError, match=f"carrel models pull {first}"):
        find_model("", tmp_path)
    with pytest.raises(ModelError, match="carrel models pull Qwen3-8B"):
        find_model("qwen3-8b", tmp_path)
    with pytest.raises(CallerError, match="Qwen3-0.6B"):
        find_model("Qwen9", tmp_path)
    small = next(card for card in chat_table() if card.name == "Qwen3-0.6B")
    small.path(tmp_path).write_bytes(b"")
    assert find_model("", tmp_path) == (small.path(tmp_path), small)
    assert find_model("QWEN3-0.6b", tmp_path)[1] == small
    other = tmp_path / "mine.gguf"
    assert find_model(str(other), tmp_path) == (other, None)


def test_the_key_is_private_and_stays(tmp_path: Path) -> None:
    settings = Settings(llm_home=tmp_path / "llm")
    key = ensure_key(settings)
    path = tmp_path / "llm" / "key"
    assert len(key) > 30
    assert (ensure_key(settings), path.read_text().strip()) == (key, key)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.chmod(0o644)
    assert ensure_key(settings) == key
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    own = Settings(llm_home=tmp_path / "llm", llm_key="mine")
    assert (ensure_key(own), path.read_text()) == ("mine", "mine\n")


def test_our_key_goes_to_our_own_running_server_alone(tmp_path: Path) -> None:
    settings = Settings(llm_home=tmp_path, llm_url="http://localhost:8020/v1")
    key = ensure_key(settings)
    assert key_for(settings) is None
    state = ServerState(
        state="healthy", url="http://127.0.0.1:8020/v1", model="m", file="m.gguf",
        backend="llama-server", context=1, slots=1, gpu_layers=0, log="", started_at="",
        supervisor_pid=os.getpid(), supervisor_birth=birth(os.getpid()) or "",
    )  # fmt: skip
    write_state(tmp_path, state)
    found = key_for(settings)
    assert found is not None and found.get_secret_value() == key
    for url in ("http://localhost:8021/v1", "http://example.org:8020/v1"):
        assert key_for(settings.model_copy(update={"llm_url": url})) is None
    write_state(tmp_path, state.model_copy(update={"supervisor_birth": "1"}))
    assert key_for(settings) is None
