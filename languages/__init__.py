"""Languages: a folder each, with all that is known of it."""
