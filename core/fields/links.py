"""Settings: say how a search follows names from its best hits to other chunks."""

from __future__ import annotations

from pydantic import BaseModel, Field


class LinkFields(BaseModel):
    """Say how a search follows names from its best hits to other chunks."""

    channel_links: bool = Field(
        False, description="Follow the names in the best hits to chunks that say them too."
    )
    agent_links: bool = Field(
        True, description="The same in the tool `search` and in scoped tools made of it."
    )
    links_seeds: int = Field(3, ge=1, le=20, description="Best hits whose names are followed.")
    links_weight: float = Field(
        0.7, ge=0, le=5, description="What the best link adds, as a share of the best score."
    )
    links_gain: float = Field(
        0.25,
        gt=0,
        le=1,
        description="Share of the question, missing in a hit, that gives a link full weight.",
    )
    links_strength: float = Field(
        0.1,
        gt=0,
        le=1,
        description="Share of a hit's names that must lead to a chunk for full weight.",
    )
    links_title: float = Field(
        8.0,
        ge=1,
        description="What a chunk whose title is the name counts beside others that say it.",
    )
    links_title_gain: float = Field(
        2.0,
        ge=0,
        description="Weight of such a chunk per missing share of the question; at most 1.",
    )
    links_hub_share: float = Field(
        0.01, ge=0, le=1, description="A name in more than this share of the chunks links nothing."
    )
    links_hub_least: int = Field(
        3, ge=2, description="Names in up to so many chunks always link them."
    )
    links_hub_most: int = Field(1000, ge=2, description="Names in more chunks than this never do.")
    links_pool: int = Field(200, ge=1, le=5000, description="Linked chunks weighed at most.")
