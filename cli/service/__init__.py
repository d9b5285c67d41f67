"""Commands around serving: serve, keys, audit, models, llm."""
