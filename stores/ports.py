"""What the rooms above ask of the stores, whatever keeps it: nothing here knows a database."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Collection as AbstractCollection
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from core.auth import AuthContext
    from core.metadata import Filter
    from core.notes import FoundNote, Note, NoteDraft
    from core.profile import Profile
    from core.settings import Settings
    from core.trace import RunRecord
    from core.types import Evidence, FieldInfo
    from stores.accounts.audit import AuditLog
    from stores.accounts.keys import Keys, Spending
    from stores.backup.format import BackupManifest
    from stores.coordination import Coordination
    from stores.erasure.documents import Gone
    from stores.erasure.erase import Pending, Step
    from stores.integrity.condition import Defects
    from stores.lock import OwnerLock
    from stores.runlog.conversations import Conversation, KeptTurn
    from stores.runlog.jobs import JobRows
    from stores.runlog.runs import DocumentOpinion, DocumentRating, Rating
    from stores.runlog.sharing import Shares
    from stores.runlog.sources import SourceRows
    from stores.sqlite.access_lists import AccessList
    from stores.sqlite.catalogue import Collection
    from stores.sqlite.embeddings import Vector
    from stores.sqlite.files import Changes, JournalEntry, LeftOutRow, Stage
    from stores.sqlite.listing import DocumentName
    from stores.sqlite.permissions import WriteAccess
    from stores.sqlite.quality import BookKeys, Fingerprint, QualityCounts, TextKeys
    from stores.sqlite.record_conditions import Condition, RecordScope
    from stores.sqlite.records import Description, Groups
    from stores.sqlite.rows import DocumentRow, FileRow
    from stores.sqlite.sums import Damage
    from stores.sqlite.tree import DocumentCentre, DocumentTree, TreeRecord, TreeSource
    from stores.sqlite.writer import UnembeddedChunk


class Catalogue(Protocol):
    """What exists and what a caller may see of it; ids of rows are opaque numbers."""

    def index_version(self) -> int:
        """Return the number that grows with every change of the index."""

    def collections(self, tenant: str | None = None) -> list[Collection]:
        """List the collections of one tenant, or all of them."""

    def collection(self, tenant: str, name: str) -> Collection:
        """Return one collection, or say which ones the tenant has; for the operator alone."""

    def visible_collection(self, auth: AuthContext, name: str) -> Collection:
        """Return a collection in which the caller may see a document.

        One in which there is none for them is answered as one that does not exist, after the same
        work; the error lists what they may see. An operator sees all.
        """

    def collections_named(self, auth: AuthContext, names: str) -> list[Collection]:
        """Return the collections of a question, each as `visible_collection` does."""

    def visible_collections(self, auth: AuthContext) -> list[Collection]:
        """List the collections in which the caller may see a document."""

    def visible_documents(
        self, auth: AuthContext, collection_id: int, sources: Sequence[str] = ()
    ) -> set[int]:
        """Return the row ids of all documents the caller may see."""

    def evidence(
        self,
        auth: AuthContext,
        collection_id: int,
        chunk_ids: Sequence[str],
        sources: Sequence[str] = (),
    ) -> dict[str, Evidence]:
        """Return the chunks of these ids that the caller may see, by id; others are left out.

        `sources` are the patterns of a tool's scope, empty for all.
        """

    def neighbours(
        self, auth: AuthContext, collection_id: int, chunk_id: str, reach: int
    ) -> list[Evidence]:
        """Return a chunk and up to `reach` chunks on either side, in reading order."""

    def first_chunks(
        self, auth: AuthContext, collection_id: int, documents: Iterable[int]
    ) -> dict[int, Evidence]:
        """Return the first chunk of each document row id the caller may see."""

    def cards(self, auth: AuthContext, collection_id: int, keys: list[str]) -> list[Evidence]:
        """Return what the documents of these keys say of themselves: the records among them."""

    def full_texts(self, auth: AuthContext, collection_id: int, chunk_id: str) -> list[Evidence]:
        """Return the first chunk of each full text of the book that a record's chunk belongs to."""

    def books_of_texts(
        self, auth: AuthContext, collection_id: int, keys: Iterable[str]
    ) -> dict[str, dict[str, Any]]:
        """Return the book of each text that has one, by the text's document key.

        A book is its record's `key`, `document_id`, `title`, `source`, `authors` and `year`; one
        that the caller may not see is left out.
        """

    def texts_of_book(
        self, auth: AuthContext, collection_id: int, key: str
    ) -> list[dict[str, Any]]:
        """List the full texts of a record (by its document key) that the caller may see.

        A text is its `key`, `document_id`, `title`, `source` and the `chunk_id` it begins with.
        """

    def inverse_frequencies(self, collection_id: int, wanted: Sequence[str]) -> dict[str, float]:
        """Return log(1 + N/(1 + df)) of each term over the collection's chunks.

        A term that no chunk contains weighs most.
        """

    def list_collections(self, auth: AuthContext) -> list[dict[str, Any]]:
        """List the collections in which the caller may see a document, with the number of those."""

    def count_documents(self, auth: AuthContext, collection: Collection) -> int:
        """Return how many documents of a collection the caller may see."""

    def list_documents(
        self, auth: AuthContext, collection: Collection, *, after: str = "", limit: int = -1
    ) -> list[dict[str, Any]]:
        """List up to `limit` documents the caller may see whose id comes after `after`."""

    def measure_collection(self, auth: AuthContext, collection: Collection) -> tuple[int, str]:
        """Return how many chunks the caller may see, and when the last document came in."""

    def describe_document(
        self, auth: AuthContext, collection: Collection, document_id: str
    ) -> dict[str, Any] | None:
        """Return one document the caller may see, None where there is no such one."""

    def file_of(
        self, auth: AuthContext, collection: Collection, document_id: str
    ) -> tuple[str, str] | None:
        """Return where the file of a document that the caller may see was, and when it was read.

        None where there is no such document.
        """

    def list_passages(
        self, auth: AuthContext, collection: Collection, document_id: str, first: int, last: int
    ) -> list[dict[str, Any]]:
        """List the chunks `first` to `last` of a document the caller may see, in reading order."""

    def visible_passages(self, auth: AuthContext, collection: Collection) -> Iterator[Any]:
        """Yield every chunk the caller may see, in reading order.

        A row has document (row id), title, format, language, is_record, metadata (JSON), kind,
        section and text.
        """

    def document_names(self, auth: AuthContext, collection_id: int) -> list[DocumentName]:
        """Return what the documents a caller may see are called, in the order of their sources."""

    def chunk_ids(self, documents: Sequence[int]) -> list[str]:
        """Return the ids of the chunks of documents, by row ids, whose text is running text.

        Of a document without any, all. What of them a caller may see is for the catalogue to say.
        """

    def sections(self, documents: Sequence[int]) -> list[tuple[int, str, str]]:
        """Return row id, chunk id and section of each chunk of documents, in reading order."""

    def check_fields(
        self, auth: AuthContext, collections: Sequence[Collection], where: Sequence[Filter]
    ) -> None:
        """Raise CallerError for a field that no document has which the caller may see."""

    def find_records(
        self,
        scope: RecordScope,
        where: Sequence[Condition],
        *,
        most: bool = False,
        order_by: str | None,
        descending: bool,
        limit: int,
    ) -> tuple[list[int], int]:
        """Return the document row ids that meet every condition, and how many there are in all.

        With `most`, records that meet at least one condition count, those that meet more first.
        Those without the field they are ordered by come last.
        """

    def group_records(
        self,
        scope: RecordScope,
        where: Sequence[Condition],
        field: str,
        *,
        adds: str | None = None,
        average: bool = False,
        characters: int = 0,
        limit: int,
    ) -> Groups:
        """Count the records that meet every condition by the values of a field, most first.

        With `characters`, values that begin alike are one: those of a date of one year have 4.
        With `adds`, the sum or the average of that field's numbers takes the place of the count.
        """

    def total_of_records(
        self, scope: RecordScope, where: Sequence[Condition], field: str
    ) -> tuple[float, float, int] | None:
        """Return sum, mean and number of a field's numbers, None where there is no number."""

    def records_having(self, scope: RecordScope, words: str) -> list[tuple[str, bool]]:
        """Return the fields with all these words in one value, and whether one is just them.

        Such fields come first, then those of most records.
        """

    def records_called(
        self, auth: AuthContext, collection_id: int, words: str, sources: Sequence[str] = ()
    ) -> list[str]:
        """Return the keys of documents whose title has all these words, shortest title first.

        Where no title has them, of the one document that has them for the value of a field.
        """

    def records_sounding(self, scope: RecordScope, name: str) -> list[tuple[str, str]]:
        """Return fields with values of another script that sound like a name, as (field, value)."""

    def fields_of_records(
        self, auth: AuthContext, collection_id: int, sources: Sequence[str] = ()
    ) -> list[FieldInfo]:
        """Describe the fields of the records the caller may see, with example values."""

    def describe_records(
        self, auth: AuthContext, collection_id: int, sources: Sequence[str] = ()
    ) -> Description:
        """Describe the records the caller may see.

        Of more fields than are described the most frequent are. It is done once for all who see the
        same, as long as the collection does not change; the caller's time alone ends it.
        """

    def field_names(self, collection_id: int, auth: AuthContext | None = None) -> set[str]:
        """Return the names of all fields of a collection that a writer may see, None for all.

        Of all, each is one look into an index, however many records have it.
        """

    def known_fields(
        self,
        auth: AuthContext,
        collection_id: int,
        names: AbstractCollection[str],
        sources: Sequence[str] = (),
    ) -> set[str]:
        """Return those of these names that a field has which the caller may see."""


class Intake(Protocol):
    """What ingest reads and writes: collections, files, documents, vectors, and its journal."""

    def open_collection(self, tenant: str, name: str, profile: Profile | None) -> Collection:
        """Return the collection, making it when missing; a given profile replaces the stored."""

    def drop_collection_if_empty(self, collection: Collection) -> None:
        """Take back a collection into which nothing could be ingested, unless others ingest."""

    def alone(self) -> AbstractContextManager[bool]:
        """Give whether no other process ingests; if so, none begins during the block."""

    def ingesting(self) -> AbstractContextManager[bool]:
        """Let other processes know, during the block, that what is not in yet may follow."""

    def find_file(self, collection: Collection, relative: str) -> FileRow | None:
        """Return what is known of one file."""

    def name_for(self, collection: Collection, name: str, access: WriteAccess) -> str:
        """Return the name under which a file is kept that its writer calls `name`."""

    def id_for(self, collection: Collection, file: str, name: str, access: WriteAccess) -> str:
        """Return the id under which a document of a file is kept that its writer calls `name`."""

    def is_synced(self, collection: Collection, path: str) -> bool:
        """Tell whether a source that is kept in sync has brought the file of this path."""

    def original_name(self, collection: Collection, relative: str) -> str:
        """Return what its writer calls a file."""

    def files_with_fingerprint(self, collection: Collection, fingerprint: str) -> list[FileRow]:
        """Return the files of the same bytes, read under the same settings, by name."""

    def file_names(self, collection: Collection) -> Iterator[str]:
        """Yield the names of all files, also of those that an interrupted run began."""

    def forget_files(
        self, collection: Collection, relatives: Iterable[str], access: WriteAccess = ...
    ) -> int:
        """Remove files with all their documents; return how many documents went.

        Files that the writer may not change stay.
        """

    def document_hash(self, collection: Collection, document_id: str) -> tuple[str, str] | None:
        """Return (file, content hash) of one document."""

    def document_hashes(self, collection: Collection) -> dict[str, tuple[str, str]]:
        """Return (file, content hash) of each document by document id."""

    def count_in_files(
        self, collection: Collection, given: Callable[[str], bool]
    ) -> tuple[int, int]:
        """Count the documents and chunks that the files of these names amount to."""

    def stored_documents(self, collection_id: int, file: str) -> Iterator[DocumentRow]:
        """Yield the documents of a file by id, a page at a time; they may be removed meanwhile."""

    def count_vectors(self, model: str) -> int:
        """Count the chunks of all collections that have a vector of this model."""

    def reach_stage(
        self, collection_id: int, stage: Stage, entries: Iterable[JournalEntry]
    ) -> None:
        """Note in one transaction that these documents have reached a stage."""

    def unverified_documents(self, collection_id: int, limit: int, after: str = "") -> list[str]:
        """Return ids of documents that are to be read back, in order, those after one of them."""

    def mark_verified(self, collection_id: int, documents: Iterable[str]) -> None:
        """Let documents that were read back leave the set."""

    def pending_documents(self) -> list[dict[str, Any]]:
        """Count the documents that are not verified, by collection, file and stage."""

    def missing_vectors(self, model: str, hashes: Iterable[str]) -> set[str]:
        """Return which text hashes have no vector of this model yet."""

    def write_vectors(
        self,
        collection_id: int,
        model: str,
        vectors: Mapping[str, Vector],
        sentences: Mapping[str, Vector],
        entries: Iterable[JournalEntry],
    ) -> None:
        """Keep the vectors of a batch before its documents: they took longest to make."""

    def store_vectors(
        self,
        model: str,
        vectors: Mapping[str, Vector],
        sentences: Mapping[str, Vector] | None = None,
    ) -> None:
        """Keep vectors by text hash, and those of their sentences; searches see them at once."""

    def write_batch(self, collection: Collection, changes: Changes, access: WriteAccess) -> None:
        """Write documents with their full text, and what became of their files.

        Raises InUseError, and changes nothing, when the writer may not change one of them.
        """

    def find_access(
        self, collections: Sequence[Collection], source: str, access: WriteAccess = ...
    ) -> AccessList:
        """Return who may read the documents of the file that a source, id or file name names.

        Raises AbsentError for none, and CallerError where several collections or files fit.
        """

    def set_access(
        self,
        collections: Sequence[Collection],
        source: str,
        acl: AbstractCollection[str],
        *,
        by: AuthContext,
        access: WriteAccess = ...,
        log: AuditLog | None = None,
    ) -> tuple[AccessList, list[str]]:
        """Replace that list, empty for the whole tenant; return it, and the one before.

        It is done in one transaction with its row in `log`. Raises as `find_access` does, and
        InUseError where the writer may not change all documents of the file.
        """

    def set_all_access(
        self,
        collection: Collection,
        acl: AbstractCollection[str],
        *,
        by: AuthContext,
        access: WriteAccess = ...,
        log: AuditLog | None = None,
    ) -> AccessList:
        """Replace the lists of all files of a collection that the writer may change, in one step.

        Return it, with the documents and chunks that it is for. Raises OperatorError for a damaged
        file, and changes nothing.
        """

    def default_access(self, collection: Collection) -> list[str]:
        """Return who may read what comes into a collection without a list, empty for all."""

    def set_default_access(
        self,
        collection: Collection,
        acl: AbstractCollection[str],
        *,
        by: AuthContext,
        log: AuditLog | None = None,
    ) -> list[str]:
        """Replace that list for files that come later, and return the one before.

        What is there keeps its own, also when it is read again.
        """

    def sweep_vectors(self) -> int:
        """Drop vectors that no chunk has where there may be some; return of how many texts.

        Not while an ingest is between the vectors of a batch and its documents.
        """

    def count_unembedded(self, model: str, collection_id: int | None, *, sentences: bool) -> int:
        """Count the texts of chunks without a vector of a model, of one collection or of all.

        With `sentences` those count too that have no vectors of their sentences.
        """

    def unembedded(
        self, model: str, collection_id: int | None, batch: int, *, sentences: bool
    ) -> Iterator[list[UnembeddedChunk]]:
        """Yield these chunks, `batch` at a time; their vectors may be stored meanwhile."""

    def list_left_out(
        self, collection: Collection, file: str | None = None, limit: int = -1
    ) -> Iterator[LeftOutRow]:
        """Yield up to `limit` rows of a collection or of one file, by file and source."""

    def number_duplicates(self, collection: Collection, make: Fingerprint) -> int:
        """Fingerprint new chunks, and number equal ones; return how many rows changed.

        Records have no fingerprint: each is an entry of its own, whatever it says.
        """

    def clear_duplicates(self, collection: Collection) -> int:
        """Delete the fingerprints of a collection; return how many there were."""

    def count_duplicates(
        self, collection: Collection, auth: AuthContext | None = None
    ) -> tuple[int, int]:
        """Count the repeated annotations and passages: those that are not the first.

        With `auth` only what this caller may see counts.
        """

    def link_books(self, collection: Collection, text_keys: TextKeys, book_keys: BookKeys) -> int:
        """Link the texts of a collection again by their keys; return how many rows changed.

        Keys are compared as hashes in temporary tables, so that memory does not grow with them.
        """

    def clear_books(self, collection: Collection) -> int:
        """Forget all links of a collection; return how many there were."""

    def arrangement(self, collection: Collection) -> str:
        """Return what `note_arrangement` noted last, "" before."""

    def note_arrangement(
        self, collection: Collection, mark: str, version: int, *, changed: bool
    ) -> None:
        """Note under which rules, at which index version, a collection is arranged.

        What has `changed` raises that version; nothing is noted where it is not `version` any more.
        """

    def rebuild_words(self, progress: Callable[[str, int, int], None]) -> int:
        """Rebuild the full text of all collections; return the number of chunks."""


class Trees(Protocol):
    """The tree of each collection, without rights: `retrievers.tree` shows what a caller may see.

    A `recipe` names how leaves were cut and embedded; a tree of another one does not count.
    """

    def recipes(self, collection_id: int) -> list[str]:
        """Return the recipes of a collection's documents, none where it has no tree."""

    def unbuilt(self, collection_id: int, recipe: str) -> list[int]:
        """Return the row ids of the documents that have no part of the tree, in order."""

    def sources(self, documents: Sequence[int]) -> Iterator[TreeSource]:
        """Yield documents with their sound chunks; one that is gone is left out."""

    def write_documents(
        self, collection_id: int, recipe: str, trees: Mapping[int, DocumentTree]
    ) -> None:
        """Keep the parts of documents by row id; searches see them when they have a place."""

    def unplaced(self, collection_id: int, recipe: str) -> list[int]:
        """Return the documents with leaves that no node has, in order."""

    def centres(
        self, collection_id: int, documents: Sequence[int] | None = None
    ) -> dict[int, DocumentCentre]:
        """Return the middles of documents with leaves, of all by default."""

    def members(self, collection_id: int) -> dict[int, list[int]]:
        """Return the members of each node over documents, as `TreeRecord` numbers them."""

    def load(self, collection_id: int, recipe: str) -> TreeRecord:
        """Return the whole tree, read again when the index has changed."""

    def replace_members(
        self, collection_id: int, members: Mapping[int, Sequence[int]], *, whole: bool = False
    ) -> None:
        """Replace the members of these nodes over documents, or with `whole` of all nodes.

        Documents that are gone are left out.
        """

    def clear(self, collection_id: int) -> None:
        """Forget a collection's tree."""

    def chunk_ids(self, places: Iterable[tuple[int, int]]) -> dict[tuple[int, int], str]:
        """Return the ids of chunks by document row id and ordinal; others are left out."""


class RunLog(Protocol):
    """Runs, conversations, and opinions on them; each is found by its own user alone."""

    def save(self, run: RunRecord, auth: AuthContext | None = None) -> bool:
        """Keep a finished run, without the text of documents that were deleted meanwhile.

        Returns whether there were any. `auth` is who asked: ids of documents are theirs.
        """

    def load(self, auth: AuthContext, run_id: str) -> RunRecord:
        """Return a run by its id, an unambiguous beginning of it, or "last".

        What its reader may not see now is left out, with a warning that says so.
        """

    def newest(self, auth: AuthContext, limit: int) -> list[RunRecord]:
        """List the newest runs of a user, each with how it ended and nothing that it found.

        Those whose record is damaged are left out.
        """

    def create_conversation(self, tenant: str, user: str, collection: str) -> Conversation:
        """Begin a conversation under an id that nobody can guess."""

    def load_conversation(self, auth: AuthContext, name: str) -> Conversation:
        """Return a conversation by its whole id; raises AbsentError, OperatorError for damage."""

    def newest_conversations(
        self, auth: AuthContext, limit: int, before: str = ""
    ) -> list[Conversation]:
        """List conversations, last used first; `before` is the id of the last one seen."""

    def is_closed(self, auth: AuthContext, conversation: Conversation) -> bool:
        """Tell whether the caller may not see now what its turns rest on."""

    def turns(self, auth: AuthContext, conversation: Conversation) -> list[dict[str, Any]]:
        """Return the turns, oldest first, each with what its run answered.

        Damaged ones are left out, and answers whose run is damaged.
        """

    def rename_conversation(self, conversation: Conversation, title: str) -> None:
        """Give a conversation another title."""

    def save_turn(
        self,
        conversation: Conversation,
        turn: KeptTurn,
        checkpoint_id: str,
        *,
        title: str,
        waiting: bool = False,
    ) -> None:
        """Keep a turn, or what became of it, and the state that the next one goes on from.

        `title` is given to a conversation that has none; `waiting` says that the turn asks back.
        """

    def count_runs(self, conversation: Conversation) -> int:
        """Count the runs that go when the conversation is deleted."""

    def delete_conversation(self, conversation: Conversation) -> Counter[str]:
        """Delete a conversation with its turns, their runs and its notes, for good.

        Other runs and conversations lose what they have of those notes: these and the notes are
        counted. What readers thought of the runs stays, without question and answer; `tidy`
        follows.
        """

    def would_delete_conversation(self, conversation: Conversation) -> Counter[str]:
        """Return what `delete_conversation` would, and delete nothing."""

    def save_feedback(
        self, tenant: str, user: str, run_id: str, rating: Rating, comment: str
    ) -> None:
        """Keep an opinion on a run, which the caller has checked to be the user's own."""

    def export_feedback(
        self, auth: AuthContext, *, everyone: bool = False
    ) -> Iterator[dict[str, Any]]:
        """Yield the opinions of a caller, or of the whole tenant, with their questions.

        What others asked is their own: a tenant's export holds question, answer and rating, never
        the evidence, and of an answer what the caller who exports it may see now.
        """

    def rate_document(
        self, auth: AuthContext, collection_id: int, document_id: str, rating: DocumentOpinion
    ) -> None:
        """Keep what a caller thinks of a document; raises AbsentError for one they do not see."""

    def note_listed(self, auth: AuthContext, keys: Sequence[str]) -> None:
        """Keep that documents, by their keys, were recommended to a caller, each once."""

    def opinions_of_all(self, tenant: str, collection_id: int) -> list[tuple[str, str, str]]:
        """Return (user, first passage, opinion or "listed") of a collection, oldest first.

        It is for figures alone: no reader is shown what others think.
        """

    def adoption(self, tenant: str) -> dict[str, int]:
        """Count pairs of a user and a document: `listed`, and of those viewed, adopted, liked."""

    def list_ratings(
        self, auth: AuthContext, collection_id: int, most: int = -1
    ) -> list[DocumentRating]:
        """Return the caller's opinions on documents they see now, newest first; -1 for all."""

    def delete_ratings(self, auth: AuthContext) -> int:
        """Delete the caller's opinions on documents of all collections; return how many."""


class Notes(Protocol):
    """Notes of memory, each for its owner alone: the user of a tenant who stated it.

    One that rests on what its owner may not read now is as if it were not there.
    """

    def write_notes(self, auth: AuthContext, drafts: Sequence[NoteDraft]) -> list[Note]:
        """Keep notes, linked with those they bear on; they may supersede earlier ones.

        Those whose turn or run is not the caller's, or is gone, are left out. For one that is there
        already, that one is returned, a little more important.
        """

    def list_notes(
        self, auth: AuthContext, *, current: bool = False, limit: int = -1, after: str = ""
    ) -> list[Note]:
        """List notes, newest first; with `current` without superseded ones.

        `after` is the id of the last one seen.
        """

    def load_notes(self, auth: AuthContext, note_ids: Sequence[str]) -> dict[str, Note]:
        """Return the notes of these ids that the caller has, by id; others are left out."""

    def load_note(self, auth: AuthContext, note_id: str) -> Note:
        """Return one note; raises AbsentError."""

    def find_by_words(
        self, auth: AuthContext, text: str, limit: int, *, current: bool = True
    ) -> list[FoundNote]:
        """Return the notes with words of a text, best first (BM25 over the caller's notes)."""

    def find_by_vector(
        self, auth: AuthContext, model: str, vector: Vector, limit: int, *, current: bool = True
    ) -> list[FoundNote]:
        """Return the notes whose vectors of this model are nearest, best first (cosine)."""

    def unembedded_notes(self, auth: AuthContext, model: str) -> dict[str, str]:
        """Return the texts to embed of the notes without a vector of this model, by id."""

    def store_note_vectors(
        self,
        auth: AuthContext,
        model: str,
        vectors: Mapping[str, Vector],
        similarity: Callable[[float], float],
    ) -> None:
        """Keep vectors by note id, and link notes that are near.

        `similarity` says of a cosine how near that is: 0 unrelated, 1 of the same meaning.
        """

    def edit_note(self, auth: AuthContext, note_id: str, content: str) -> Note:
        """Write a new version of a note, under its id; raises AbsentError.

        The version before stays, superseded, under another id.
        """

    def delete_note(self, auth: AuthContext, note_id: str) -> Counter[str]:
        """Delete a note with its earlier versions and what rests on them, for good.

        Returns how many notes went, and of how many runs and conversations a part. What the user
        typed stays; what the note had superseded holds again. `tidy` follows. Raises AbsentError.
        """

    def would_delete_note(self, auth: AuthContext, note_id: str) -> Counter[str]:
        """Return what `delete_note` would, and delete nothing; raises AbsentError."""


class Accounts(Protocol):
    """Who may ask and what they did: keys, tokens spent, jobs, and the audit log."""

    keys: Keys
    spending: Spending

    def jobs(self, kept: int) -> JobRows:
        """Return the jobs, of which the last `kept` that ended are kept."""

    def sources(self) -> SourceRows:
        """Return the sources that are kept in sync."""

    def shares(self) -> Shares:
        """Return who may read conversations of others."""

    def audit(self, settings: Settings) -> AuditLog:
        """Return the audit log, signed and named as these settings say."""

    def staying_rows(self, tenant: str | None) -> tuple[int, int]:
        """Count the audit rows that stay when a tenant is erased, and those with a question."""


class Maintenance(Protocol):
    """What keeps a data directory sound: turns, checks, repairs, erasure, backups."""

    condition: Defects
    coordination: Coordination
    lock: OwnerLock
    repaired: list[str]
    on_change: list[Callable[[], object]]

    def explained(self) -> AbstractContextManager[None]:
        """Turn the database errors of a block into one that says what the operator must do."""

    def check_writable(self) -> None:
        """Raise OperatorError where writing would make things worse: malformed, or rows lost."""

    def turn(self, work: str, waiting: Callable[[str], None]) -> AbstractContextManager[None]:
        """Hold the directory for a long work of this name.

        While another is at work, `waiting` is called with its name again and again; what it raises
        ends the wait.
        """

    def changing(self) -> AbstractContextManager[object]:
        """Hold the directory for work that changes many documents, waiting as long as it takes."""

    def finish_check(self) -> None:
        """Do the full check that was put off at the opening; answers go on beside it."""

    def check_again(self) -> list[str]:
        """Check all of it while it is in use; repair what is derived; return the problems.

        What the seal cannot know is found here: rot under a file whose times did not change, and
        damage since the opening.
        """

    def check_sample(self) -> list[str]:
        """Ask every collection for a sample; rebuild what does not find it; return the problems."""

    def check_rows(self) -> Damage:
        """Check the sums of all rows, keep damaged documents out of sight, and return them."""

    def clear_repairs(self) -> None:
        """Forget what was said of repairs and changes that are done and checked by now."""

    @property
    def checking(self) -> bool:
        """Tell whether the full check has still to end."""

    def examine(self) -> dict[str, Any]:
        """Compare the derived indexes with the record, and report; see `health.examine`."""

    def accept_loss(self, settings: Settings) -> list[str]:
        """Go on without rows that are missing, noted in the audit log; return what was done."""

    def back_up(
        self,
        target: Path,
        progress: Callable[[str, int, int], None],
        *,
        key: bytes | None = None,
        force: bool = False,
        min_free_mb: int = 0,
        copy_states: Callable[[Path, Mapping[str, str]], object] | None = None,
    ) -> BackupManifest:
        """Back up into one file, which is there whole or not at all; sealed with a `key`.

        `copy_states` copies states of conversations, ids by thread, from a server into a folder.
        """

    def quality_counts(
        self, collection: Collection, examples: int
    ) -> AbstractContextManager[QualityCounts]:
        """Give what a report on a collection counts, of one moment, with so many examples."""

    def repair(
        self, embed: Callable[[], list[str]], progress: Callable[[str, int, int], None]
    ) -> list[str]:
        """Repair what can be, by the operator's wish; return what was done.

        `embed` makes the vectors that are missing, and returns what it did.
        """

    def missing(self, collection_id: int, documents: Sequence[str]) -> dict[str, str]:
        """Read documents back from every index; say by id what each lacks that is not complete."""

    def index_words_again(self, collection_id: int, documents: Sequence[str]) -> None:
        """Write the full text of documents once more."""

    def erase(self, auth: AuthContext, collection: Collection, document_id: str) -> bool:
        """Delete the document that a caller is shown under this id; return False for none."""

    def named_document(self, collection: Collection, name: str) -> Gone:
        """Return the document of this id, source, file, key or path; raises AbsentError."""

    def documents_in(self, collection: Collection, files: Sequence[str]) -> list[Gone]:
        """Return the documents of these files, by the names under which they are kept."""

    def documents_of(self, collection: Collection, patterns: Sequence[str]) -> list[Gone]:
        """Return the documents whose file or source fits any of the patterns (shell globs).

        Raises AbsentError for a pattern that nothing fits.
        """

    def forget(
        self,
        collection: Collection,
        documents: Sequence[Gone],
        *,
        keep_out: bool = False,
        access: WriteAccess = ...,
    ) -> Counter[str]:
        """Delete documents and their traces; return what was deleted, by kind.

        With `keep_out` no ingest takes in again what its writer gives one of their ids. What is
        gone already does not count.
        """

    def would_forget(self, collection: Collection, documents: Sequence[Gone]) -> Counter[str]:
        """Return what the operator's `forget` would delete, by kind, and delete nothing."""

    def would_forget_tenant(self, tenant: str) -> Counter[str]:
        """Return what `forget_tenant` would delete, by kind, and delete nothing."""

    def forget_tenant(self, tenant: str) -> Counter[str]:
        """Delete everything of a tenant but its rows in the audit log; return what, by kind."""

    def keeps_out(self, key: str) -> bool:
        """Tell whether the document of this key was forgotten with `keep_out`."""

    def let_in(self, key: str) -> bool:
        """Let a document be ingested again; return whether it was kept out."""

    def tenants(self) -> list[str]:
        """List the tenants that have anything."""

    def pending_erasure(self) -> Pending | None:
        """Return what `tidy` has to finish, None for nothing."""

    def tidy(self, step: Step = ...) -> bool:
        """Take deleted text out of all derived files; return whether there was anything to do.

        It takes as long as writing the indexes of the collections once. `step` is called between
        its parts, and may raise to end it; what is left is done by the next call.
        """


class Record(Protocol):
    """Everything that is kept, without the indexes made from it."""

    @property
    def catalogue(self) -> Catalogue:
        """Return what exists and what a caller may see."""

    @property
    def intake(self) -> Intake:
        """Return what ingest reads and writes."""

    @property
    def runs(self) -> RunLog:
        """Return runs and conversations."""

    @property
    def notes(self) -> Notes:
        """Return the notes of memory."""

    @property
    def accounts(self) -> Accounts:
        """Return keys, jobs, sources and the audit log."""

    @property
    def folder(self) -> Path:
        """Return the data directory."""

    def warnings(self) -> list[str]:
        """Return what callers should know of damage."""

    def unfinished_erasure(self) -> str:
        """Say what an erasure has left to do, "" for nothing."""

    def index(self, settings: Settings) -> str:
        """Return the search index that the directory has, with its server; "" before it has one.

        Raises a CarrelError where the settings say another.
        """
