"""What the documents of a collection are like, and what that advises for its settings."""
