"""Erasing for good: from the truth at once, and its text from all that was made of it."""
