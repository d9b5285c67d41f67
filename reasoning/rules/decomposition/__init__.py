"""How a question is taken apart: patterns over the classes of its words."""
