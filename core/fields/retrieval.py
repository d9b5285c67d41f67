"""Settings: say how evidence is searched and ranked."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from core.fields.group import AT_START, LIVE, REFUSED, ChangeRule, Group


class RetrievalSettings(Group):
    """Say how evidence is searched and ranked."""

    CHANGES: ClassVar[ChangeRule] = LIVE

    top_k: int = Field(10, ge=1, le=100, description="Results of a search.")
    pool: int = Field(100, ge=1, le=1000, description="Candidates each channel gives to fusion.")
    vector_k: int = Field(
        5, ge=1, description="Vector hits of a tool that searches by vectors alone."
    )
    vector_k_extended: int = Field(15, ge=1, description="The same after a rewrite.")
    text_k: int = Field(5, ge=1, description="BM25 hits of a tool that searches by words alone.")
    text_k_extended: int = Field(10, ge=1, description="The same after a rewrite.")
    records_k: int = Field(5, ge=1, description="Rows of a record query.")
    records_k_extended: int = Field(15, ge=1, description="The same after a rewrite.")
    tool_cache: int = Field(
        64, ge=0, le=10_000, description="Results of tool calls that a run remembers; 0 for none."
    )
    weight_vector: float = Field(
        0.6, ge=0, le=1, description="Weight of the vector channel; BM25 has the rest."
    )
    channel_sentences: bool = Field(
        True, description="Let a chunk's best sentence count as much as the whole chunk."
    )
    channel_entities: Annotated[bool, REFUSED] = Field(
        False, description="Let the names in a question rank candidates as one more channel."
    )
    entity_model: Annotated[str, REFUSED] = Field(
        "auto",
        min_length=1,
        description="'auto' (an installed spaCy pipeline, else rules), 'rules', or a pipeline.",
    )
    spare: int = Field(
        10, ge=0, le=100, description="Hits beyond those asked for that stages may choose from."
    )
    text_cutoff: float = Field(
        0.3, ge=0, le=1, description="BM25 hits below this share of the best hit are dropped."
    )
    sql_timeout_s: Annotated[float, REFUSED] = Field(
        1.0, gt=0, description="Time a record query may take, within that of its run."
    )
    classic_vote: Literal["hits", "score"] = Field(
        "hits", description="What elects the document of the classic pipeline."
    )
    classic_books: Annotated[bool, AT_START] = Field(
        True, description="Let the record and the full texts of a book vote as one (classic)."
    )
