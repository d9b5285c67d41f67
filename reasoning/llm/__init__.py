"""The chat model as a Reasoner: prompts as files, decisions as validated JSON."""
