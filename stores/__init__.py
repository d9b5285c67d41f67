"""The SQLite catalogue (the record of everything), the search index made of it, and the lock."""
