"""Named, ordered changes of the catalogue; the applied names are stored in it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection

from core.errors import OperatorError

Migration = Callable[[sqlite3.Connection], None]
MIGRATIONS: list[Migration] = []


def migration(function: Migration) -> Migration:
    """Register a migration; the numbers in their names are the order of application."""
    MIGRATIONS.append(function)
    MIGRATIONS.sort(key=lambda step: step.__name__)
    return function


def apply_migrations(
    connection: sqlite3.Connection, only: Collection[str] | None = None
) -> list[str]:
    """Apply what is missing, each in its own transaction; return the names applied now.

    `only` names those that may be applied, for the schema of an earlier version.
    """
    steps = [step for step in MIGRATIONS if only is None or step.__name__ in only]
    connection.execute(
        "CREATE TABLE IF NOT EXISTS migrations (name TEXT PRIMARY KEY, applied_at TEXT NOT NULL)"
    )
    applied = {row[0] for row in connection.execute("SELECT name FROM migrations")}
    known = {step.__name__ for step in steps}
    if newer := sorted(applied - known):
        raise OperatorError(
            "the data directory was written by a newer Carrel",
            value=newer[0],
            hint="upgrade Carrel, or use another data directory",
        )
    done = []
    for step in steps:
        if step.__name__ in applied:
            continue
        connection.execute("BEGIN IMMEDIATE")
        try:
            step(connection)
            connection.execute(
                "INSERT INTO migrations VALUES (?, datetime('now'))", (step.__name__,)
            )
        except BaseException:
            connection.execute("ROLLBACK")
            raise
        connection.execute("COMMIT")
        done.append(step.__name__)
    return done


@migration
def m001_catalogue(connection: sqlite3.Connection) -> None:
    """Create collections, files, documents, permissions, chunks and record fields."""
    for statement in (
        "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL)",
        "INSERT INTO meta VALUES ('index_version', '0')",
        """CREATE TABLE collections (
            id INTEGER PRIMARY KEY, tenant TEXT NOT NULL, name TEXT NOT NULL,
            profile TEXT NOT NULL, created_at TEXT NOT NULL, UNIQUE (tenant, name))""",
        """CREATE TABLE files (
            collection_id INTEGER NOT NULL REFERENCES collections, relative TEXT NOT NULL,
            path TEXT NOT NULL, fingerprint TEXT NOT NULL, failures TEXT NOT NULL,
            PRIMARY KEY (collection_id, relative))""",
        """CREATE TABLE documents (
            id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE,
            collection_id INTEGER NOT NULL REFERENCES collections, tenant TEXT NOT NULL,
            document_id TEXT NOT NULL, file TEXT NOT NULL, source TEXT NOT NULL,
            title TEXT NOT NULL, format TEXT NOT NULL, language TEXT NOT NULL,
            is_record INTEGER NOT NULL, is_open INTEGER NOT NULL, version TEXT NOT NULL,
            updated_at TEXT NOT NULL, content_hash TEXT NOT NULL, metadata TEXT NOT NULL,
            indexed_at TEXT NOT NULL, UNIQUE (collection_id, document_id))""",
        "CREATE INDEX documents_file ON documents (collection_id, file)",
        """CREATE TABLE document_acl (
            document INTEGER NOT NULL REFERENCES documents ON DELETE CASCADE,
            principal TEXT NOT NULL, PRIMARY KEY (document, principal)) WITHOUT ROWID""",
        """CREATE TABLE chunks (
            id INTEGER PRIMARY KEY, chunk_id TEXT NOT NULL UNIQUE,
            document INTEGER NOT NULL REFERENCES documents ON DELETE CASCADE,
            collection_id INTEGER NOT NULL, ordinal INTEGER NOT NULL, text TEXT NOT NULL,
            kind TEXT NOT NULL, section TEXT NOT NULL, page INTEGER, tokens INTEGER NOT NULL,
            content_hash TEXT NOT NULL)""",
        "CREATE INDEX chunks_document ON chunks (document, ordinal)",
        "CREATE INDEX chunks_collection ON chunks (collection_id)",
        """CREATE TABLE record_fields (
            document INTEGER NOT NULL REFERENCES documents ON DELETE CASCADE,
            collection_id INTEGER NOT NULL, name TEXT NOT NULL, value TEXT NOT NULL,
            folded TEXT NOT NULL, number REAL)""",
        "CREATE INDEX record_fields_document ON record_fields (document)",
        "CREATE INDEX record_fields_name ON record_fields (collection_id, name)",
    ):
        connection.execute(statement)


@migration
def m002_embeddings(connection: sqlite3.Connection) -> None:
    """Keep vectors by (text hash, model), and the set of ids that Chroma still has to learn."""
    connection.execute(
        """CREATE TABLE embeddings (
            content_hash TEXT NOT NULL, model TEXT NOT NULL, vector BLOB NOT NULL,
            PRIMARY KEY (content_hash, model)) WITHOUT ROWID"""
    )
    connection.execute(
        """CREATE TABLE outbox (
            chunk_id TEXT PRIMARY KEY, collection_id INTEGER NOT NULL,
            operation TEXT NOT NULL CHECK (operation IN ('upsert', 'delete'))) WITHOUT ROWID"""
    )


@migration
def m003_runs(connection: sqlite3.Connection) -> None:
    """Keep every run with its steps."""
    connection.execute(
        """CREATE TABLE runs (
            run_id TEXT PRIMARY KEY, tenant TEXT NOT NULL, user TEXT NOT NULL,
            collection TEXT NOT NULL, question TEXT NOT NULL, pipeline TEXT NOT NULL,
            created_at TEXT NOT NULL, index_version INTEGER NOT NULL,
            result TEXT NOT NULL, trail TEXT NOT NULL)"""
    )
    connection.execute("CREATE INDEX runs_owner ON runs (tenant, user, created_at)")


@migration
def m004_segments(connection: sqlite3.Connection) -> None:
    """Name the search segments, note what died after they were built, never reuse a row id."""
    for statement in (
        """CREATE TABLE sentence_vectors (
            content_hash TEXT NOT NULL, model TEXT NOT NULL, vectors BLOB NOT NULL,
            PRIMARY KEY (content_hash, model)) WITHOUT ROWID""",
        "CREATE TABLE segments (collection_id INTEGER PRIMARY KEY, name TEXT NOT NULL)",
        """CREATE TABLE dead_chunks (
            collection_id INTEGER NOT NULL, id INTEGER NOT NULL,
            PRIMARY KEY (collection_id, id)) WITHOUT ROWID""",
        """CREATE TRIGGER chunks_dead AFTER DELETE ON chunks BEGIN
            INSERT OR IGNORE INTO dead_chunks VALUES (OLD.collection_id, OLD.id); END""",
        """CREATE TRIGGER collections_dead AFTER DELETE ON collections BEGIN
            DELETE FROM segments WHERE collection_id = OLD.id;
            DELETE FROM dead_chunks WHERE collection_id = OLD.id; END""",
        # All that the permission filter reads, so that it need not visit the documents.
        """CREATE INDEX documents_visible
            ON documents (collection_id, tenant, is_open, version, language, source)""",
    ):
        connection.execute(statement)
    for table in ("collections", "documents", "chunks"):
        connection.execute(
            f"INSERT INTO meta SELECT 'last_{table}', coalesce(max(id), 0) FROM {table}"
        )
        connection.execute(
            f"""CREATE TRIGGER {table}_new AFTER INSERT ON {table} BEGIN
                SELECT RAISE(ABORT, 'a row id of {table} was used again')
                    WHERE NEW.id <= (SELECT CAST(value AS INTEGER) FROM meta
                                     WHERE key = 'last_{table}');
                UPDATE meta SET value = NEW.id WHERE key = 'last_{table}'; END"""
        )


@migration
def m005_context(connection: sqlite3.Connection) -> None:
    """Keep with each chunk the neighbours' text that is searched with it."""
    connection.execute("ALTER TABLE chunks ADD COLUMN context TEXT NOT NULL DEFAULT ''")


@migration
def m006_serving(connection: sqlite3.Connection) -> None:
    """Keep the keys of callers, by the hash of their secret, and what readers thought of runs."""
    for statement in (
        """CREATE TABLE api_keys (
            id TEXT PRIMARY KEY, digest TEXT NOT NULL, tenant TEXT NOT NULL, user TEXT NOT NULL,
            roles TEXT NOT NULL, created_at TEXT NOT NULL, expires_at TEXT NOT NULL,
            revoked_at TEXT NOT NULL) WITHOUT ROWID""",
        """CREATE TABLE feedback (
            id INTEGER PRIMARY KEY, run_id TEXT NOT NULL, tenant TEXT NOT NULL, user TEXT NOT NULL,
            rating TEXT NOT NULL CHECK (rating IN ('up', 'down')), comment TEXT NOT NULL,
            created_at TEXT NOT NULL, UNIQUE (run_id, tenant, user))""",
        "CREATE INDEX feedback_owner ON feedback (tenant, user)",
    ):
        connection.execute(statement)


@migration
def m007_conversations(connection: sqlite3.Connection) -> None:
    """Keep who owns each conversation and its turns; what the graph knows of it has its own file.

    `checkpoint` names the state that the conversation goes on from; `waiting` is the run that asked
    back, as JSON, "" for none.
    """
    for statement in (
        """CREATE TABLE conversations (
            id TEXT PRIMARY KEY, tenant TEXT NOT NULL, user TEXT NOT NULL,
            collection TEXT NOT NULL, title TEXT NOT NULL, created_at TEXT NOT NULL,
            updated_at TEXT NOT NULL, checkpoint_id TEXT NOT NULL, waiting TEXT NOT NULL)
            WITHOUT ROWID""",
        "CREATE INDEX conversations_owner ON conversations (tenant, user, updated_at)",
        """CREATE TABLE conversation_turns (
            id INTEGER PRIMARY KEY,
            conversation TEXT NOT NULL REFERENCES conversations ON DELETE CASCADE,
            run_id TEXT NOT NULL, question TEXT NOT NULL, created_at TEXT NOT NULL,
            clarification TEXT NOT NULL, reply TEXT NOT NULL, UNIQUE (conversation, run_id))""",
    ):
        connection.execute(statement)


@migration
def m008_limits(connection: sqlite3.Connection) -> None:
    """Keep the limits of a key, where it has its own, and the tokens that callers have used."""
    for statement in (
        "ALTER TABLE api_keys ADD COLUMN rate INTEGER",
        "ALTER TABLE api_keys ADD COLUMN tokens_per_day INTEGER",
        """CREATE TABLE spending (
            tenant TEXT NOT NULL, user TEXT NOT NULL, hour INTEGER NOT NULL,
            tokens INTEGER NOT NULL, PRIMARY KEY (tenant, user, hour)) WITHOUT ROWID""",
    ):
        connection.execute(statement)


@migration
def m009_jobs(connection: sqlite3.Connection) -> None:
    """Keep uploads and deletions, those at work and those that ended."""
    for statement in (
        """CREATE TABLE jobs (
            number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, kind TEXT NOT NULL,
            tenant TEXT NOT NULL, user TEXT NOT NULL, collection TEXT NOT NULL, name TEXT NOT NULL,
            roles TEXT NOT NULL, bytes INTEGER NOT NULL, state TEXT NOT NULL, error TEXT NOT NULL,
            attempts INTEGER NOT NULL, documents INTEGER NOT NULL, chunks INTEGER NOT NULL,
            notes TEXT NOT NULL, created_at TEXT NOT NULL,
            updated_at TEXT NOT NULL)""",
        "CREATE INDEX jobs_owner ON jobs (tenant, user, number)",
        "CREATE INDEX jobs_open ON jobs (number) WHERE state IN ('waiting', 'running')",
    ):
        connection.execute(statement)


@migration
def m010_audit(connection: sqlite3.Connection) -> None:
    """Keep what callers did in rows that are never changed."""
    for statement in (
        """CREATE TABLE audit (
            seq INTEGER PRIMARY KEY, at TEXT NOT NULL, kind TEXT NOT NULL, tenant TEXT NOT NULL,
            user TEXT NOT NULL, facts TEXT NOT NULL, previous TEXT NOT NULL,
            hash TEXT NOT NULL)""",
        "CREATE INDEX audit_tenant ON audit (tenant, seq)",
        """CREATE TRIGGER audit_unchanged BEFORE UPDATE ON audit BEGIN
            SELECT RAISE(ABORT, 'an audit row is never changed'); END""",
        """CREATE TRIGGER audit_kept BEFORE DELETE ON audit BEGIN
            SELECT RAISE(ABORT, 'an audit row is never deleted'); END""",
    ):
        connection.execute(statement)
