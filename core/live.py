"""Which settings a running server takes over when it is told to read them again.

All others belong to what is made once: the data directory, models, sockets, threads.
"""

from __future__ import annotations

from pydantic import BaseModel

from core.fields.budget import BudgetFields
from core.fields.deciding import DecidingFields
from core.fields.guarding import GuardFields
from core.fields.links import LinkFields
from core.fields.planning import PlanningFields
from core.fields.retrieval import RetrievalFields
from core.fields.selection import SelectionFields
from core.settings import Settings

# Groups that every run reads anew, but for what is given to the stores when they are opened.
GROUPS: tuple[type[BaseModel], ...] = (
    BudgetFields,
    DecidingFields,
    GuardFields,
    LinkFields,
    PlanningFields,
    RetrievalFields,
    SelectionFields,
)
OF_STORES = frozenset(
    {
        *("audit_key", "bm25_b", "bm25_code", "bm25_k1", "bm25_keywords", "bm25_section"),
        *("bm25_title", "sql_timeout_s", "vector_exact_limit", "links_hub_least"),
        *("links_hub_most", "links_hub_share", "channel_entities", "entity_model"),
        *("serve_operator_tenant", "reasoner"),
    }
)
SINGLE = frozenset(
    {
        *("llm_price_prompt", "llm_price_completion"),
        *("max_file_mb", "max_pages", "max_characters", "parse_timeout_s", "min_free_mb"),
        *("max_fields", "max_field_values"),
        *("serve_writer_roles", "serve_admin_role", "serve_caller_threads"),
        *("serve_shared_threads", "serve_waiting", "serve_caller_waiting", "serve_retry_seconds"),
        *("serve_body_bytes", "serve_upload_bytes", "serve_body_seconds", "serve_jobs"),
        *("serve_log_level",),
    }
)
LIVE = (
    frozenset(name for group in GROUPS for name in group.model_fields if name not in OF_STORES)
    | SINGLE
)


def taken_over(old: Settings, new: Settings) -> Settings:
    """Return `old` with the live settings of `new`; raises ValidationError when they clash.

    A live setting that is no longer given anywhere is open to a collection's profile again.
    """
    values = {name: getattr(new if name in LIVE else old, name) for name in Settings.model_fields}
    given = {name for name in old.model_fields_set if name not in LIVE}
    given |= {name for name in new.model_fields_set if name in LIVE}
    Settings(**values)
    return Settings.model_construct(_fields_set=given, **values)
