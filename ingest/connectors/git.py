"""A Git repository: the files of its newest commit, by the command `git`.

Of a remote one only what changed is fetched, into a folder that is gone afterwards: what was
forgotten must not stay in a history. No hook and no setting of the user takes part.
"""

from __future__ import annotations

import base64
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

from core.errors import DocumentError
from ingest.connectors.address import Address
from ingest.connectors.network import check_encryption, resolve
from ingest.connectors.types import Access, Item, Received, SourceError
from ingest.loaders.formats import format_of, is_unsupported_document, refusal
from ingest.types import LoadFailure

LISTED_MB = 256  # of names of files; chosen, not measured
GONE = ("not found", "does not exist", "no such", "not appear to be")


class GitConnector:
    """List and read the blobs of HEAD; a revision is a blob's hash."""

    def __init__(self, address: Address, access: Access) -> None:
        if shutil.which("git") is None:
            raise SourceError("a repository needs the command git", hint="install it")
        self._access = access
        self._local = address.is_local
        self._place = address.rest.removeprefix("git+")
        self._folder = Path(address.rest) if self._local else access.scratch / "repository.git"
        self._blobs: dict[str, tuple[str, int]] = {}
        self._reader: subprocess.Popen[bytes] | None = None
        self.complete = True
        self.bytes_read = 0
        self.failed: list[LoadFailure] = []

    def items(self, marks: Mapping[str, str]) -> Iterator[Item]:
        """Yield the files that can be read, then fetch those that changed at once."""
        if self._local:
            if (self._folder / ".git").exists():
                self._folder /= ".git"
        else:
            self._fetch()
        listed = self._git("ls-tree", "-r", "-z", "--full-tree", "HEAD")
        for line in filter(None, listed.decode("utf-8", "replace").split("\0")):
            facts, _, name = line.partition("\t")
            mode, kind, blob = facts.split()[:3]
            if kind != "blob" or mode == "120000" or any(p[:1] == "." for p in name.split("/")):
                continue
            if is_unsupported_document(name):
                self.failed.append(LoadFailure(path=name, reason=refusal(name)))
            elif format_of(name):
                self._blobs[name] = (blob, 0)
        wanted = [blob for name, (blob, _) in self._blobs.items() if marks.get(name) != blob]
        if wanted and not self._local:
            self._fetch_blobs(wanted)
        for name, (blob, _) in self._blobs.items():
            yield Item(name, name, blob)

    def _fetch(self) -> None:
        """Get the newest commit with its folders, but no file yet where the server can do that."""
        self._git("init", "--bare", "--quiet", str(self._folder), inside=False)
        self._git("config", "remote.origin.url", self._place)
        self._git("config", "remote.origin.promisor", "true")
        self._git("config", "remote.origin.partialclonefilter", "blob:none")
        fetch = ("fetch", "--quiet", "--depth=1", "--no-tags", "--filter=blob:none", "origin")
        self._git(*fetch, "+HEAD:refs/heads/main", remote=True)
        self._git("symbolic-ref", "HEAD", "refs/heads/main")

    def _fetch_blobs(self, blobs: Sequence[str]) -> None:
        quiet = ("-c", "fetch.negotiationAlgorithm=noop", "fetch", "--quiet", "--no-tags")
        rest = ("--no-write-fetch-head", "--recurse-submodules=no", "--filter=blob:none", "--stdin")
        given = "\n".join(dict.fromkeys(blobs)).encode()
        with suppress(SourceError):  # an old server has sent all of them before
            self._git(*quiet, "origin", *rest, remote=True, given=given)

    def read(self, item: Item, mark: str, target: Path) -> Received:
        """Write a blob."""
        blob, _ = self._blobs[item.key]
        if self._reader is None:
            self._reader = subprocess.Popen(
                [*self._command(), "cat-file", "--batch"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=self._environment(remote=not self._local),
            )
        asked, answers = self._reader.stdin, self._reader.stdout
        assert asked is not None and answers is not None
        try:
            asked.write(blob.encode() + b"\n")
            asked.flush()
            head = answers.readline().split()
        except OSError:
            head = []
        if len(head) != 3:
            raise DocumentError("git cannot read a file of the repository", value=item.key)
        size = left = int(head[2])
        most = self._access.most_bytes
        with target.open("wb") as file:
            while left > 0 and (piece := answers.read(min(left, 1 << 20))):
                left -= len(piece)
                if size <= most:
                    file.write(piece)
        answers.read(1)
        if size > most:
            rule = f"a file has at most {most >> 20} MB (ingest.max_file_mb)"
            raise DocumentError(rule, value=f"{item.key} ({size >> 20} MB)")
        self.bytes_read += size
        return Received(blob)

    def close(self) -> None:
        """End the process that reads."""
        if self._reader is not None:
            self._reader.kill()
            self._reader.communicate()

    def _command(self) -> list[str]:
        return ["git", "-c", "core.hooksPath=/dev/null", f"--git-dir={self._folder}"]

    def _git(
        self, *arguments: str, inside: bool = True, remote: bool = False, given: bytes = b""
    ) -> bytes:
        command = self._command() if inside else ["git"]
        seconds = self._access.settings.sources.loader_timeout_s
        try:
            done = subprocess.run(
                [*command, *arguments],
                input=given,
                capture_output=True,
                env=self._environment(remote=remote),
                timeout=seconds,
            )
        except subprocess.TimeoutExpired:
            rule = f"git takes longer than {seconds:g} s (sources.loader_timeout_s)"
            raise SourceError(rule, value=self._place) from None
        if done.returncode:
            raise self._failure(done.stderr.decode("utf-8", "replace"))
        if len(done.stdout) > LISTED_MB << 20:
            raise SourceError("the repository has too many files", value=self._place)
        return done.stdout

    def _failure(self, errors: str) -> SourceError:
        lines = [one for one in errors.splitlines() if one.strip()] or ["no reason given"]
        line = next((one for one in lines if one.startswith(("fatal:", "error:"))), lines[-1])
        if "redirect" in errors or "301" in errors:
            hint = "the repository has moved: remove the source and add its new address"
        elif "uthentication" in errors or "could not read" in errors or "403" in errors:
            hint = f"set {self._access.variable}_TOKEN, which may have expired"
        else:
            hint = "check the address; it may have been renamed"
        return SourceError("git fails", value=f"{self._place}: {line}", hint=hint)

    def _environment(self, *, remote: bool) -> dict[str, str]:
        """Return what git may know: no settings of the user, and the one address that is checked.

        A redirect is not followed: it would lead to an address that is not.
        """
        kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        settings = {
            "http.followRedirects": "false",
            "safe.directory": "*",
            "core.fsmonitor": "false",
            "gc.auto": "0",
        }
        parts = urlsplit(self._place)
        if remote and parts.hostname:
            port = parts.port or (443 if parts.scheme == "https" else 80)
            try:
                checked = resolve(parts.hostname, port, private=self._access.private)[0]
            except OSError as error:
                raise SourceError(
                    "the host has no address", value=f"{parts.hostname}: {error}"
                ) from None
            shown = f"[{checked}]" if ":" in checked else checked
            settings["http.curloptResolve"] = f"{parts.hostname}:{port}:{shown}"
            secret = self._access.credential
            if word := secret.token or secret.password:
                check_encryption(self._place, private=self._access.private)
                pair = f"{secret.user or 'x-access-token'}:{word}".encode()
                basic = base64.b64encode(pair).decode()
                settings[f"http.{parts.scheme}://{parts.netloc}/.extraHeader"] = (
                    f"Authorization: Basic {basic}"
                )
        given = {"GIT_CONFIG_COUNT": str(len(settings))}
        for number, (name, value) in enumerate(settings.items()):
            given |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
        return (
            kept
            | given
            | {
                "GIT_CONFIG_NOSYSTEM": "1",
                "GIT_CONFIG_GLOBAL": os.devnull,
                "GIT_TERMINAL_PROMPT": "0",
                "GIT_ALLOW_PROTOCOL": "http:https",
                "GIT_ASKPASS": "true",
                "HOME": str(self._access.scratch),
            }
        )
