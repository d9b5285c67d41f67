"""Rows and objects, each a record: CSV, JSON and JSON Lines."""
