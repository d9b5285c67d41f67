"""The names of the search indexes, and of their folders in a data directory."""

MEMMAP, CHROMA = "memmap", "chroma"
FOLDERS = {MEMMAP: ("segments",), CHROMA: ("words", "chroma")}  # words first
ALL_FOLDERS = tuple(name for folders in FOLDERS.values() for name in folders)
WORDS = tuple(folders[0] for folders in FOLDERS.values())
