"""Settings of keeping and reading documents."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from core.fields.group import IGNORED, LIVE, Group


class StorageSettings(Group):
    """Say how a data directory is kept, erased and backed up."""

    insecure_permissions: Annotated[bool, IGNORED] = Field(
        False,
        description="Use a data directory that other users of the machine can read or write, as it"
        " is; without, it is closed to them, or refused.",
    )
    lock_wait_s: Annotated[float, IGNORED] = Field(
        1.0, ge=0, le=60, description="How long to wait for a data directory another process owns."
    )
    min_free_mb: Annotated[int, LIVE] = Field(
        100, ge=0, description="Ingest refuses to start with less free disk than this."
    )
    erase_wait_s: float = Field(
        30, ge=0, le=600, description="How long an erasure waits for readers of a database's log."
    )
    backup_max_gb: float = Field(
        100, gt=0, le=100_000, description="Largest backup that is restored, unpacked, in GB."
    )


ChunkerName = Literal["sentence", "fixed", "semantic", "structural"]


class IngestSettings(Group):
    """Say how documents are read and cut."""

    chunker: ChunkerName = Field(
        "sentence", description="How text is cut: 'sentence', 'fixed', 'semantic' or 'structural'."
    )
    chunk_size: int = Field(1000, ge=100, le=32000, description="Characters per chunk at most.")
    chunk_overlap: int = Field(100, ge=0, description="Characters repeated between chunks.")
    semantic_similarity: float = Field(
        0.58, ge=0, le=1, description="Cosine to the chunk so far at which a sentence joins it."
    )
    semantic_min: int = Field(
        120, ge=1, description="Characters below which a semantic chunk takes the next sentence."
    )
    semantic_max: int = Field(500, ge=20, description="Characters of a semantic chunk at most.")
    structural_max: int = Field(
        32_000,
        ge=100,
        le=200_000,
        description="Characters up to which a section or a function stays whole (4 are a token).",
    )
    merge_short: bool = Field(
        False, description="Embed and index short documents with the text of their neighbours."
    )
    merge_short_chars: int = Field(
        500, ge=1, description="Documents with fewer characters are short ones."
    )
    merge_max: int = Field(
        1200, ge=100, description="Characters of a short document and its neighbours at most."
    )
    max_file_mb: Annotated[int, LIVE] = Field(
        64, ge=1, description="Largest file that is read, in MB."
    )
    max_pages: Annotated[int, LIVE] = Field(
        5000, ge=1, description="Pages read of one document at most."
    )
    max_characters: Annotated[int, LIVE] = Field(
        20_000_000, ge=1000, description="Characters read of one file at most."
    )
    max_records_mb: int = Field(
        4096, ge=1, description="Largest file of records (CSV, JSONL, MARC) or ZIP, in MB."
    )
    max_fields: Annotated[int, LIVE] = Field(
        1000, ge=1, description="Fields (columns, keys) that the records of one file may have."
    )
    max_field_values: Annotated[int, LIVE] = Field(
        10_000, ge=1, description="Values that one record may have in all its fields."
    )
    max_collection_fields: int = Field(
        5000, ge=1, description="Fields that the records of one collection may have."
    )
    parse_timeout_s: Annotated[float, LIVE] = Field(
        60,
        gt=0,
        description="Seconds to parse one file, more for one larger than ingest.max_file_mb.",
    )
    parse_memory_mb: int = Field(2048, ge=128, description="Memory to parse one file, in MB.")
    ocr: Literal["auto", "rapidocr", "tesseract", "off"] = Field(
        "auto",
        description="What reads pictures; 'auto': RapidOCR of the extra `ocr`, then Tesseract.",
    )
    ocr_pages: int = Field(200, ge=1, description="Pages that OCR reads of a file.")
    ocr_megapixels: float = Field(
        40, gt=0, le=500, description="Largest picture that OCR reads, in megapixels."
    )
    ocr_timeout_s: float = Field(600, gt=0, description="Seconds for OCR of one file.")
    zip_entries: int = Field(10_000, ge=1, description="Entries of one ZIP container at most.")
    zip_total_mb: int = Field(
        300, ge=1, description="Unpacked size of one ZIP container at most, in MB."
    )
    zip_ratio: int = Field(
        100, ge=2, description="Unpacked to packed size of a ZIP or gzip member at most."
    )
    zip_depth: int = Field(
        3, ge=0, le=10, description="ZIP archives inside one another that are opened."
    )
    tree: Literal["off", "keep", "build"] = Field(
        "keep",
        description="What an ingest does for the tree of its collection: nothing, keep up one that"
        " was built, or build one.",
    )
    tree_reducer: Literal["pca", "umap"] = Field(
        "pca",
        description="What reduces vectors before they are clustered: principal components, or UMAP"
        " of the extra `tree`, which takes longer.",
    )
    batch: int = Field(256, ge=1, le=5000, description="Chunks per write to the catalogue.")
    vector_batch: int = Field(500, ge=1, le=500, description="Vectors per write to Chroma.")

    @model_validator(mode="after")
    def _sizes_agree(self) -> Self:
        if self.semantic_min > self.semantic_max:
            raise ValueError(
                f"ingest.semantic_min ({self.semantic_min}) must be at most ingest.semantic_max"
                f" ({self.semantic_max})"
            )
        if self.chunk_overlap >= self.chunk_size:
            raise ValueError(
                f"ingest.chunk_overlap ({self.chunk_overlap}) must be below ingest.chunk_size"
                f" ({self.chunk_size})"
            )
        return self


class SourcesSettings(Group):
    """Say how sources are kept in sync."""

    requests_per_s: Annotated[float, LIVE] = Field(
        5, gt=0, le=1000, description="Requests of one source a second at most."
    )
    timeout_s: Annotated[float, LIVE] = Field(
        60, gt=0, le=3600, description="Seconds that one item of a source may take to arrive."
    )
    retries: Annotated[int, LIVE] = Field(
        3, ge=0, le=20, description="How often a request is sent again that fails or is put off."
    )
    max_items: Annotated[int, LIVE] = Field(
        20_000, ge=1, description="Items of one source at most; with more, nothing is removed."
    )
    loader_timeout_s: Annotated[float, LIVE] = Field(
        600, gt=0, description="Seconds that a LangChain loader may take in all."
    )


class LibrarySettings(Group):
    """Say what makes a library catalogue."""

    min_text_words: int = Field(
        0, ge=0, description="Leave out full texts with fewer words (library profile: 200)."
    )
    drop_links: bool = Field(
        False,
        description="Take hyperlinks and marks of formatting out of texts and annotations (library"
        " profile: on).",
    )
    drop_repeats: bool = Field(
        False,
        description="Find a repeated annotation or passage of a collection only once, in the first"
        " document that the caller may see (library profile: on).",
    )
    book_links: bool = Field(
        False, description="Link full texts to the records of their books (library profile: on)."
    )
