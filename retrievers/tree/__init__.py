"""The tree over a collection: built from its chunks, seen with the rights of its reader."""
