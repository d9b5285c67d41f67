"""What an ingest makes of a file's name and bytes: new, unchanged, moved or renamed."""

from __future__ import annotations

from pathlib import Path

from ingest.discover import SourceFile
from ingest.loaders.formats import suffix_of
from ingest.seen import Seen
from stores.catalogue import Collection
from stores.files import Files
from stores.rows import FileRow
from stores.write_access import OPERATOR, WriteAccess

# Kinds of names in `Seen`: places given, names given, names given or made, names renamed.
GIVEN, LISTED, NAMED, TAKEN = "given", "listed", "named", "taken"


class Known:
    """Compare given files with those that a collection has."""

    def __init__(
        self,
        files: Files,
        collection: Collection,
        seen: Seen,
        access: WriteAccess = OPERATOR,
        *,
        prune: bool,
    ) -> None:
        """With `prune`, files stay only if their path was noted in `seen` as given.

        `access` is that of the writer.
        """
        self._files = files
        self._collection = collection
        self._seen = seen
        self._access = access
        self._prune = prune

    def stored(self, name: str) -> str:
        """Return the name in the collection of a file that its writer calls `name`."""
        return self._files.name_for(self._collection, name, self._access)

    def staying(self, relative: str) -> FileRow | None:
        """Return what is known of a file that is on the disk and not pruned."""
        row = self._files.get(self._collection, relative)
        return row if row is not None and self._stays(row) else None

    def _stays(self, row: FileRow) -> bool:
        return Path(row.path).exists() and (not self._prune or self._seen.has(GIVEN, row.path))

    def leaves(self, relative: str) -> bool:
        """Tell whether others may take the documents over that come from a file of this name."""
        row = self._files.get(self._collection, relative)
        return row is not None and not self._needed(relative) and not self._stays(row)

    def _needed(self, relative: str) -> bool:
        called = self._files.called(self._collection, relative)
        return self._seen.has(LISTED, called) or self._seen.has(NAMED, relative)

    def unchanged(self, relative: str, fingerprint: str) -> FileRow | None:
        """Return what is known of a file when it is in the collection as it is now."""
        row = self._files.get(self._collection, relative)
        same = row is not None and row.fingerprint == fingerprint
        return row if same and not self._seen.has(TAKEN, relative) else None

    def name(self, source: SourceFile, path: str) -> str:
        """Return a relative path that no other file of those that stay has.

        A path that belongs to another file gets the names of the folders above it until it is its
        own; a file that does not stay gives its name up. `path` is where the file really is.
        """
        relative, folder = source.relative, Path(path).parent
        for _ in range(len(relative.split("/")) - 1):
            folder = folder.parent
        while (
            (row := self.staying(self.stored(relative))) is not None
            and row.path != path
            and folder.name
        ):
            relative, folder = f"{folder.name}/{relative}", folder.parent
        return relative

    def previous(self, relative: str, fingerprint: str) -> FileRow | None:
        """Return the file of the same bytes and kind that is no longer where it was, if any.

        Each is returned once.
        """
        suffix = suffix_of(relative)
        for row in self._files.with_fingerprint(self._collection, fingerprint):
            same_kind = suffix_of(row.relative) == suffix
            if row.relative == relative or not same_kind or self._stays(row):
                continue
            if not self._needed(row.relative) and not self._seen.has(TAKEN, row.relative):
                self._seen.add(TAKEN, row.relative)
                return row
        return None
