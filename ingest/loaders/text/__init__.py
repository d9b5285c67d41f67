"""Text files: plain, Markdown, reStructuredText, notebooks, and the encodings they are in."""
