"""The SQLite catalogue (the truth), Chroma vectors (derived), the lock and the outbox."""
