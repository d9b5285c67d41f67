"""One file with all that a data directory cannot make anew, and the way back from it."""
