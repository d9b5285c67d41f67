"""Metrics, traces and logs of a server."""
