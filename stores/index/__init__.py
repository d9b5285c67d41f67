"""The search index of a data directory: its port, the implementations, and which one it has."""
