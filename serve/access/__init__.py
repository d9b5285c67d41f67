"""Who may call, how often, from where, and what is recorded of it."""
