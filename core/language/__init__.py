"""Language: which one a text is in, its index terms and its sentences."""
