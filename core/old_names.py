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
# What was a setting and is a constant beside its use, as nobody changed it, or went with what
# it set.
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
        "hyde_distance llm_grader fusion weight_text weights_by_kind weight_vector_concept "
        "weight_vector_general weight_vector_identifier trust_agreement trust_agreement_span "
        "trust_min_rows trust_peak trust_peak_span trust_vectors weak_distance weak_weight_text "
        "noisy_penalty noisy_share feedback feedback_agreement feedback_hits feedback_peak "
        "feedback_weight stage_adaptive adaptive_cutoff adaptive_far adaptive_k adaptive_k_far "
        "adaptive_k_far_most adaptive_k_near adaptive_near factor_position position_chunks"
    ).split()
)
QUIET = frozenset({"llm_url"})  # variables whose flat names stay


def flat_names(settings: Iterable[str]) -> dict[str, str]:
    """Return the settings in groups, such as `llm.url`, by the flat names that they had."""
    found = {}
    for setting in settings:
        group, _, name = setting.partition(".")
        if name:
            found[_OTHERS.get(setting, _PREFIXES.get(group, "") + name)] = setting
    return found
