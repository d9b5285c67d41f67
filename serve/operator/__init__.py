"""Commands of the operator, run by the server that owns the data directory."""
