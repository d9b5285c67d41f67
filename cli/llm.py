"""`carrel llm`: run a llama.cpp server beside Carrel."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from cli.options import Json, Set, flags_from
from cli.output import print_json, stderr, stdout, warn

if TYPE_CHECKING:
    from core.settings import Settings
    from models.llama.plan import ServePlan
    from models.llama.server_state import ServerState

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
Port = Annotated[
    int | None, typer.Option(min=1, max=65535, help="Port, instead of the one of llm_url.")
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
    """Start a server for a model, wait until it is healthy, and keep it alive."""
    from core.settings import load_settings
    from models.llama.control import prepare

    flags = flags_from(None, changes)
    flags |= {"llm_context": context, "llm_slots": slots, "llm_gpu_layers": gpu_layers}
    asked = {name: value for name, value in flags.items() if value is not None}
    settings = load_settings(asked)[0]
    plan = prepare(settings, model, port)
    if foreground:
        _stay(plan, settings, as_json)
        return
    _report(_started(plan), settings, as_json)


def _started(plan: ServePlan) -> ServerState:
    """Start in the background and show how long it has taken so far."""
    from models.llama.control import start

    text = f"loading {escape(plan.model)}"
    with stderr().status(text) as status:
        return start(plan, lambda seconds: status.update(f"{text} … {seconds:.0f} s"))


def _stay(plan: ServePlan, settings: Settings, as_json: bool) -> None:
    """Serve in this process until a signal stops it."""
    from models.llama.control import ALREADY_RUNNING, already_starting, failed
    from models.llama.supervisor import Supervisor

    def changed(state: ServerState) -> None:
        if state.state == "healthy":
            _report(state, settings, as_json)

    supervisor = Supervisor(plan, changed)
    code = supervisor.run()
    if code == ALREADY_RUNNING:
        raise already_starting()
    if code:
        raise failed(supervisor.state)


def _report(state: ServerState, settings: Settings, as_json: bool) -> None:
    from models.llama.server_state import KEY, home_of, same_server

    if as_json:
        print_json(_record(state.state, state))
        return
    out = stdout()
    out.print(f"[green]healthy[/green]: {escape(_line(state))}")
    out.print(f"[dim]its key: {escape(str(home_of(settings) / KEY))}; its log: {escape(state.log)}")
    if not same_server(state.url, settings.llm_url):
        warn(f"set CARREL_LLM_URL={state.url}, so that Carrel finds it there")


@app.command()
def status(as_json: Json = False, changes: Set = None) -> None:
    """Say how the server is; exit code 0 when it is healthy, else 1."""
    from core.settings import load_settings
    from models.llama.control import inspect

    how, state = inspect(load_settings(flags_from(None, changes))[0])
    if as_json:
        print_json(_record(how, state))
    elif state is None:
        stdout().print("stopped: no server was started by `carrel llm serve`, or it has ended")
    else:
        colour = "green" if how == "healthy" else "red"
        out = stdout()
        out.print(f"[{colour}]{how}[/{colour}]: {escape(_line(state))}")
        out.print(f"  started {state.started_at}, {_uptime(state)} ago; log: {escape(state.log)}")
        if state.error:
            out.print(f"  last error: {escape(state.error)}")
    if how != "healthy":
        raise typer.Exit(1)


@app.command()
def stop(as_json: Json = False, changes: Set = None) -> None:
    """Stop the server, by force when it does not listen; nothing to stop is no error."""
    from core.settings import load_settings
    from models.llama.control import stop as stop_server

    stopped = stop_server(load_settings(flags_from(None, changes))[0])
    if as_json:
        print_json(_record("stopped", stopped))
    elif stopped is None:
        stdout().print("no server was running")
    else:
        stdout().print(escape(f"stopped {stopped.model} at {stopped.url} (pid {stopped.pid})"))


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
