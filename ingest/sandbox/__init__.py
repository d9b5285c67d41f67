"""Parsers run in processes of their own, bounded in memory, time and rights."""
