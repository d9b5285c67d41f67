"""The schema of the catalogue, the number of its format, and the secret of its ids.

There are no steps from one format to another: a directory or a backup of any other is refused and
left as it is. The number is SQLite's `user_version`, which is written with the tables. Without the
secret, ids would tell who compares them which names are taken by what they may not see.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path
from secrets import token_hex

from core.errors import OperatorError

FORMAT = 4  # raise it when the tables change, or what stands in them; earlier ones had 0 to 3
_MAGIC = b"SQLite format 3\x00"
_PLACE = slice(60, 64)  # of `user_version` in the file

# Counters and marks of the whole directory. Unless `unswept` is 0, vectors may be there that no
# text has (`Writer.sweep_vectors`).
META = (
    "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL)",
    """INSERT INTO meta VALUES ('index_version', '0'), ('unswept', '1'),
        ('notes_version', '0'), ('last_collections', '0'), ('last_documents', '0'),
        ('last_chunks', '0')""",
)

# Each `sum` is the row's check sum (`stores.sqlite.sums`).
DOCUMENTS = (
    """CREATE TABLE collections (
        id INTEGER PRIMARY KEY, tenant TEXT NOT NULL, name TEXT NOT NULL,
        profile TEXT NOT NULL, created_at TEXT NOT NULL, sum INTEGER, UNIQUE (tenant, name))""",
    """CREATE TABLE files (
        collection_id INTEGER NOT NULL REFERENCES collections, relative TEXT NOT NULL,
        path TEXT NOT NULL, fingerprint TEXT NOT NULL, failures TEXT NOT NULL, sum INTEGER,
        PRIMARY KEY (collection_id, relative))""",
    "CREATE INDEX files_fingerprint ON files (collection_id, fingerprint)",
    "CREATE INDEX files_path ON files (collection_id, path)",
    """CREATE TABLE documents (
        id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE,
        collection_id INTEGER NOT NULL REFERENCES collections, tenant TEXT NOT NULL,
        document_id TEXT NOT NULL, file TEXT NOT NULL, source TEXT NOT NULL,
        title TEXT NOT NULL, format TEXT NOT NULL, language TEXT NOT NULL,
        is_record INTEGER NOT NULL, is_open INTEGER NOT NULL, version TEXT NOT NULL,
        updated_at TEXT NOT NULL, content_hash TEXT NOT NULL, metadata TEXT NOT NULL,
        indexed_at TEXT NOT NULL, sum INTEGER, body_hash TEXT NOT NULL DEFAULT '',
        UNIQUE (collection_id, document_id))""",
    "CREATE INDEX documents_file ON documents (collection_id, file)",
    # All that the permission filter reads, so that it need not visit the documents.
    """CREATE INDEX documents_visible
        ON documents (collection_id, tenant, is_open, version, language, source)""",
    """CREATE TABLE document_acl (
        document INTEGER NOT NULL REFERENCES documents ON DELETE CASCADE,
        principal TEXT NOT NULL, PRIMARY KEY (document, principal)) WITHOUT ROWID""",
    """CREATE TABLE record_fields (
        document INTEGER NOT NULL REFERENCES documents ON DELETE CASCADE,
        collection_id INTEGER NOT NULL, name TEXT NOT NULL, value TEXT NOT NULL,
        folded TEXT NOT NULL, number REAL)""",
    "CREATE INDEX record_fields_document ON record_fields (document)",
    "CREATE INDEX record_fields_name ON record_fields (collection_id, name)",
    # `context` is the neighbours' text that is searched with a chunk.
    """CREATE TABLE chunks (
        id INTEGER PRIMARY KEY, chunk_id TEXT NOT NULL UNIQUE,
        document INTEGER NOT NULL REFERENCES documents ON DELETE CASCADE,
        collection_id INTEGER NOT NULL, ordinal INTEGER NOT NULL, text TEXT NOT NULL,
        kind TEXT NOT NULL, section TEXT NOT NULL, page INTEGER, tokens INTEGER NOT NULL,
        content_hash TEXT NOT NULL, context TEXT NOT NULL DEFAULT '', sum INTEGER)""",
    "CREATE INDEX chunks_document ON chunks (document, ordinal)",
    "CREATE INDEX chunks_collection ON chunks (collection_id)",
    "CREATE INDEX chunks_kind ON chunks (collection_id, kind)",
    "CREATE INDEX chunks_hash ON chunks (content_hash)",
    # Damaged documents, by row id.
    "CREATE TABLE quarantine (document INTEGER PRIMARY KEY, reason TEXT NOT NULL)",
    """CREATE TRIGGER documents_quarantine AFTER DELETE ON documents BEGIN
        DELETE FROM quarantine WHERE document = OLD.id; END""",
)

# Row ids are never used again: segments and caches may still hold one of what is gone.
ROW_IDS = tuple(
    f"""CREATE TRIGGER {table}_new AFTER INSERT ON {table} BEGIN
        SELECT RAISE(ABORT, 'a row id of {table} was used again')
            WHERE NEW.id <= (SELECT CAST(value AS INTEGER) FROM meta
                             WHERE key = 'last_{table}');
        UPDATE meta SET value = NEW.id WHERE key = 'last_{table}'; END"""
    for table in ("collections", "documents", "chunks")
)

# Under which names documents and files came that are kept under others, beside hidden ones of the
# same name. `stored` is the id of a document, or the name of a file, within the collection; `alias`
# is what its writer called it.
ALIASES = (
    """CREATE TABLE aliases (
        collection_id INTEGER NOT NULL, kind TEXT NOT NULL CHECK (kind IN ('document', 'file')),
        stored TEXT NOT NULL, alias TEXT NOT NULL, sum INTEGER,
        PRIMARY KEY (collection_id, kind, stored)) WITHOUT ROWID""",
    "CREATE INDEX aliases_alias ON aliases (collection_id, kind, alias)",
    """CREATE TRIGGER documents_aliases AFTER DELETE ON documents BEGIN
        DELETE FROM aliases WHERE collection_id = OLD.collection_id AND kind = 'document'
            AND stored = OLD.document_id; END""",
    """CREATE TRIGGER files_aliases AFTER DELETE ON files BEGIN
        DELETE FROM aliases WHERE collection_id = OLD.collection_id AND kind = 'file'
            AND stored = OLD.relative; END""",
    """CREATE TRIGGER collections_aliases AFTER DELETE ON collections BEGIN
        DELETE FROM aliases WHERE collection_id = OLD.id; END""",
)

# The documents on their way in.
JOURNAL = (
    """CREATE TABLE journal (
        collection_id INTEGER NOT NULL, document_id TEXT NOT NULL, file TEXT NOT NULL,
        stage TEXT NOT NULL CHECK (stage IN ('parsed', 'chunked', 'embedded', 'indexed')),
        chunks INTEGER NOT NULL, PRIMARY KEY (collection_id, document_id)) WITHOUT ROWID""",
    """CREATE TRIGGER collections_journal AFTER DELETE ON collections BEGIN
        DELETE FROM journal WHERE collection_id = OLD.id; END""",
    """CREATE TRIGGER documents_journal AFTER DELETE ON documents BEGIN
        DELETE FROM journal
            WHERE collection_id = OLD.collection_id AND document_id = OLD.document_id; END""",
)

# Which texts were left out, which passages repeat others, and whose book a text is. `place` counts
# equal passages from 1, 0 where nothing is equal; `book` is NULL where several books fit. All rows
# go with the file or the document that they are about.
QUALITY = (
    """CREATE TABLE left_out (
        collection_id INTEGER NOT NULL, file TEXT NOT NULL, source TEXT NOT NULL,
        document_id TEXT NOT NULL, reason TEXT NOT NULL,
        PRIMARY KEY (collection_id, file, source)) WITHOUT ROWID""",
    """CREATE TRIGGER files_left AFTER DELETE ON files BEGIN
        DELETE FROM left_out WHERE collection_id = OLD.collection_id AND file = OLD.relative;
        END""",
    """CREATE TRIGGER files_renamed AFTER UPDATE OF relative ON files
        WHEN OLD.relative <> NEW.relative BEGIN
        UPDATE OR REPLACE left_out SET file = NEW.relative
            WHERE collection_id = OLD.collection_id AND file = OLD.relative; END""",
    """CREATE TABLE chunk_prints (
        chunk INTEGER PRIMARY KEY REFERENCES chunks ON DELETE CASCADE,
        collection_id INTEGER NOT NULL, print BLOB NOT NULL, place INTEGER NOT NULL)""",
    "CREATE INDEX chunk_prints_print ON chunk_prints (collection_id, print)",
    """CREATE INDEX chunk_prints_repeated ON chunk_prints (collection_id, print, place)
        WHERE place > 0""",
    """CREATE TABLE book_texts (
        text INTEGER PRIMARY KEY REFERENCES documents ON DELETE CASCADE,
        book INTEGER REFERENCES documents ON DELETE CASCADE,
        collection_id INTEGER NOT NULL, rule TEXT NOT NULL, sum INTEGER)""",
    "CREATE INDEX book_texts_book ON book_texts (book)",
    "CREATE INDEX book_texts_collection ON book_texts (collection_id)",
)

# Vectors by (text hash, model), the dimension of each model, and up to which row of chunks a vector
# index of its own has them.
VECTORS = (
    """CREATE TABLE embeddings (
        content_hash TEXT NOT NULL, model TEXT NOT NULL, vector BLOB NOT NULL, sum INTEGER,
        PRIMARY KEY (content_hash, model)) WITHOUT ROWID""",
    """CREATE TABLE sentence_vectors (
        content_hash TEXT NOT NULL, model TEXT NOT NULL, vectors BLOB NOT NULL, sum INTEGER,
        PRIMARY KEY (content_hash, model)) WITHOUT ROWID""",
    "CREATE TABLE embedders (model TEXT PRIMARY KEY, dimension INTEGER NOT NULL) WITHOUT ROWID",
    """CREATE TABLE indexed_vectors (
        collection_id INTEGER NOT NULL, model TEXT NOT NULL, high INTEGER NOT NULL,
        PRIMARY KEY (collection_id, model)) WITHOUT ROWID""",
)

# The published search segments, and what died after they were built.
SEGMENTS = (
    "CREATE TABLE segments (collection_id INTEGER PRIMARY KEY, name TEXT NOT NULL)",
    """CREATE TABLE dead_chunks (
        collection_id INTEGER NOT NULL, id INTEGER NOT NULL,
        PRIMARY KEY (collection_id, id)) WITHOUT ROWID""",
    """CREATE TRIGGER chunks_dead AFTER DELETE ON chunks BEGIN
        INSERT OR IGNORE INTO dead_chunks VALUES (OLD.collection_id, OLD.id); END""",
    """CREATE TRIGGER collections_dead AFTER DELETE ON collections BEGIN
        DELETE FROM segments WHERE collection_id = OLD.id;
        DELETE FROM dead_chunks WHERE collection_id = OLD.id; END""",
)

# Runs with their steps, what readers thought of them, and who owns each conversation and its turns;
# what the graph knows of a conversation has a file of its own. `checkpoint_id` names the state that
# it goes on from; `waiting` is the run that asked back, as JSON, "" for none.
RUNS = (
    """CREATE TABLE runs (
        run_id TEXT PRIMARY KEY, tenant TEXT NOT NULL, user TEXT NOT NULL,
        collection TEXT NOT NULL, question TEXT NOT NULL, pipeline TEXT NOT NULL,
        created_at TEXT NOT NULL, index_version INTEGER NOT NULL,
        result TEXT NOT NULL, trail TEXT NOT NULL, sum INTEGER)""",
    "CREATE INDEX runs_owner ON runs (tenant, user, created_at)",
    """CREATE TABLE feedback (
        id INTEGER PRIMARY KEY, run_id TEXT NOT NULL, tenant TEXT NOT NULL, user TEXT NOT NULL,
        rating TEXT NOT NULL CHECK (rating IN ('up', 'down')), comment TEXT NOT NULL,
        created_at TEXT NOT NULL, sum INTEGER, UNIQUE (run_id, tenant, user))""",
    "CREATE INDEX feedback_owner ON feedback (tenant, user)",
    """CREATE TABLE conversations (
        id TEXT PRIMARY KEY, tenant TEXT NOT NULL, user TEXT NOT NULL,
        collection TEXT NOT NULL, title TEXT NOT NULL, created_at TEXT NOT NULL,
        updated_at TEXT NOT NULL, checkpoint_id TEXT NOT NULL, waiting TEXT NOT NULL,
        sum INTEGER) WITHOUT ROWID""",
    "CREATE INDEX conversations_owner ON conversations (tenant, user, updated_at)",
    """CREATE TABLE conversation_turns (
        id INTEGER PRIMARY KEY,
        conversation TEXT NOT NULL REFERENCES conversations ON DELETE CASCADE,
        run_id TEXT NOT NULL, question TEXT NOT NULL, created_at TEXT NOT NULL,
        clarification TEXT NOT NULL, reply TEXT NOT NULL, sum INTEGER,
        UNIQUE (conversation, run_id))""",
)

# Notes of memory and what they rest on: a turn, or a run with the `documents` that its claim cites.
# A note that supersedes another is linked with it, so that the other holds again when it goes.
# `note_terms` are the analysed words of each owner's own notes: no other's words change a ranking,
# and no part of an index keeps a word of a deleted note.
NOTES = (
    """CREATE TABLE notes (
        id INTEGER PRIMARY KEY, note_id TEXT NOT NULL, tenant TEXT NOT NULL,
        owner TEXT NOT NULL, content TEXT NOT NULL, context TEXT NOT NULL,
        keywords TEXT NOT NULL, tags TEXT NOT NULL, language TEXT NOT NULL,
        subject TEXT NOT NULL, value TEXT NOT NULL, replaces INTEGER NOT NULL,
        importance REAL NOT NULL, provenance TEXT NOT NULL, conversation TEXT NOT NULL,
        run_id TEXT NOT NULL, documents TEXT NOT NULL, observed_at TEXT NOT NULL,
        created_at TEXT NOT NULL, changed_at TEXT NOT NULL, model TEXT NOT NULL DEFAULT '',
        vector BLOB, length INTEGER NOT NULL DEFAULT 0, sum INTEGER,
        UNIQUE (tenant, owner, note_id))""",
    "CREATE INDEX notes_owner ON notes (tenant, owner, observed_at)",
    "CREATE INDEX notes_subject ON notes (tenant, owner, subject) WHERE subject <> ''",
    "CREATE INDEX notes_shape ON notes (tenant, owner, language, length)",
    "CREATE INDEX notes_content ON notes (tenant, owner, content)",
    "CREATE INDEX notes_conversation ON notes (conversation)",
    "CREATE INDEX notes_run ON notes (run_id)",
    """CREATE TABLE note_terms (
        tenant TEXT NOT NULL, owner TEXT NOT NULL, term TEXT NOT NULL,
        note INTEGER NOT NULL REFERENCES notes ON DELETE CASCADE, frequency INTEGER NOT NULL,
        length INTEGER NOT NULL, PRIMARY KEY (tenant, owner, term, note)) WITHOUT ROWID""",
    "CREATE INDEX note_terms_note ON note_terms (note)",
    """CREATE TABLE note_links (
        note INTEGER NOT NULL REFERENCES notes ON DELETE CASCADE,
        other INTEGER NOT NULL REFERENCES notes ON DELETE CASCADE,
        kind TEXT NOT NULL CHECK (kind IN
            ('semantic', 'temporal', 'topical', 'contradicts', 'supersedes')),
        strength REAL NOT NULL, PRIMARY KEY (note, other, kind)) WITHOUT ROWID""",
    "CREATE INDEX note_links_other ON note_links (other, kind)",
    # What was read of the vectors holds as long as this number.
    *(
        f"""CREATE TRIGGER notes_version_{name} AFTER {event} ON notes BEGIN
        UPDATE meta SET value = value + 1 WHERE key = 'notes_version'; END"""
        for name, event in (("deleted", "DELETE"), ("embedded", "UPDATE OF model"))
    ),
)

# Keys of callers, by the hash of their secret: `rate` and `tokens_per_day` where a key has its own,
# `scope` to what it is confined, as JSON, NULL for nothing. The tokens that callers have used;
# uploads and deletions, those at work and those that ended.
SERVING = (
    """CREATE TABLE api_keys (
        id TEXT PRIMARY KEY, digest TEXT NOT NULL, tenant TEXT NOT NULL, user TEXT NOT NULL,
        roles TEXT NOT NULL, created_at TEXT NOT NULL, expires_at TEXT NOT NULL,
        revoked_at TEXT NOT NULL, rate INTEGER, tokens_per_day INTEGER, sum INTEGER,
        scope TEXT) WITHOUT ROWID""",
    """CREATE TABLE spending (
        tenant TEXT NOT NULL, user TEXT NOT NULL, hour INTEGER NOT NULL,
        tokens INTEGER NOT NULL, PRIMARY KEY (tenant, user, hour)) WITHOUT ROWID""",
    """CREATE TABLE jobs (
        number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, kind TEXT NOT NULL,
        tenant TEXT NOT NULL, user TEXT NOT NULL, collection TEXT NOT NULL, name TEXT NOT NULL,
        roles TEXT NOT NULL, bytes INTEGER NOT NULL, state TEXT NOT NULL, error TEXT NOT NULL,
        attempts INTEGER NOT NULL, documents INTEGER NOT NULL, chunks INTEGER NOT NULL,
        notes TEXT NOT NULL, created_at TEXT NOT NULL,
        updated_at TEXT NOT NULL, sum INTEGER, caller TEXT NOT NULL DEFAULT '')""",
    "CREATE INDEX jobs_owner ON jobs (tenant, user, number)",
    "CREATE INDEX jobs_open ON jobs (number) WHERE state IN ('waiting', 'running')",
)

# Sources that are kept in sync, and what each has brought: `key` names an item at the source,
# `path` where its file was read, `file` what it was called, `mark` and `hash` its revision and
# bytes; an item on its way in has no mark. It goes with its file: what was forgotten is new again.
SOURCES = (
    """CREATE TABLE sources (
        id INTEGER PRIMARY KEY, tenant TEXT NOT NULL, user TEXT NOT NULL, name TEXT NOT NULL,
        collection TEXT NOT NULL, address TEXT NOT NULL, options TEXT NOT NULL,
        acl TEXT NOT NULL, every INTEGER NOT NULL, caller TEXT NOT NULL, state TEXT NOT NULL,
        message TEXT NOT NULL, synced REAL NOT NULL, sum INTEGER,
        UNIQUE (tenant, user, name))""",
    """CREATE TABLE source_items (
        source INTEGER NOT NULL REFERENCES sources ON DELETE CASCADE, key TEXT NOT NULL,
        collection_id INTEGER NOT NULL, file TEXT NOT NULL, path TEXT NOT NULL,
        mark TEXT NOT NULL, hash TEXT NOT NULL, PRIMARY KEY (source, key)) WITHOUT ROWID""",
    "CREATE INDEX source_items_path ON source_items (collection_id, path)",
    """CREATE TRIGGER files_items AFTER DELETE ON files BEGIN
        DELETE FROM source_items WHERE collection_id = OLD.collection_id AND path = OLD.path
            AND instr(OLD.relative, file) > 0; END""",
    """CREATE TRIGGER collections_items AFTER DELETE ON collections BEGIN
        DELETE FROM source_items WHERE collection_id = OLD.id; END""",
)

# Pruning alone removes rows of the audit log: within its transaction the trigger is away.
AUDIT_KEPT = """CREATE TRIGGER audit_kept BEFORE DELETE ON audit BEGIN
        SELECT RAISE(ABORT, 'an audit row is never deleted'); END"""
AUDIT = (
    """CREATE TABLE audit (
        seq INTEGER PRIMARY KEY, at TEXT NOT NULL, kind TEXT NOT NULL, tenant TEXT NOT NULL,
        user TEXT NOT NULL, facts TEXT NOT NULL, previous TEXT NOT NULL,
        hash TEXT NOT NULL)""",
    "CREATE INDEX audit_tenant ON audit (tenant, seq)",
    """CREATE TRIGGER audit_unchanged BEFORE UPDATE ON audit BEGIN
        SELECT RAISE(ABORT, 'an audit row is never changed'); END""",
    AUDIT_KEPT,
)

# What derived files still have to forget after an erasure, and the documents that stay out. No row
# has a name or a text in it: a collection is its row id, a leftover the id of a thread or of an
# upload, a document its key, which is a hash.
ERASURE = (
    """CREATE TABLE erasures (
        id INTEGER PRIMARY KEY, collection_id INTEGER NOT NULL, documents INTEGER NOT NULL,
        at TEXT NOT NULL)""",
    """CREATE TABLE erasure_leftovers (
        kind TEXT NOT NULL CHECK (kind IN ('thread', 'upload')), name TEXT NOT NULL,
        PRIMARY KEY (kind, name)) WITHOUT ROWID""",
    "CREATE TABLE kept_out (key TEXT PRIMARY KEY, at TEXT NOT NULL) WITHOUT ROWID",
)

# The tree of a collection (`stores.sqlite.tree`): of each document its leaves and the nodes above
# them, and over the documents the members of each node, documents or other nodes; node 0 is the
# root.
TREE = (
    """CREATE TABLE tree_documents (
        document INTEGER PRIMARY KEY REFERENCES documents ON DELETE CASCADE,
        collection_id INTEGER NOT NULL, recipe TEXT NOT NULL, shape TEXT NOT NULL,
        vectors BLOB NOT NULL, centre BLOB NOT NULL, tokens INTEGER NOT NULL, sum INTEGER)""",
    "CREATE INDEX tree_documents_recipe ON tree_documents (collection_id, recipe, tokens)",
    """CREATE TABLE tree_members (
        collection_id INTEGER NOT NULL REFERENCES collections ON DELETE CASCADE,
        node INTEGER NOT NULL, child INTEGER,
        document INTEGER REFERENCES tree_documents ON DELETE CASCADE)""",
    "CREATE INDEX tree_members_node ON tree_members (collection_id, node)",
    "CREATE INDEX tree_members_document ON tree_members (document)",
)

SCHEMA = (
    *(*META, *DOCUMENTS, *ROW_IDS, *ALIASES, *JOURNAL, *QUALITY),
    *(*VECTORS, *SEGMENTS, *RUNS, *NOTES, *SERVING, *SOURCES, *AUDIT, *ERASURE, *TREE),
)


def make_schema(connection: sqlite3.Connection) -> None:
    """Make the whole schema in an empty catalogue, in one transaction; leave another as it is.

    To be called before the first log: `format_of` looks into the file alone.
    """
    if not _is_empty(connection):
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        if _is_empty(connection):  # nobody else has made it meanwhile
            _create(connection)
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def _is_empty(connection: sqlite3.Connection) -> bool:
    return connection.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchone() is None


def _create(connection: sqlite3.Connection) -> None:
    for statement in SCHEMA:
        connection.execute(statement)
    secret = (ID_SECRET, new_secret())
    connection.execute("INSERT INTO meta VALUES (?, ?)", secret)
    connection.execute(f"PRAGMA user_version = {FORMAT}")


def format_of(path: Path) -> int | None:
    """Return the format of a catalogue, None where there is none, or none that SQLite can read.

    SQLite is not asked: opening a file may change it, and what is refused stays as it is.
    """
    try:
        with path.open("rb") as file:
            header = file.read(_PLACE.stop)
    except OSError:
        return None
    whole = len(header) == _PLACE.stop and header.startswith(_MAGIC)
    return int.from_bytes(header[_PLACE], "big") if whole else None


def check_format(path: Path) -> None:
    """Raise OperatorError for a catalogue of another format."""
    found = format_of(path)
    if found is not None and found != FORMAT:
        raise other_format("data directory", found, str(path.parent))


def other_format(what: str, found: int, where: str) -> OperatorError:
    """Explain that a data directory, or a backup, has another format than this program's."""
    value = f"format {found}, where this Carrel has {FORMAT} ({where})"
    if found > FORMAT:
        return OperatorError(
            f"the {what} was written by a newer Carrel",
            value=value,
            hint="nothing was changed; upgrade Carrel, or use another data directory",
        )
    return OperatorError(
        f"the {what} has an earlier format",
        value=value,
        hint="nothing was changed; make a new data directory from your files:"
        " `carrel ingest PATH --data DIRECTORY`",
    )


ID_SECRET = "id_secret"  # in `meta`; goes into every key of a document and every id of a chunk
SECRET_BYTES = 16  # 128 bits, which nobody guesses
SECRET = f"(SELECT value FROM meta WHERE key = '{ID_SECRET}')"  # SQL


def new_secret() -> str:
    """Return a random secret, in hexadecimal."""
    return token_hex(SECRET_BYTES)
