"""Protocols of other clients: OpenAI and LangServe."""
