"""Commands that a running server carries out, and the start of one."""
