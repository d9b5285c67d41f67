"""Refuse a second server at once when one already owns the data directory, early."""

from __future__ import annotations

from pathlib import Path

from cli.server.remote import channel_closed, entered
from cli.server.running import host
from core.settings_sources import PREFIX, VARIABLE, default_data, variables
from serve.operator.frames import FrameError
from stores.folder import whole
from stores.lock import OwnedError, is_of, read_owner


def refuse_second(data: Path | None, file: str | None = None, port: int = 0) -> None:
    """Raise OwnedError when a server that answers owns the directory that the command means.

    When none does, or it has the port, or only the settings can tell which directory is meant, this
    says nothing: the lock decides later.
    """
    meant = data_meant(data, file)
    if meant is None or host() is not None:
        return
    folder = whole(meant)
    owner = read_owner(folder)
    if owner is None or not owner.port or not owner.is_here or not is_of(owner, folder):
        return
    if port and owner.url.endswith(f":{port}"):
        return
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
