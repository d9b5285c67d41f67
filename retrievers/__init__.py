"""Ranking only: channels, fusion and selection over ranked evidence; no graph, no model talk."""
