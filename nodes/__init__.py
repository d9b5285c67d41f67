"""One node of the graph per file: thin functions over the state."""
