"""The flat names that settings had before they were grouped: read until 1.0, with a note."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import Any

from core.settings_sources import is_of_a_command

# Of each group what stood before its names, and the names.
_PREFIXED = {
    "embedding": (
        "embedder_",
        "languages query_prompt passage_prompt second backend device threads cache",
    ),
    "ingest": ("ingest_", "batch"),
    "checks": ("check_", "interval_s"),
    "segments": ("segment_", "min_rows rebuild_min_rows"),
    "links": ("links_", "seeds weight"),
    "llm": (
        "llm_",
        "url model key file provider decisions temperature seed thinking "
        "decision_tokens answer_tokens evidence_tokens grade_partly exam exam_seconds "
        "thinking_tokens context history_tokens repairs prompts retries probe_seconds "
        "check_seconds connect_seconds first_token_seconds gap_seconds call_seconds "
        "queue repeats price_prompt price_completion",
    ),
    "plan": ("plan_", "in_degree operations top_k fan_out max_entities max_evidence slot_chars"),
    "budget": ("budget_", "steps tool_calls tokens seconds cost"),
    "evaluation": ("eval_", "depth resamples seed"),
    "studio": ("studio_", "collection tenant user roles clarify"),
    "serve": (
        "serve_",
        "mode host port hosts origins anonymous_roles writer_roles admin_role "
        "operator_tenant log_level log_format threads search_threads caller_threads "
        "shared_threads waiting caller_waiting stop_seconds body_bytes upload_bytes "
        "header_seconds body_seconds idle_seconds connections commands jobs ask_rate "
        "rate tokens_per_day wrong_keys",
    ),
    "chroma": ("chroma_", "url timeout_s"),
    "jwt": ("jwt_", "key public_key algorithm audience issuer leeway_seconds"),
    "caching": (
        "cache_",
        "embedding_hours rewrite_hours result_minutes answer_minutes mb redis_url "
        "redis_password redis_seconds",
    ),
    "audit": ("audit_", "questions days key"),
}
# The names that stood alone, and do now in their group.
_ALONE = {
    "storage": "insecure_permissions lock_wait_s min_free_mb erase_wait_s backup_max_gb",
    "ingest": (
        "chunker chunk_size chunk_overlap semantic_similarity semantic_min semantic_max "
        "structural_max merge_short merge_short_chars merge_max max_file_mb max_pages "
        "max_characters max_records_mb max_fields max_field_values max_collection_fields "
        "parse_timeout_s parse_memory_mb zip_entries zip_total_mb zip_ratio zip_depth "
        "vector_batch"
    ),
    "library": "min_text_words drop_links drop_repeats book_links",
    "retrieval": (
        "top_k pool vector_k vector_k_extended text_k text_k_extended records_k "
        "records_k_extended tool_cache weight_vector channel_sentences channel_entities "
        "entity_model spare text_cutoff sql_timeout_s classic_vote "
        "classic_books"
    ),
    "selection": (
        "stage_rerank rerank_pool rerank_threshold stage_factors stage_near_duplicates "
        "near_duplicate stage_coverage stage_token_budget context_tokens context_window "
        "context_share stage_announced stage_neighbours neighbours_best neighbours_reach"
    ),
    "answering": (
        "grade_answers grade_partly grade_partly_hop grade_related max_rewrites "
        "drift_similarity max_sub_questions claims_per_question list_items "
        "max_question_chars history_turns max_clarifications"
    ),
    "llm": "answer_by_seconds",
    "llama": "model_folder",
    "plan": "max_backtracks max_replans max_hops plain_confidence",
    "serve": "otel_endpoint openai_sources",
}
_OTHERS = {
    "channel_links": "links.channel",
    "agent_links": "links.agent",
    "answer_reader": "answering.reader",
    "llama_server": "llama.server",
    "llm_home": "llama.home",
    "llm_slots": "llama.slots",
    "llm_gpu_layers": "llama.gpu_layers",
    "llm_threads": "llama.threads",
    "llm_memory_margin": "llama.memory_margin",
    "llm_load_seconds": "llama.load_seconds",
    "llm_log_bytes": "llama.log_bytes",
    "llm_restarts": "llama.restarts",
    "audit": "audit.enabled",
}
FLAT = (
    {
        f"{prefix}{name}": f"{group}.{name}"
        for group, (prefix, names) in _PREFIXED.items()
        for name in names.split()
    }
    | {name: f"{group}.{name}" for group, names in _ALONE.items() for name in names.split()}
    | _OTHERS
)
# What was a setting and is a constant beside its use, as nobody changed it.
FIXED = frozenset(
    (
        "embedder_batch reranker_batch reranker_max_tokens annotation_chars annotation_spread "
        "long_sentence lone_words noise_share header_repeats quality_examples first_year "
        "rrf_constant classic_k bm25_title bm25_keywords bm25_section bm25_k1 bm25_b "
        "segment_gather_share segment_masks segment_sample_rows segment_max_new_share "
        "segment_rebuild_share links_gain links_strength links_title links_title_gain "
        "links_pool links_hub_share links_hub_least links_hub_most rerank_min_ms "
        "factor_version_exact factor_version_near factor_version_far factor_code "
        "factor_code_other factor_index_page factor_api_name factor_heading version_near "
        "index_page_lines index_page_width index_page_share near_duplicate_pool "
        "near_duplicate_words coverage_alpha coverage_min_gain coverage_k check_sample "
        "check_words check_seal_mb check_missed_share check_probe_s llm_reply_bytes "
        "vector_exact_limit llm_plan_repairs llm_connections llm_health_seconds "
        "llm_health_misses llm_stop_seconds llm_breaker_failures "
        "llm_breaker_seconds plan_threshold plan_file_depth plan_file_kb hop_coverage "
        "budget_answer_share eval_warmup eval_confidence serve_retry_seconds "
        "serve_cancel_seconds serve_ping_seconds serve_command_bytes metrics_samples "
        "serve_jobs_kept serve_job_attempts serve_send_seconds cache_redis_retry_seconds "
        "audit_login_minutes audit_linger_ms conversation_title_chars clarification_options "
        "clarification_option_chars langserve_batch langserve_batch_at_once "
        "langserve_config_chars weight_entities text_cutoff_alone query2doc_distance "
        "hyde_distance llm_grader"
    ).split()
)
QUIET = frozenset({"llm_url"})  # variables whose flat names stay
_noted: set[str] = set()


def renamed(name: str, value: object) -> str:
    """Return the name that a setting has now; a mapping is a group and no setting."""
    return name if isinstance(value, Mapping) else FLAT.get(name, name)


def renamed_with_notes(given: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield given settings under their new names, and note each old one on stderr."""
    for name, value in given.items():
        new = renamed(name, value)
        if name in FIXED:
            _note(name, f"{prefix}{name} is no setting any more: its default holds")
            continue
        if new != name:
            _note(name, f"{prefix}{name} is {new} now; the old name is read until 1.0")
        yield new, value


def _note(name: str, text: str) -> None:
    if name not in _noted and not is_of_a_command():  # whose process has said so
        _noted.add(name)
        sys.stderr.write(f"note: {text}\n")
