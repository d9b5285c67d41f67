"""Ingest the documents of a data set once, into a directory of its own below the cache.

The directory is named by a hash of all that decides its content, so another corpus, model or
chunk size never meets an index made for this one. The ingest is journaled and always run before
the directory is used: what is complete takes a moment, what was interrupted is completed.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from app.session import Session
from core.auth import AuthContext
from core.errors import CallerError, DataLockedError, OperatorError
from core.profile import Profile
from core.settings import Settings
from evals.dataset import Dataset
from ingest.pipeline import FORMAT_VERSION, Pipeline
from ingest.summary import Summary
from models.loading import open_embedder
from stores.sqlite.rows import digest

AUTH = AuthContext(tenant="evals", user="evals")
COLLECTION = "corpus"
FOLDER = "evals"
OTHER_CACHE = "set CARREL_CACHE to another folder"

# (stage, done, total); a total of 0 is not known.
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Corpus:
    """Name an ingested corpus: settings that open it, and the documents ingest left out."""

    settings: Settings
    left_out: list[str]
    reasons: list[str]


def build_corpus(
    dataset: Dataset, settings: Settings, progress: Progress, profile: Profile | None = None
) -> Corpus:
    """Ingest the corpus under a profile, or find it ingested.

    Raises CallerError when nothing of it can be ingested.
    """
    opened = _directory(settings, [dataset.corpus], profile, dataset.corpus.name)
    summary, ingested = _ingest(
        opened, profile, progress, lambda: [_copied(dataset.corpus, opened.data)]
    )
    if not ingested:
        raise CallerError(
            "nothing of the corpus could be ingested",
            value=str(dataset.corpus),
            hint=_reasons(summary)[0] if _reasons(summary) else "check the texts of its documents",
        )
    return Corpus(opened, sorted(dataset.document_ids - ingested), _reasons(summary))


def build_documents(
    paths: Sequence[Path], settings: Settings, progress: Progress, profile: Profile | None
) -> Corpus:
    """Ingest files and folders under a profile, or find them ingested; nothing may be left out."""
    files = [one for path in paths for one in sorted(path.rglob("*")) or [path] if one.is_file()]
    opened = _directory(settings, files, profile, *map(str, files))
    summary, ingested = _ingest(opened, profile, progress, lambda: list(paths))
    if summary.failed or not ingested:
        why = [*_reasons(summary), f"nothing to read in {', '.join(map(str, paths))}"]
        raise CallerError("the documents must be read", value=why[0])
    return Corpus(opened, [], _reasons(summary))


def _ingest(
    opened: Settings,
    profile: Profile | None,
    progress: Progress,
    sources: Callable[[], list[Path]],
) -> tuple[Summary, set[str]]:
    with open_corpus(opened, create=True) as session:
        assert session.embedder is not None  # it is needed to create
        target = session.intake.open_collection(AUTH.tenant, COLLECTION, profile)
        pipeline = Pipeline(
            session.store,
            session.embedder,
            session.index(target).settings if profile else opened,
            target,
            # The files are one, so that their number tells nothing.
            progress=lambda stage, done, total: (
                progress(stage, done, total) if stage != "files" else None
            ),
            second=session.second,
        )
        return pipeline.run(sources()), set(session.intake.document_hashes(target))


@contextmanager
def open_corpus(settings: Settings, *, create: bool = False) -> Iterator[Session]:
    """Open the directory of a corpus; errors name the cache."""
    try:
        if create:
            settings.data.mkdir(mode=0o700, parents=True, exist_ok=True)
        session = Session(settings, create=create, needs_embedder=create)
    except DataLockedError as error:
        raise DataLockedError(
            f"one evaluation at a time uses the index of a corpus; {error.rule}",
            value=error.value,
            hint=f"wait for it to end, or {OTHER_CACHE}",
        ) from None
    except OSError as error:
        raise OperatorError(
            "the cache must be a folder that can be written",
            value=f"{settings.data} ({error.strerror or error})",
            hint=f"correct its permissions, or {OTHER_CACHE}",
        ) from None
    with session, session.maintenance.explained():
        yield session


def _directory(
    settings: Settings, files: Sequence[Path], profile: Profile | None, *names: str
) -> Settings:
    """Return settings whose data directory is this corpus's, named by all that decides it."""
    content = [_file_hash(path) for path in files]
    ingest = settings.ingest.model_dump()
    model_id = open_embedder(settings).model_id
    parts = [*content, *names, FORMAT_VERSION, model_id, ingest]
    key = digest(*parts, profile.model_dump()) if profile else digest(*parts)
    folder = settings.cache.expanduser() / FOLDER / key / "data"
    return settings.model_copy(update={"data": folder})


def _file_hash(path: Path) -> str:
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def _copied(corpus: Path, data: Path) -> Path:
    """Keep the corpus beside its index: ingest knows a file by its place, which may change."""
    kept = data.parent / corpus.name
    if kept.exists():
        return kept
    part = kept.with_name(kept.name + ".part")
    try:
        shutil.copyfile(corpus, part)
        os.replace(part, kept)
    except OSError as error:
        raise OperatorError(
            "the cache must have room for a copy of the corpus",
            value=f"{kept} ({error.strerror or error})",
            hint=f"free some space, or {OTHER_CACHE}",
        ) from None
    return kept


def _reasons(summary: Summary) -> list[str]:
    return [f"{item.path}: {item.reason}" for item in [*summary.failed, *summary.left_out]]
