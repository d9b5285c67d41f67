"""The commands of `carrel eval`."""
