"""Settings of searching and answering: embedders, indexes, evidence, plans, a run's budget."""

from __future__ import annotations

import re
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, field_validator, model_validator

from core.fields.group import AT_START, LIVE, REFUSED, ChangeRule, Group

_AMOUNT = re.compile(r"-?(?:0(?:\.\d+)?|1(?:\.0+)?)")


class EmbeddingSettings(Group):
    """Say how the embedder, which `embedder` names, is run and given texts."""

    CHANGES: ClassVar[ChangeRule] = REFUSED

    languages: list[str] | None = Field(
        None,
        description="Languages another embedder serves (ISO 639-1); unset: as the model table says,"
        " any for models it does not know.",
    )
    query_prompt: str | None = Field(
        None, description="Put before each question; unset: as the model's files or table say."
    )
    passage_prompt: str | None = Field(
        None, description="Put before each passage; unset: as the model's files or table say."
    )
    second: str = Field(
        "none",
        min_length=1,
        description="A second embedder that votes beside the first: 'none' or as 'embedder'.",
    )
    backend: Literal["auto", "onnx", "torch"] = Field(
        "auto",
        description="What runs embedders and re-ranker; auto: ONNX where it agrees with torch.",
    )
    device: Literal["cpu", "cuda", "mps"] = Field(
        "cpu",
        description="Where torch runs embedders and re-ranker that are not embedded; ONNX files run"
        " on the CPU, so that another device is torch's.",
    )
    threads: int = Field(2, ge=1, le=64, description="Threads of embedders and re-ranker.")
    cache: int = Field(
        10_000, ge=1, description="Vectors of questions and sentences that memory holds at most."
    )


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


class LinksSettings(Group):
    """Say how a search follows names from its best hits to other chunks."""

    CHANGES: ClassVar[ChangeRule] = LIVE

    channel: bool = Field(
        False, description="Follow the names in the best hits to chunks that say them too."
    )
    agent: bool = Field(
        True, description="The same in the tool `search` and in scoped tools made of it."
    )
    seeds: int = Field(3, ge=1, le=20, description="Best hits whose names are followed.")
    weight: float = Field(
        0.7, ge=0, le=5, description="What the best link adds, as a share of the best score."
    )


# What a factor adds to a score (docs/evals/retrieval.md; those of 0, docs/evals/techdocs.md).
FACTOR_AMOUNTS = {
    "version_exact": 0.15,  # of the version asked for
    "version_near": -0.05,  # of a neighbouring version
    "version_far": -0.2,  # of a distant one
    "version_older": -0.1,  # of an older version, where the same passage has a newer one
    "code": 0.05,  # code when code is asked for, by its share
    "code_other": -0.03,  # code when it is not
    "index_page": -0.1,  # lists of links and tables of contents
    "api_name": 0.05,  # an API name of the question is there exactly
    "definition": 0.3,  # the heading is a dotted name that ends with one of the question
    "heading": 0.3,  # a title or a keyword is the query, word by word
    "title": 0.0,  # by the share of the query's words that the title has
    "opening": 0.0,  # the beginning of a document, for a question that names no code
    "page": 0.0,  # by the mean score of the best passages of the document
    "path": 0.0,  # by the share of the query's words that the path of the document has
    "cut": 0.0,  # the distance beyond which hits without a word of the query go; 0 for none
    "weak": 0.0,  # what vectors lose to words where no hit is nearer than .9 (SPEC T5)
    "headings": 0.0,  # the weight of words that headings of the best hits add to the search
    "retry": 0.0,  # what vectors lose to words when a rewritten question is searched (SPEC T6)
    "order": 0.0,  # log odds that a sentence loses for each .1 its passage lies behind the best
}


class SelectionSettings(Group):
    """Say how ranked evidence is re-ranked, cut and widened."""

    CHANGES: ClassVar[ChangeRule] = LIVE

    stage_rerank: bool = Field(
        True,
        description="Re-rank the best hits with the cross-encoder, where `reranker` names one.",
    )
    rerank_pool: int = Field(50, ge=1, le=1000, description="Hits the cross-encoder reads.")
    rerank_threshold: float = Field(
        0.0, ge=0, le=1, description="Re-ranked hits below this score are dropped; 0 keeps all."
    )
    stage_factors: bool = Field(
        True, description="Re-rank by version, headings, code, index pages and API names."
    )
    factor_amounts: list[str] = Field(
        [],
        description="What factors add to a score where it is not the usual, as name=amount:"
        f" {', '.join(FACTOR_AMOUNTS)}.",
    )
    stage_near_duplicates: bool = Field(True, description="Drop what repeats better evidence.")
    near_duplicate: float = Field(
        0.9, gt=0, le=1, description="Jaccard similarity of texts that say the same."
    )
    stage_coverage: bool = Field(False, description="Choose evidence that covers the question.")
    stage_adaptive_count: bool = Field(
        False, description="Keep few hits where the best is near, more where it is far."
    )
    stage_token_budget: bool = Field(True, description="Cut evidence to the token budget.")
    context_tokens: int = Field(
        12_000, ge=100, description="Tokens of the evidence of one search at most."
    )
    context_window: int = Field(
        0, ge=0, description="Tokens the model that answers can read; 0 when none reads."
    )
    context_share: float = Field(
        0.7, gt=0, le=1, description="Share of that window which evidence may fill."
    )
    stage_announced: bool = Field(
        True, description="Add the chunk that a hit announces by a colon at its end."
    )
    stage_neighbours: bool = Field(False, description="Add the chunks around the best hits.")
    neighbours_best: int = Field(3, ge=1, le=100, description="Hits that get their neighbours.")
    neighbours_reach: int = Field(1, ge=1, le=10, description="Neighbours on either side.")

    @field_validator("factor_amounts")
    @classmethod
    def _are_amounts(cls, given: list[str]) -> list[str]:
        for one in given:
            name, _, amount = one.partition("=")
            if name not in FACTOR_AMOUNTS or not _AMOUNT.fullmatch(amount):
                names = ", ".join(FACTOR_AMOUNTS)
                raise ValueError(f"{one!r} is not NAME=AMOUNT, -1 to 1, with a name of {names}")
        return given

    @property
    def amounts(self) -> dict[str, float]:
        """Return what each factor adds to a score."""
        given = (one.partition("=") for one in self.factor_amounts)
        return FACTOR_AMOUNTS | {name: float(amount) for name, _, amount in given}


class SegmentsSettings(Group):
    """Say how the memory-mapped search segments are built and used."""

    CHANGES: ClassVar[ChangeRule] = REFUSED

    min_rows: int = Field(
        500, ge=1, description="Collections with fewer chunks are indexed in memory, without files."
    )
    rebuild_min_rows: int = Field(
        100, ge=0, description="Fewer new and deleted chunks than this never cause a rebuild."
    )


class ChromaSettings(Group):
    """Say where Chroma is, for directories that have it as their search index."""

    CHANGES: ClassVar[ChangeRule] = REFUSED

    url: str = Field(
        "",
        description="Address of a Chroma server, as http://localhost:8000; empty for a folder in"
        " the data directory.",
    )
    timeout_s: float = Field(
        10,
        gt=0,
        le=600,
        description="Seconds a Chroma or Milvus server has for one whole search or write.",
    )


class MilvusSettings(Group):
    """Say where Milvus is, for directories that have it as their search index."""

    CHANGES: ClassVar[ChangeRule] = REFUSED

    uri: str = Field(
        "",
        description="Address of a Milvus server, as http://localhost:19530, or a file for one"
        " process; empty for one in the data directory.",
    )


class AnsweringSettings(Group):
    """Say how evidence is graded and questions are answered."""

    CHANGES: ClassVar[ChangeRule] = LIVE

    grade_answers: float = Field(
        0.5, ge=0, le=1, description="Evidence as likely to answer as this answers (grade 3)."
    )
    grade_partly: float = Field(
        0.2, ge=0, le=1, description="Evidence as likely as this partly answers (grade 2)."
    )
    grade_partly_hop: float = Field(
        0.05,
        ge=0,
        le=1,
        description="The same for a question of a chain, where the value must lead to an answer.",
    )
    grade_related: float = Field(
        0.1, ge=0, le=1, description="Evidence as likely as this is related (grade 1)."
    )
    reader: bool = Field(
        True,
        description="Let the reader that comes with `embedder=embedded` look at the likeliest"
        " sentences; off: words and vectors alone, faster.",
    )
    same_word: float = Field(
        0.95,
        ge=0,
        le=1,
        description="A word of a sentence may stand for one of its source whose vector has at"
        " least this cosine; 1: only words that the tables know as the same.",
    )
    max_rewrites: int = Field(1, ge=0, le=1, description="Rewrites of one sub-question at most.")
    drift_similarity: float = Field(
        0.6, ge=0, le=1, description="A rewrite less similar to its question is thrown away."
    )
    max_sub_questions: int = Field(5, ge=1, le=10, description="Sub-questions of one question.")
    claims_per_question: int = Field(2, ge=1, le=10, description="Sentences per sub-answer.")
    list_items: int = Field(5, ge=1, le=20, description="Items of a recommended list.")
    max_question_chars: int = Field(4000, ge=10, description="Longest question accepted.")
    history_turns: int = Field(6, ge=0, le=50, description="Earlier turns a question may use.")
    max_clarifications: Annotated[int, AT_START] = Field(
        1, ge=0, le=5, description="Times that one question may be asked back; 0: never."
    )

    @model_validator(mode="after")
    def _grades_rise(self) -> Self:
        if not self.grade_related <= self.grade_partly <= self.grade_answers:
            raise ValueError("answering.grade_related <= grade_partly <= grade_answers must hold")
        return self


class PlanSettings(Group):
    """Bound plans of several questions and their operations."""

    CHANGES: ClassVar[ChangeRule] = LIVE

    in_degree: int = Field(
        3, ge=1, le=9, description="Questions that one question of a plan may depend on."
    )
    operations: int = Field(40, ge=3, le=200, description="Operations of one plan.")
    top_k: int = Field(
        50, ge=1, le=100, description="Hits that one operation of a plan may ask for."
    )
    fan_out: int = Field(
        3, ge=1, le=10, description="Values or entities that one step of a plan may follow."
    )
    max_entities: int = Field(
        5, ge=1, le=50, description="Entities that one step of a plan may take from its evidence."
    )
    max_evidence: int = Field(
        20, ge=1, le=200, description="Pieces of evidence that a plan may give to its answer."
    )
    slot_chars: int = Field(
        200, ge=10, le=1000, description="Longest value that a slot of a plan may hold."
    )
    max_backtracks: int = Field(
        1, ge=0, le=5, description="Times that a run may undo the values of a slot and try others."
    )
    max_replans: int = Field(
        1, ge=0, le=5, description="Times that a plan of several questions may be extended."
    )
    max_hops: int = Field(
        2, ge=0, le=5, description="Searches for what a plain question's evidence leaves open."
    )
    plain_confidence: float = Field(
        0.6,
        ge=0,
        le=1,
        description="A plain question this sure is not planned with --pipeline auto.",
    )


class BudgetSettings(Group):
    """Limit one run."""

    CHANGES: ClassVar[ChangeRule] = LIVE

    steps: int = Field(128, ge=1, description="Graph steps of one run; an answer takes 6.")
    tool_calls: int = Field(24, ge=0, description="Tool calls of one run.")
    tokens: int = Field(60_000, ge=0, description="Tokens read and written in one run.")
    seconds: float = Field(120, gt=0, description="Wall-clock time of one run.")
    cost: float = Field(1.0, ge=0, description="Cost of one run, in the provider's unit.")


class EvaluationSettings(Group):
    """Say how the retrieval of a collection is measured."""

    depth: int = Field(300, ge=100, le=10_000, description="Chunks that `eval` ranks documents by.")
    resamples: int = Field(
        10_000, ge=100, le=1_000_000, description="Resamples of an interval or a paired test."
    )
    seed: int = Field(0, ge=0, description="Seed of the resamples and of shuffled sheets.")
