"""The names of the search indexes, and of their folders in a data directory."""

MEMMAP, CHROMA, MILVUS = "memmap", "chroma", "milvus"
# Words first.
FOLDERS = {MEMMAP: ("segments",), CHROMA: ("words", "chroma"), MILVUS: ("words", "milvus")}
ALL_FOLDERS = tuple(dict.fromkeys(name for folders in FOLDERS.values() for name in folders))
WORDS = tuple(dict.fromkeys(folders[0] for folders in FOLDERS.values()))
VECTOR_FOLDERS = tuple(folders[1] for folders in FOLDERS.values() if folders[1:])
