"""The flat names that settings had before they were grouped: read until 1.0, with a note."""

from __future__ import annotations

from collections.abc import Iterable

# What stood before the names of a group; those of the other groups stood alone.
_PREFIXES = {
    "audit": "audit_",
    "budget": "budget_",
    "caching": "cache_",
    "checks": "check_",
    "chroma": "chroma_",
    "embedding": "embedder_",
    "evaluation": "eval_",
    "jwt": "jwt_",
    "links": "links_",
    "llama": "llm_",
    "llm": "llm_",
    "plan": "plan_",
    "segments": "segment_",
    "serve": "serve_",
    "studio": "studio_",
}
_OTHERS = {
    "answering.reader": "answer_reader",
    "audit.enabled": "audit",
    "ingest.batch": "ingest_batch",
    "links.agent": "agent_links",
    "links.channel": "channel_links",
    "llama.model_folder": "model_folder",
    "llama.server": "llama_server",
    "llm.answer_by_seconds": "answer_by_seconds",
    "plan.max_backtracks": "max_backtracks",
    "plan.max_hops": "max_hops",
    "plan.max_replans": "max_replans",
    "plan.plain_confidence": "plain_confidence",
    "serve.openai_sources": "openai_sources",
    "serve.otel_endpoint": "otel_endpoint",
}
QUIET = frozenset({"llm_url"})  # variables whose flat names stay


def flat_names(settings: Iterable[str]) -> dict[str, str]:
    """Return the settings in groups, such as `llm.url`, by the flat names that they had."""
    found = {}
    for setting in settings:
        group, _, name = setting.partition(".")
        if name:
            found[_OTHERS.get(setting, _PREFIXES.get(group, "") + name)] = setting
    return found
