"""The catalogue in PostgreSQL: the same statements, through a connection that translates them."""
