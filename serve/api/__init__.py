"""Carrel's own routes, below /api/v1."""
