"""Commands that keep a data directory: ingest, forget, backup, restore, doctor, status."""
