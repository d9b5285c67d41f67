"""Who decides: the Reasoner protocol and its implementations."""
