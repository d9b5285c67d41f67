"""The settings themselves, a file per group; `core.settings` merges and validates them."""
