"""The door for the operator's commands: who comes in, what is taken, how it ends."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest

from core.settings import Settings
from serve.operator import control as operator_control
from serve.operator.control import STRANGERS, Command, Control
from serve.operator.frames import LOOPBACK, Channel, FrameError, enter

SECRET = "5" * 64
REQUEST: dict[str, Any] = {"arguments": ["ask", "x"], "folder": "/"}
SECONDS = 60


@contextmanager
def control(run: Callable[[Command], int], **changes: Any) -> Iterator[tuple[int, Control]]:
    door = Control(Settings(**changes), run)
    port = door.bind()
    door.open(SECRET)
    try:
        yield port, door
    finally:
        door.close()


@contextmanager
def client(port: int, secret: str = SECRET) -> Iterator[Channel]:
    connection = socket.create_connection((LOOPBACK, port), timeout=SECONDS)
    channel = Channel(connection, most_bytes=100_000, seconds=SECONDS)
    try:
        enter(channel, secret)
        yield channel
    finally:
        channel.close()


def frames(channel: Channel) -> list[dict[str, Any]]:
    found = []
    while (frame := channel.receive()) is not None:
        found.append(frame)
    return found


def greets(command: Command) -> int:
    command.write("out", f"{command.request.arguments[1]} \ud800 привіт 茶\n")
    command.write("err", "e" * 40_000)
    return 3


def test_a_command_is_run_and_its_streams_come_back() -> None:
    with control(greets) as (port, _), client(port) as channel:
        channel.send(**{**REQUEST, "arguments": ["ask", "тест \udcff"]})
        said = frames(channel)
    assert said[0] == {"out": "тест \udcff \ud800 привіт 茶\n"}
    assert "".join(frame.get("err", "") for frame in said) == "e" * 40_000
    assert said[-1] == {"exit": 3}


@pytest.mark.parametrize("secret", ["", "5" * 63, "6" * 64])
def test_a_wrong_secret_gets_no_answer(secret: str) -> None:
    ran: list[Command] = []
    with control(lambda command: ran.append(command) or 0) as (port, _):  # type: ignore[func-returns-value]
        with pytest.raises(FrameError), client(port, secret):
            pass
    assert ran == []


def test_what_answers_must_know_the_secret_too() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        impostor = Channel(theirs, most_bytes=1000, seconds=SECONDS)
        impostor.send(carrel=1, nonce="0" * 64)
        impostor.send(proof="0" * 64)
        channel = Channel(ours, most_bytes=1000, seconds=SECONDS)
        with pytest.raises(FrameError, match="does not know the secret"):
            enter(channel, SECRET)
        said = impostor.receive()
        assert said is not None and set(said) == {"nonce", "proof"}  # no secret, no command


@pytest.mark.parametrize(
    "sent",
    [
        b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 2\r\n\r\n{}",
        b"\n",
        b"[]\n",
        b"{}\n",
        b'{"nonce": {}, "proof": []}\n',
        b'{"nonce": "\\ud800", "proof": "\\ud800"}\n',
        b"[" * 900 + b"\n",
        b"x" * 5000,
        b"\xff\xfe\n",
        b'{"proof": "' + b"0" * 64 + b'", "nonce": "0"}\n{"arguments": ["forget"]}\n',
    ],
)
def test_strangers_are_told_a_number_and_nothing_else(sent: bytes) -> None:
    with (
        control(greets) as (port, _),
        socket.create_connection((LOOPBACK, port), timeout=SECONDS) as connection,
    ):
        answer = b""
        try:
            connection.sendall(sent)
            while piece := connection.recv(4096):
                answer += piece
        except OSError:
            pass  # it did not read all that was sent
    told = json.loads(answer) if answer else {"carrel": 1, "nonce": ""}
    assert set(told) == {"carrel", "nonce"} and SECRET not in answer.decode()


@pytest.mark.parametrize(
    "request_",
    [
        {},
        {**REQUEST, "arguments": "ask"},
        {**REQUEST, "arguments": [1]},
        {**REQUEST, "more": 1},
        {**REQUEST, "out": {"width": 0}},
        {**REQUEST, "folder": "x" * 20_000},
    ],
)
def test_a_request_that_cannot_be_read_is_not_run(
    request_: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operator_control, "COMMAND_BYTES", 10_000)
    with control(greets) as (port, _), client(port) as channel:
        with suppress(OSError):  # it need not read all of it
            channel.send(**request_)
            assert frames(channel) == []


def test_strangers_cannot_keep_the_operator_out() -> None:
    with control(greets, serve_header_seconds=0.3) as (port, _):
        silent = [socket.create_connection((LOOPBACK, port)) for _ in range(STRANGERS + 4)]
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            try:
                with client(port) as channel:
                    channel.send(**REQUEST)
                    assert frames(channel)[-1] == {"exit": 3}
                break
            except (FrameError, OSError):
                time.sleep(0.05)
        else:
            raise AssertionError("nobody came in")
        for connection in silent:
            connection.close()


def test_so_many_commands_and_no_more() -> None:
    go = threading.Event()

    def waits(command: Command) -> int:
        command.write("out", "began")
        go.wait(SECONDS)
        return 0

    with control(waits, serve_commands=1) as (port, _), client(port) as first:
        first.send(**REQUEST)
        assert first.receive() == {"out": "began"}
        with client(port) as second:
            second.send(**REQUEST)
            assert "at most 1 commands" in frames(second)[0]["refused"]
        go.set()
        assert frames(first) == [{"exit": 0}]


def reads(command: Command) -> int:
    """Echo lines; an interruption or the end is the end."""
    try:
        while line := command.read_line():
            command.write("out", line)
    except KeyboardInterrupt:
        return 130
    return 0


def test_lines_are_asked_for_one_by_one() -> None:
    with control(reads) as (port, _), client(port) as channel:
        channel.send(**REQUEST)
        for line in ("раз\n", "\ud800\n", ""):
            assert channel.receive() == {"read": ""}
            channel.send(line=line)
            if line:
                assert channel.receive() == {"out": line}
        assert frames(channel) == [{"exit": 0}]


def test_an_interruption_ends_the_wait_for_a_line() -> None:
    with control(reads) as (port, _), client(port) as channel:
        channel.send(**REQUEST)
        assert channel.receive() == {"read": ""}
        channel.send(interrupt=True)
        assert frames(channel) == [{"exit": 130}]


def test_an_interruption_is_told_once_and_to_the_command_alone() -> None:
    said = threading.Event()
    other: list[object] = []

    def works(command: Command) -> int:
        command._channel.send(out="began")  # not by `write`, which an interruption could end
        assert command.cancelled.wait(SECONDS)
        thread = threading.Thread(target=lambda: other.append(command.write("err", "bar")))
        thread.start()  # as a progress bar's own thread
        thread.join()
        try:
            command.check()
        except KeyboardInterrupt:
            command.check()
            command.write("out", "tidied up")
            said.set()
        assert not command.again().is_set()
        return 130

    with control(works) as (port, _), client(port) as channel:
        channel.send(**REQUEST)
        assert channel.receive() == {"out": "began"}
        channel.send(interrupt=True)
        assert frames(channel) == [{"err": "bar"}, {"out": "tidied up"}, {"exit": 130}]
    assert said.is_set() and other == [None]


@pytest.mark.parametrize("how", ["leaves", "talks nonsense", "stops"])
def test_the_end_of_either_side_ends_the_command(how: str) -> None:
    ended = threading.Event()

    def works(command: Command) -> int:
        with suppress(KeyboardInterrupt):  # when the end comes that fast
            command.write("out", "began")
        assert command.cancelled.wait(SECONDS)
        assert command.stopping == (how == "stops")
        if how != "stops":
            assert command.again().is_set()  # nobody is left to go on
        ended.set()
        return 0

    with control(works) as (port, door), client(port) as channel:
        channel.send(**REQUEST)
        assert channel.receive() == {"out": "began"}
        if how == "leaves":
            channel.close()
        elif how == "stops":
            door.close()
            assert frames(channel) == [{"exit": 0}]
        else:
            with suppress(OSError):  # it need not read all of it
                channel.send(line="x" * 5_000_000)
        assert ended.wait(SECONDS)


def test_it_listens_on_loopback_alone_and_can_be_left_out() -> None:
    with control(greets) as (_, door):
        assert door._server is not None
        assert door._server.server_address[0] == "127.0.0.1"
    with control(greets, serve_commands=0) as (port, _):
        assert port == 0
