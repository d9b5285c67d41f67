"""Callers and what they did: keys, the audit log, tokens spent."""
