"""A second opener, which the owning server itself turns away before settings are read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from cli.running import host
from core.environment import PREFIX, default_data, variables
from core.settings_file import VARIABLE

# What `carrel serve` may be given here; with anything else it is read by Typer first.
GIVEN = {"--host", "--port", "--mode", "--settings", "--data"}
FLAGS = {"--allow-anonymous", "--log", "--insecure-permissions"}
PORTS = range(65_536)


def refuse_server(arguments: Sequence[str]) -> None:
    """Raise OwnedError when these are the arguments of a second server, as `refuse_second` does.

    Reading them with Typer takes longer than all the rest of a refusal. A port that the owner has,
    or may have, is the first thing that a second server hears of.
    """
    given = _plainly_given(arguments)
    if given is not None and (port := given.get("--port", "")).isdecimal() and int(port) in PORTS:
        data = given.get("--data")
        refuse_second(Path(data) if data else None, given.get("--settings"), port=int(port))


def refuse_second(data: Path | None, file: str | None = None, port: int = 0) -> None:
    """Raise OwnedError when a server that answers owns the directory that the command means.

    When none does, or it has the port, or only the settings can tell which directory is meant, this
    says nothing: the lock decides later.
    """
    meant = data_meant(data, file)
    if meant is None or host() is not None:
        return
    from stores.folder import whole
    from stores.owner import OwnedError, is_of, read_owner

    folder = whole(meant)
    owner = read_owner(folder)
    if owner is None or not owner.port or not owner.is_here or not is_of(owner, folder):
        return
    if port and owner.url.endswith(f":{port}"):
        return
    from cli.remote import channel_closed, entered
    from serve.frames import FrameError

    try:
        with channel_closed(entered(owner)):
            raise OwnedError(folder, owner)
    except (OSError, FrameError):
        return


def data_meant(data: Path | None, file: str | None) -> Path | None:
    """Return the data directory of a flag or the environment, None when others have a say."""
    if data is not None:
        return data
    given = variables()
    if file or given.get(VARIABLE):
        return None
    named = [value for name, value in given.items() if _means_data(name)]
    if not named:
        return default_data()
    return Path(named[-1]) if named[-1] else None


def _means_data(name: str) -> bool:
    return name.startswith(PREFIX) and name.removeprefix(PREFIX).lower() == "data"


def _plainly_given(arguments: Sequence[str]) -> dict[str, str] | None:
    """Return the values that `carrel serve` was given, None when Typer may find fault with them."""
    if list(arguments[:1]) != ["serve"]:
        return None
    found, left = {}, iter(arguments[1:])
    for one in left:
        if one in FLAGS:
            continue
        name, between, value = one.partition("=")
        value = value if between else next(left, "")
        if name not in GIVEN or not value.strip() or value.startswith("-"):
            return None
        found[name] = value
    return found
