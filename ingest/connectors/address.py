"""What the address of a source says: its kind, by its form, and never a secret."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit, urlunsplit

from core.distribution import install_command
from core.errors import CallerError
from core.settings_sources import variables
from ingest.connectors.types import Credential

Kind = Literal["folder", "web", "git", "imap", "webdav", "s3", "loader", "projects"]
KINDS: dict[str, Kind] = {
    **dict.fromkeys(("http", "https"), "web"),
    **dict.fromkeys(("git+http", "git+https", "git+file"), "git"),
    **dict.fromkeys(("imap", "imaps"), "imap"),
    **dict.fromkeys(("webdav", "webdavs"), "webdav"),
    **dict.fromkeys(("projects+http", "projects+https", "projects+file"), "projects"),
    "s3": "s3",
}
FORMS = (
    "a folder, https://…, git+https://…, git+file://…, imaps://USER@HOST/FOLDER, webdavs://…,"
    " s3://BUCKET/PREFIX, projects+https://…, projects+file://… or loader:MODULE.CLASS"
)
LACKING = f"run `{install_command('connectors')}`, or install that package"
REGION = "us-east-1"  # which stores that are compatible with S3 take for any
LONGEST = 2000  # characters, as browsers take; chosen, not measured
# What names a secret, in an address or among the parameters of a loader.
SECRET = re.compile(r"pass(word|wd)?$|pwd|secret|token|api.?key|access.?key|signature|^sig$", re.I)
DOTTED = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+")
VALUE = re.compile(r"env:([A-Za-z_]\w*)")


@dataclass(frozen=True)
class Address:
    """Hold the parts of an address; `rest` is a path, a dotted name, or a URL without user."""

    kind: Kind
    text: str
    rest: str
    user: str = ""
    parts: SplitResult = SplitResult("", "", "", "", "")

    @property
    def is_local(self) -> bool:
        """Tell whether it names files or programs of this machine."""
        return self.parts.scheme in ("", "git+file", "projects+file")

    @property
    def host(self) -> str:
        """Return the host that is connected to, "" for none or one that is not said."""
        if self.kind == "s3":
            return urlsplit(endpoint_of(self.parts)[0]).hostname or ""
        return "" if self.is_local else self.parts.hostname or ""


def parse_address(name: str, text: str) -> Address:
    """Return what an address says; raises CallerError for one that no source may have.

    `name` is that of its source, for messages.
    """
    if not 0 < len(text) <= LONGEST or not text.isprintable() or text != text.strip():
        rule = f"an address has 1 to {LONGEST} printable characters"
        raise CallerError(rule, value=text, hint=f"give {FORMS}")
    if text.startswith("loader:"):
        dotted = text.removeprefix("loader:")
        if not DOTTED.fullmatch(dotted):
            hint = "such as loader:langchain_community.document_loaders.ArxivLoader"
            raise CallerError("a loader is named as module.Class", value=dotted, hint=hint)
        package = dotted.partition(".")[0]
        if find_spec(package) is None:
            raise CallerError("the package of a loader is installed", value=package, hint=LACKING)
        return Address("loader", text, dotted)
    if "://" not in text:
        return _path(Path(text))
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError as error:
        raise CallerError(f"an address must be a valid URL ({error})", value=text) from None
    if parts.scheme == "file":
        return _path(Path(unquote(parts.path)))
    kind = KINDS.get(parts.scheme)
    if kind is None:
        raise CallerError("a source has a known kind of address", value=text, hint=f"give {FORMS}")
    _check_parts(name, parts)
    if kind == "git" and parts.scheme == "git+file":
        return Address(kind, text, unquote(parts.path), parts=parts)
    scheme = parts.scheme.removeprefix("projects+")
    bare = parts._replace(scheme=scheme, netloc=parts.netloc.rpartition("@")[2], fragment="")
    return Address(kind, text, urlunsplit(bare), unquote(parts.username or ""), parts)


def folder_of(text: str) -> Path | None:
    """Return the folder or file that the address of a kept source names, None for another kind."""
    path = Path(text)
    return path if path.is_absolute() and path.exists() else None


def _path(path: Path) -> Address:
    whole = Path(os.path.abspath(path.expanduser()))
    if not whole.exists():
        hint = f"check the path; a source is {FORMS}"
        raise CallerError("the folder of a source must exist", value=str(path), hint=hint)
    bare = (whole / "HEAD").is_file() and (whole / "objects").is_dir()
    return Address("git" if bare else "folder", str(whole), str(whole))


def _check_parts(name: str, parts: SplitResult) -> None:
    wanted = f"{variable(name)}_PASSWORD or {variable(name)}_TOKEN"
    named = [key for key, _ in parse_qsl(parts.query) if SECRET.search(key)]
    if parts.password is not None or named:
        what = f"'{named[0]}'" if named else "a password"
        hint = f"leave it out and set {wanted} in the environment"
        raise CallerError(f"an address has no secret in it, and this one has {what}", hint=hint)
    if parts.scheme == "s3":
        endpoint_of(parts)
    if not parts.hostname and not parts.scheme.endswith("+file"):
        raise CallerError("an address names a host", value=parts.geturl())
    if parts.scheme.startswith("imap") and not parts.username:
        hint = "write imaps://USER@HOST/FOLDER"
        raise CallerError("an address of a mailbox names its user", value=parts.geturl(), hint=hint)


def endpoint_of(parts: SplitResult) -> tuple[str, str]:
    """Return where a bucket's address says that it is, and its region; raises CallerError."""
    given = dict(parse_qsl(parts.query))
    region = given.get("region", REGION)
    endpoint = given.get("endpoint", f"https://s3.{region}.amazonaws.com").rstrip("/")
    found = urlsplit(endpoint)
    if found.scheme not in ("http", "https") or not found.hostname:
        raise CallerError("an endpoint is an https:// address", value=endpoint)
    return endpoint, region


def variable(name: str) -> str:
    """Return how the environment variables of a source begin."""
    return f"CARREL_SOURCE_{re.sub(r'[^A-Za-z0-9]', '_', name).upper()}"


def find_credential(name: str, user: str) -> Credential:
    """Return the secrets of a source: from the environment, else from the keyring."""
    given, prefix = variables(), variable(name)
    password, token = given.get(f"{prefix}_PASSWORD", ""), given.get(f"{prefix}_TOKEN", "")
    if not password and not token and user:
        password = _from_keyring(name, user)
    return Credential(user, password, token)


def _from_keyring(name: str, user: str) -> str:
    try:
        keyring = import_module("keyring")  # of the extra `connectors`
        return str(keyring.get_password(f"carrel-source-{name}", user) or "")
    except Exception:  # no such package, no keyring on this machine, or a locked one
        return ""


def checked_parameters(found: object) -> dict[str, Any]:
    """Return the parameters of a loader; raises CallerError for a secret in the clear."""
    if not isinstance(found, dict) or not all(isinstance(one, str) for one in found):
        raise CallerError("parameters of a loader are a mapping of names to values")
    for name, value in found.items():
        if SECRET.search(name) and not (isinstance(value, str) and VALUE.fullmatch(value)):
            hint = f"write `{name}: env:VARIABLE`; the variable is read at each sync"
            raise CallerError("a secret is named, never written", value=name, hint=hint)
    return found


def filled(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters with the values of the variables that they name; raises CallerError."""
    done = dict(parameters)
    for name, value in parameters.items():
        if isinstance(value, str) and (found := VALUE.fullmatch(value)):
            variable_ = found[1]
            secret = variables().get(variable_) or os.environ.get(variable_, "")
            if not secret:
                hint = "set it in the environment of the command, or of the server"
                rule = f"the parameter '{name}' needs an environment variable"
                raise CallerError(rule, value=variable_, hint=hint)
            done[name] = secret
    return done
