"""Sentences as answers: what each needs, how likely it is one, and which are said."""
