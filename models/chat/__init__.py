"""The chat model: servers and files behind one guarded call."""
