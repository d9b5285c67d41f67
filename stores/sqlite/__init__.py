"""The record of everything, in one SQLite file: schema, reading, writing, permissions."""
