"""How a question is understood: its clauses, what it is about, how sure its kind is."""
