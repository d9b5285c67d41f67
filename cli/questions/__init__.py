"""Commands that ask: ask, chat, plan, search, trace, conversations."""
