"""`carrel llm`: run a llama.cpp server beside Carrel."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from cli.arguments import Json, Set
from cli.options import flags_from
from cli.terminal.output import print_json, stderr, stdout, warn
from core.errors import CarrelError, ModelError
from core.settings import Settings, load_settings, variable_of
from models.chat.open_chat import probe, servers_found, wanted_chat
from models.llama.control import ALREADY_RUNNING, already_starting, failed, inspect, prepare, start
from models.llama.control import stop as stop_server
from models.llama.plan import ServePlan
from models.llama.server_state import KEY, ServerState, home_of, same_server
from models.llama.supervisor import Supervisor
from models.loading import open_embedder
from reasoning.llm.exam import Examiner
from reasoning.llm.exam_result import DecisionResult, ExamResult, kept_result

LOG = "exam.log"


def examine(model: str, changes: list[str] | None) -> tuple[Settings, ExamResult]:
    """Examine a model and show how far it has come; raises a CarrelError where none answers."""
    flags = flags_from(None, changes) | {"reasoner": "llm"}
    if model:
        flags["llm.file" if Path(model).expanduser().is_file() else "llm.model"] = model
    settings = load_settings(flags)[0]
    chat = wanted_chat(settings)
    embedder = None
    with suppress(ModelError):  # words alone, as a session does it
        embedder = open_embedder(settings)
    try:
        with stderr().status(f"examining {chat.capabilities.model}") as status:

            def tell(result: ExamResult) -> None:
                done, of = len(result.items), sum(result.of.values())
                status.update(f"examining {result.model}: {done} of {of} items")

            examiner = Examiner(chat, settings, embedder)
            result = examiner.run(time.monotonic() + settings.llm.exam_seconds, tell)
    finally:
        chat.close()
    return settings, result


def examine_in_background(settings: Settings, changes: list[str] | None) -> None:
    """Start the exam of the model at llm_url in a process of its own, which ends by itself."""
    given = flags_from(None, [*(changes or []), f"llm.url={settings.llm.url}"])
    # By its environment: anybody on this machine can read a process's arguments, and a key in them.
    values = {variable_of(name): str(one) for name, one in given.items() if one is not None}
    with (home_of(settings) / LOG).open("wb") as output:
        process = subprocess.Popen(
            # -P: the current folder may hold a package of the same name.
            [sys.executable, "-P", "-c", "from cli.app import main; main()", "llm", "exam"],
            env={**os.environ, **values},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    process.returncode = 0  # it goes on without us


def exam_record(result: ExamResult, settings: Settings) -> dict[str, Any]:
    """Return an exam for scripts."""
    decisions = result.decisions(settings.llm.answer_by_seconds)
    return {
        "model": result.model,
        "digest": result.digest,
        "url": result.url,
        "finished": result.finished,
        "items": len(result.items),
        "of": sum(result.of.values()),
        "seconds": round(sum(item.seconds for item in result.items), 1),
        "tokens": sum(item.tokens for item in result.items),
        "decisions": {name: one.model_dump() for name, one in decisions.items()},
    }


def exam_of(settings: Settings, digest: str = "") -> dict[str, Any] | None:
    """Return the kept exam of a model, by default of that at llm_url; None for none."""
    try:
        found = kept_result(settings, digest or probe(settings).digest)
    except CarrelError:
        return None
    return exam_record(found, settings) if found is not None else None


def exam_table(decisions: Mapping[str, DecisionResult]) -> Table:
    """Return a table of the decisions."""
    shown = Table(box=None, pad_edge=False)
    for head in ("decision", "items", "right", "rules", "tokens", "seconds", "by"):
        shown.add_column(head, justify="left" if head in ("decision", "by") else "right")
    for name, one in decisions.items():
        figures = (f"{one.items}/{one.of}", one.right, one.rules, one.tokens, one.seconds)
        shown.add_row(name, *map(str, figures), "model" if one.chosen else "rules")
    return shown


app = typer.Typer(
    help="Run a chat model beside Carrel: llama-server on this machine.", no_args_is_help=True
)
SHOWN = (
    "url", "model", "pid", "supervisor_pid", "restarts", "context", "slots", "gpu_layers",
    "backend", "log", "started_at",
)  # fmt: skip

Model = Annotated[
    str, typer.Argument(help="Model of `carrel models list`, or a GGUF file.", show_default=False)
]
ExamModel = Annotated[
    str, typer.Argument(help="A model that is served, or a GGUF file.", show_default=False)
]
Port = Annotated[
    int | None, typer.Option(min=1, max=65535, help="Port, instead of the one of llm.url.")
]
Context = Annotated[int | None, typer.Option(min=256, help="Context of one slot, in tokens.")]
Slots = Annotated[int | None, typer.Option(min=1, max=64, help="Requests worked on at once.")]
Layers = Annotated[int | None, typer.Option(min=-1, help="Layers on the GPU; -1: as many as fit.")]
Foreground = Annotated[bool, typer.Option("--foreground", help="Stay until it is stopped.")]


@app.command()
def serve(
    model: Model = "",
    port: Port = None,
    context: Context = None,
    slots: Slots = None,
    gpu_layers: Layers = None,
    foreground: Foreground = False,
    as_json: Json = False,
    changes: Set = None,
) -> None:
    """Start a server for a model, wait until it is healthy, and restart it when it fails."""
    flags = flags_from(None, changes)
    flags |= {"llm.context": context, "llama.slots": slots, "llama.gpu_layers": gpu_layers}
    asked = {name: value for name, value in flags.items() if value is not None}
    settings = load_settings(asked)[0]
    plan = prepare(settings, model, port)
    if foreground:
        _stay(plan, settings, as_json, changes)
        return
    text = f"loading {escape(plan.model)}"
    with stderr().status(text) as status:  # which shows how long it has taken so far
        state = start(plan, lambda seconds: status.update(f"{text} … {seconds:.0f} s"))
    _report(state, settings, as_json, changes)


def _stay(plan: ServePlan, settings: Settings, as_json: bool, changes: list[str] | None) -> None:
    """Serve in this process until a signal stops it."""

    def changed(state: ServerState) -> None:
        if state.state == "healthy":
            _report(state, settings, as_json, changes)

    supervisor = Supervisor(plan, changed)
    code = supervisor.run()
    if code == ALREADY_RUNNING:
        raise already_starting()
    if code:
        raise failed(supervisor.state)


def _report(
    state: ServerState, settings: Settings, as_json: bool, changes: list[str] | None
) -> None:
    """Say where the server is, and have its model examined where that was not done."""
    here = settings.model_copy(update={"llm.url": state.url})
    known = exam_of(here)
    examines = settings.llm.exam and not (known and known["finished"])
    if examines:
        examine_in_background(here, changes)
    if as_json:
        print_json(_record(state.state, state))
        return
    out = stdout()
    out.print(f"[green]healthy[/green]: {escape(_line(state))}")
    if known or not examines:
        out.print(f"  {escape(_examined(known))}")
    if examines:
        out.print(
            f"  its exam goes on in the background, at most {settings.llm.exam_seconds:.0f} s:"
            " `carrel llm exam` shows it, CARREL_LLM__EXAM=false leaves it out"
        )
    out.print(f"[dim]its key: {escape(str(home_of(settings) / KEY))}; its log: {escape(state.log)}")
    if not same_server(state.url, settings.llm.url):
        warn(f"set CARREL_LLM_URL={state.url}, so that Carrel finds it there")


@app.command()
def status(as_json: Json = False, changes: Set = None) -> None:
    """Say how the server is; exit code 0 when it is healthy, else 1."""
    settings = load_settings(flags_from(None, changes))[0]
    how, state = inspect(settings)
    others = servers_found() if how != "healthy" else []
    if as_json:
        exam = exam_of(settings)
        print_json(_record(how, state) | {"exam": exam, "others": others})
    elif state is None:
        stdout().print("stopped: no server was started by `carrel llm serve`, or it has ended")
    else:
        colour = "green" if how == "healthy" else "red"
        out = stdout()
        out.print(f"[{colour}]{how}[/{colour}]: {escape(_line(state))}")
        out.print(f"  started {state.started_at}, {_uptime(state)} ago; log: {escape(state.log)}")
        if state.error:
            out.print(f"  last error: {escape(state.error)}")
        if how == "healthy":
            out.print(f"  {escape(_examined(exam_of(settings)))}")
    if how != "healthy" and not as_json and (found := exam_of(settings)):
        stdout().print(escape(f"{found['model']} at {found['url']}: {_examined(found)}"))
    for one in [] if as_json else others:
        stdout().print(escape(f"{one['name']} answers: CARREL_LLM_URL={one['url']} uses it"))
    if how != "healthy":
        raise typer.Exit(1)


@app.command()
def exam(model: ExamModel = "", as_json: Json = False, changes: Set = None) -> None:
    """Examine a model on small decisions beside the rules; it then makes those it does better.

    Stops after llm.exam_seconds and continues at the next call; a finished one is kept
    and returned at once.
    """
    settings, result = examine(model, changes)
    decisions = result.decisions(settings.llm.answer_by_seconds)
    if as_json:
        print_json(exam_record(result, settings))
        return
    out = stdout()
    done, of = len(result.items), sum(result.of.values())
    rest = "" if result.finished else ": `carrel llm exam` goes on"
    out.print(f"{escape(result.model)} at {escape(result.url)}: {done} of {of} items{rest}")
    out.print(exam_table(decisions))
    chosen = [name for name, one in decisions.items() if one.chosen]
    out.print(f"decides: {', '.join(chosen) or 'nothing; the rules do as well or better'}")


@app.command()
def stop(as_json: Json = False, changes: Set = None) -> None:
    """Stop the server, by force when it does not react; no error when none runs."""
    stopped = stop_server(load_settings(flags_from(None, changes))[0])
    if as_json:
        print_json(_record("stopped", stopped))
    elif stopped is None:
        stdout().print("no server was running")
    else:
        stdout().print(escape(f"stopped {stopped.model} at {stopped.url} (pid {stopped.pid})"))


def _examined(found: dict[str, Any] | None) -> str:
    """Say what the exam of the model that is served has shown."""
    if found is None:
        return "not examined: `carrel llm exam` tries what it does better than the rules"
    told = ", ".join(
        f"{name} {one['right']}/{one['items']} (rules {one['rules']}){'*' * one['chosen']}"
        for name, one in found["decisions"].items()
        if one["items"]
    )
    return f"exam, {found['items']} of {found['of']} items: {told}; * decided by the model"


def _record(how: str, state: ServerState | None) -> dict[str, Any]:
    known = state.model_dump() if state is not None else {}
    record = {"state": how} | {name: known.get(name) for name in SHOWN}
    return record | ({"error": state.error} if state is not None and state.error else {})


def _line(state: ServerState) -> str:
    layers = f"{state.gpu_layers} layers on the GPU" if state.gpu_layers else "on the CPU"
    again = f", restarted {state.restarts} times" if state.restarts else ""
    return (
        f"{state.model} at {state.url} ({state.backend}, pid {state.pid}, {state.slots} ×"
        f" {state.context} tokens, {layers}{again})"
    )


def _uptime(state: ServerState) -> str:
    seconds = (datetime.now(UTC) - datetime.fromisoformat(state.started_at)).total_seconds()
    minutes, hours = int(seconds // 60), int(seconds // 3600)
    return f"{hours} h {minutes % 60} min" if hours else f"{minutes} min {int(seconds) % 60} s"
