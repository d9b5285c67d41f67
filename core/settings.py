"""Every number and choice in one place, validated, with where each value came from.

Precedence: flag > environment (`CARREL_…`) > settings file > profile > mode > default.
"""

from __future__ import annotations

import difflib
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self, get_args

from pydantic import Field, SecretStr, ValidationError
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, EnvSettingsSource, SettingsConfigDict, SettingsError
from pydantic_settings.sources import PydanticBaseSettingsSource

from core.budget import Budget
from core.errors import CallerError, shorten
from core.fields.chat import LlamaSettings, LlmSettings
from core.fields.group import AT_START, IGNORED, REFUSED, ChangeRule, Group, group_field
from core.fields.ingest import IngestSettings, LibrarySettings, SourcesSettings, StorageSettings
from core.fields.retrieval import (
    AnsweringSettings,
    BudgetSettings,
    ChromaSettings,
    EmbeddingSettings,
    EvaluationSettings,
    LinksSettings,
    MilvusSettings,
    PlanSettings,
    RetrievalSettings,
    SegmentsSettings,
    SelectionSettings,
)
from core.fields.serve import (
    AuditSettings,
    CachingSettings,
    ChecksSettings,
    JwtSettings,
    OidcSettings,
    ServeSettings,
    StudioSettings,
)
from core.settings_sources import (
    PREFIX,
    default_cache,
    default_data,
    file_values,
    is_of_a_command,
    mode_values,
    variables,
)

ANSWER_SHARE = 0.15  # of a run's budget is kept for the answer; chosen, not measured
PASSWORD = re.compile(r"//[^/]*@")  # of a URL
LISTED = "`carrel config` lists the settings"
NEAR = 0.75  # a letter amiss in a name of four is nearer, another word is not; chosen, not measured
# Variables that are no settings: of this program, its tests and its measurements.
OTHER_VARIABLES = re.compile(
    r"CARREL_(COLLECTION|DEBUG|ENCRYPTION_KEY|SETTINGS|EVAL_DATA|FAULT_\w+|SOURCE_\w+|TEST\w*)"
)
Origin = Literal["flag", "environment", "file", "profile", "mode", "directory", "default"]


class Settings(BaseSettings):
    """Hold all settings; each field's description is its documentation.

    Made of values alone: `load_settings` reads the environment and files.
    """

    model_config = SettingsConfigDict(
        env_prefix=PREFIX,
        env_nested_delimiter="__",
        extra="forbid",
        frozen=True,
        validate_default=True,
    )
    CHANGES: ClassVar[ChangeRule] = REFUSED

    data: Annotated[Path, IGNORED] = Field(
        default_factory=default_data, description="Data directory."
    )
    catalogue: str = Field(
        "sqlite",
        pattern=r"^(sqlite|postgres(ql)?://.+)$",
        description="'sqlite' (a file in the data directory) or a PostgreSQL database, postgresql://…",
    )
    cache: Annotated[Path, IGNORED] = Field(
        default_factory=default_cache, description="Cache for exported models."
    )
    embedder: str = Field(
        "embedded",
        min_length=1,
        description="'embedded' (multilingual-e5-small), 'embedded-en' (all-MiniLM-L6-v2, the fast"
        " choice for English alone), a model folder, a cached hub name, or the address of an"
        " endpoint of text-embeddings-inference, to which all texts are sent.",
    )
    reranker: Annotated[str, AT_START] = Field(
        "none",
        min_length=1,
        description="Cross-encoder that re-ranks: 'none', a model folder or a cached hub name.",
    )
    reasoner: Literal["rules", "llm", "auto"] = Field(
        "auto", description="Who decides: rules, llm, or auto: llm when its server answers."
    )
    memory: Annotated[bool, AT_START] = Field(
        True,
        description="Keep notes of what users state in conversations, each for its user alone.",
    )
    index: str = Field(
        "memmap",
        description="Search index of a new data directory: 'memmap' (own arrays), 'chroma' or"
        " 'milvus'.",
    )
    stream: Annotated[Literal["verified", "tokens", "off"], AT_START] = Field(
        "verified",
        description="What is shown while an answer is written: verified sentences, the draft's"
        " tokens too (apart from the answer), or nothing.",
    )

    storage: StorageSettings = group_field(StorageSettings)
    embedding: EmbeddingSettings = group_field(EmbeddingSettings)
    ingest: IngestSettings = group_field(IngestSettings)
    sources: SourcesSettings = group_field(SourcesSettings)
    library: LibrarySettings = group_field(LibrarySettings)
    retrieval: RetrievalSettings = group_field(RetrievalSettings)
    links: LinksSettings = group_field(LinksSettings)
    selection: SelectionSettings = group_field(SelectionSettings)
    segments: SegmentsSettings = group_field(SegmentsSettings)
    chroma: ChromaSettings = group_field(ChromaSettings)
    milvus: MilvusSettings = group_field(MilvusSettings)
    answering: AnsweringSettings = group_field(AnsweringSettings)
    llm: LlmSettings = group_field(LlmSettings)
    llama: LlamaSettings = group_field(LlamaSettings)
    plan: PlanSettings = group_field(PlanSettings)
    budget: BudgetSettings = group_field(BudgetSettings)
    caching: CachingSettings = group_field(CachingSettings)
    checks: ChecksSettings = group_field(ChecksSettings)
    serve: ServeSettings = group_field(ServeSettings)
    jwt: JwtSettings = group_field(JwtSettings)
    oidc: OidcSettings = group_field(OidcSettings)
    audit: AuditSettings = group_field(AuditSettings)
    evaluation: EvaluationSettings = group_field(EvaluationSettings)
    studio: StudioSettings = group_field(StudioSettings)

    if TYPE_CHECKING:  # every field has a default, which type checkers do not see in `Field`

        def __init__(self, **values: object) -> None: ...

    else:

        def __init__(self, **values: object) -> None:
            super().__init__(**in_groups(by_name(values)))  # the later of two names counts

        def __getattr__(self, name: str) -> object:  # until 1.0, as for notebooks
            if name in FLAT:
                return self.value(FLAT[name])
            return super().__getattr__(name)

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Return where values of a constructor come from: its arguments alone."""
        return (init_settings,)

    def value(self, name: str) -> Any:  # noqa: ANN401 - of any type
        """Return the value of a setting by its name, such as `retrieval.top_k`."""
        group, _, field = name.rpartition(".")
        return getattr(getattr(self, group) if group else self, field)

    def given(self) -> set[str]:
        """Return the names of the settings that were given a value."""
        found = {name for name in self.model_fields_set if name not in GROUPS}
        for name in GROUPS:
            found |= {f"{name}.{field}" for field in getattr(self, name).model_fields_set}
        return found

    def shown(self) -> dict[str, Any]:
        """Return each setting by its name as JSON holds it, secrets hidden."""
        found = by_name(self.model_dump(mode="json"))
        return {
            name: PASSWORD.sub("//…@", value) if isinstance(value, str) else value
            for name, value in found.items()
        }

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Return a copy with other values by name, such as `retrieval.top_k`, unchecked."""
        named = by_name(update or {})
        for name in named:
            check_name(name, "a copy of settings")
        changed = in_groups(named)
        for name in GROUPS & changed.keys():
            changed[name] = getattr(self, name).model_copy(update=changed[name])
        return super().model_copy(update=changed, deep=deep)

    @property
    def is_documentation(self) -> bool:
        """Tell whether chunks are whole sections, whose code stands between fences."""
        return self.ingest.chunker == "structural"

    def for_model(self) -> Settings:
        """Return the settings of rules that choose what a model reads, beyond what they answer."""
        return self._with_gate(self.llm.grade_partly)

    def for_hop(self) -> Settings:
        """Return the settings by which evidence of one question of a chain is graded."""
        return self._with_gate(self.answering.grade_partly_hop)

    def _with_gate(self, least: float) -> Settings:
        partly = min(least, self.answering.grade_partly)
        related = min(self.answering.grade_related, partly)
        gates = {"answering.grade_partly": partly, "answering.grade_related": related}
        return self.model_copy(update=gates)

    def run_budget(self) -> Budget:
        """Return the budget of one run."""
        return Budget(**self.budget.model_dump(), answer_share=ANSWER_SHARE)


GROUPS: dict[str, type[Group]] = {
    name: field.annotation
    for name, field in Settings.model_fields.items()
    if isinstance(field.annotation, type) and issubclass(field.annotation, Group)
}
FIELDS: dict[str, FieldInfo] = {
    f"{name}.{inner}" if name in GROUPS else name: info
    for name, field in Settings.model_fields.items()
    for inner, info in (GROUPS[name].model_fields if name in GROUPS else {name: field}).items()
}
# The flat names that settings had before they were grouped, read until 1.0 with a note: with what
# stood before the names of a group, those of other groups alone.
_PREFIXES = {
    **{name: f"{name}_" for name in ("audit", "budget", "chroma", "jwt", "links", "llm", "plan")},
    **{"caching": "cache_", "checks": "check_", "embedding": "embedder_", "evaluation": "eval_"},
    **{"llama": "llm_", "milvus": "milvus_", "segments": "segment_"},
    **{"serve": "serve_", "studio": "studio_"},
}
_ALONE = (
    *("llama.model_folder", "llm.answer_by_seconds", "plan.max_backtracks", "plan.max_hops"),
    *("plan.max_replans", "plan.plain_confidence", "serve.openai_sources", "serve.otel_endpoint"),
)
_OTHERS = {
    **{setting: setting.partition(".")[2] for setting in _ALONE},
    "answering.reader": "answer_reader",
    "audit.enabled": "audit",
    "ingest.batch": "ingest_batch",
    "links.agent": "agent_links",
    "links.channel": "channel_links",
    "llama.server": "llama_server",
}
QUIET = frozenset({"llm_url", "milvus_uri"})  # variables whose flat names stay
FLAT = {
    _OTHERS.get(setting, _PREFIXES.get(group, "") + name): setting
    for setting in FIELDS
    for group, _, name in [setting.partition(".")]
    if name
}
_noted: set[str] = set()


def renamed(name: str, value: object) -> str:
    """Return the name that a setting has now; a mapping is a group and no setting."""
    return name if isinstance(value, Mapping) else FLAT.get(name, name)


def renamed_with_notes(
    given: Mapping[str, Any], written: Callable[[str], str] = str
) -> Iterator[tuple[str, Any]]:
    """Yield given settings under their new names, and note each old one on stderr.

    `written` returns a name as whoever gave it writes it.
    """
    for name, value in given.items():
        new = renamed(name, value)
        if new != name:
            _note(written(name), f"is {written(new)} now; the old name is read until 1.0")
        yield new, value


def _note(name: str, text: str) -> None:
    if name not in _noted and not is_of_a_command():  # whose process has said so
        _noted.add(name)
        sys.stderr.write(f"note: {name} {text}\n")


def by_name(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values by name, such as `retrieval.top_k`, of groups, old names and names."""
    found: dict[str, Any] = {}
    for name, value in values.items():
        if name in GROUPS and isinstance(value, Group):
            value = {field: getattr(value, field) for field in value.model_fields_set}
        if name in GROUPS and isinstance(value, Mapping):
            found |= {f"{name}.{field}": one for field, one in value.items()}
        else:
            found[renamed(name, value)] = value
    return found


def in_groups(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values by name as groups of values."""
    found: dict[str, Any] = {}
    for name, value in values.items():
        group, _, field = name.partition(".")
        if field and group in GROUPS:
            found.setdefault(group, {})[field] = value
        else:
            found[name] = value
    return found


def changes_of(name: str) -> ChangeRule:
    """Return who may change a setting while a server runs."""
    own = [one for one in FIELDS[name].metadata if isinstance(one, ChangeRule)]
    return own[0] if own else GROUPS.get(name.partition(".")[0], Settings).CHANGES


def _of_type(kind: object) -> frozenset[str]:
    fields = FIELDS.items()
    return frozenset(
        name for name, one in fields if kind in (one.annotation, *get_args(one.annotation))
    )


LISTS = _of_type(list[str])  # given with commas between, but for those of a profile
SECRETS = _of_type(SecretStr)
PATHS = _of_type(Path)


def known_values(given: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return settings that a person gave, by name, with a note for each old name.

    Raises CallerError, which begins with `where` and names each unknown one.
    """
    found = by_name(dict(renamed_with_notes(given)))
    if len(unknown := [name for name in found if name not in FIELDS]) > 1:
        shown = [
            shorten(name) + (f" (the nearest is {near})" if (near := nearest(name)) else "")
            for name in unknown
        ]
        raise CallerError(f"{where}: unknown settings: {', '.join(shown)}", hint=LISTED)
    for name in unknown:
        check_name(name, where)
    return found


def check_name(name: str, where: str) -> None:
    """Raise CallerError when there is no such setting; it names one that is near."""
    if name in FIELDS:
        return
    near = nearest(name)
    hint = f"the nearest is {near}; " if near else ""
    if name in GROUPS:
        hint = "its settings stand below it; "
    raise CallerError(f"{where}: unknown setting", value=name, hint=hint + LISTED)


def nearest(name: str) -> str:
    """Return the setting whose name may have been meant, empty when none is near."""
    group, _, field = name.lower().rpartition(".")
    names = {one.rpartition(".")[2]: one for one in FIELDS} | FLAT
    names |= {one.rpartition(".")[2]: one for one in FIELDS if one.startswith(f"{group}.")}
    if group not in GROUPS:  # else the group alone would make all its settings alike
        field = name.lower()
        names |= {one: one for one in FIELDS}
    found = difflib.get_close_matches(field, names, 1, NEAR)
    return names[found[0]] if found else ""


def variable_of(name: str) -> str:
    """Return the environment variable of a setting."""
    return PREFIX + name.upper().replace(".", "__")


def setting_of(variable: str) -> str:
    """Return the setting that a variable of the environment gives, by an old name too, or ""."""
    if not variable.startswith(PREFIX):
        return ""
    name = variable.removeprefix(PREFIX).lower()
    new = name.replace("__", ".", 1)
    return new if new in FIELDS else FLAT.get(name, "")


def unknown_variables() -> list[str]:
    """Return the variables of the environment that look like settings and are none."""
    return sorted(
        one
        for one in variables()
        if one.startswith(PREFIX)
        and not setting_of(one)
        and one.removeprefix(PREFIX).lower() not in GROUPS
        and not OTHER_VARIABLES.fullmatch(one)
    )


class Variables(EnvSettingsSource):
    """Read the settings of the environment that holds here; a group may be given as JSON."""

    def _load_env_vars(self) -> Mapping[str, str | None]:
        self.flat: dict[str, str] = {}
        found: dict[str, str | None] = {}
        for variable, value in variables().items():
            name = variable.removeprefix(PREFIX).lower() if variable.startswith(PREFIX) else ""
            if name in FLAT and not (name in GROUPS and value.startswith("{")):
                self.flat[name] = value
            elif setting_of(variable) or name in GROUPS:
                found[PREFIX.lower() + name] = value
        return found

    def decode_complex_value(self, field_name: str, field: FieldInfo, value: Any) -> Any:  # noqa: ANN401
        """Return a list with commas as it is, what else has parts as JSON."""
        group = field.annotation in GROUPS.values()
        if not group and not str(value).lstrip().startswith("["):
            return value
        try:
            found = super().decode_complex_value(field_name, field, value)
        except ValueError:
            if not group:
                raise
            found = None
        if group and not isinstance(found, dict):
            secret = any(one.startswith(f"{field_name}.") for one in SECRETS)
            raise CallerError(
                f"{variable_of(field_name)} is a group of settings, given as JSON",
                value=None if secret else value,
                hint=f'such as {{"name": 1}}, or one by one as {variable_of(field_name)}__NAME',
            )
        return found

    def read(self) -> dict[str, Any]:
        """Return the settings by name; raises CallerError."""
        quiet = {FLAT[name]: self.flat.pop(name) for name in QUIET & self.flat.keys()}
        old = dict(renamed_with_notes(self.flat, variable_of))
        for variable in unknown_variables():
            near = nearest(variable.removeprefix(PREFIX).replace("__", ".", 1))
            end = f"; the nearest is {variable_of(near)}" if near else ""
            _note(variable, f"is the variable of no setting and has no effect{end}")
        try:
            return old | quiet | by_name(self())
        except SettingsError:
            named = [
                one
                for one, value in variables().items()
                if setting_of(one) in LISTS and value.lstrip().startswith("[")
            ]
            rule = f"a list is JSON or has commas between, also in {', '.join(named)}"
            raise CallerError(rule, hint="correct it") from None


def load_settings(
    flags: dict[str, Any] | None = None,
    profile: dict[str, Any] | None = None,
    *,
    file: str | None = None,
) -> tuple[Settings, dict[str, Origin]]:
    """Merge the sources and say where each value came from.

    `file` is the path of a settings file, None for that of `CARREL_SETTINGS`, "" for none and no
    mode either.
    """
    given = {name: value for name, value in (flags or {}).items() if value is not None}
    sources: dict[Origin, dict[str, Any]] = {
        "flag": _with_lists(by_name(given)),
        "environment": _with_lists(Variables(Settings).read()),
        "file": {} if file == "" else known_values(*file_values(file)),
        "profile": by_name(profile or {}),
    }
    modes = [source["serve.mode"] for source in sources.values() if "serve.mode" in source]
    sources["mode"] = by_name(mode_values(str(modes[0]))) if modes and file != "" else {}
    merged: dict[str, Any] = {}
    origins: dict[str, Origin] = dict.fromkeys(FIELDS, "default")
    for origin in reversed(sources):
        merged |= sources[origin]
        origins |= dict.fromkeys(sources[origin], origin)
    try:
        return Settings(**merged), origins
    except ValidationError as error:
        raise _setting_error(error, origins, merged) from None


def _with_lists(given: dict[str, Any]) -> dict[str, Any]:
    for name in LISTS & given.keys():
        if isinstance(text := given[name], str):
            given[name] = [part for one in text.split(",") if (part := one.strip())]
    return given


def _setting_error(
    error: ValidationError, origins: dict[str, Origin], merged: dict[str, Any]
) -> CallerError:
    first = error.errors()[0]
    advice = "`carrel config` lists every setting and its range"
    name = _name_at(first["loc"])
    if not name:  # a rule that several settings break together
        return CallerError(first["msg"].removeprefix("Value error, "), hint=advice)
    where: str = origins.get(name, "profile")
    if where == "environment":  # the variable that gives it may have its old name
        where = next((one for one in variables() if setting_of(one) == name), variable_of(name))
    elif where == "file":
        where = "settings file"
    value = merged.get(name)
    if name in SECRETS or name not in FIELDS:  # which may be a secret, misspelt
        value = None
    elif isinstance(value, str):
        value = PASSWORD.sub("//…@", value)
    if name not in FIELDS and (near := nearest(name)):
        advice = f"the nearest is {near}; {advice}"
    return CallerError(
        f"setting '{name}' ({where}): {first['msg'].removeprefix('Value error, ')}",
        value=value,
        hint=advice,
    )


def _name_at(place: Iterable[int | str]) -> str:
    """Return the setting that an error is about, empty for a group as a whole."""
    first, *rest = [str(part) for part in place][:2] or [""]
    if first not in GROUPS:
        return first
    return f"{first}.{rest[0]}" if rest else ""


# What a running server takes over when it reads its settings again. All others belong to what is
# made once: the data directory, models, sockets, threads.
LIVE = frozenset(name for name in FIELDS if changes_of(name).live)


def taken_over(old: Settings, new: Settings) -> Settings:
    """Return `old` with the live settings of `new`; raises ValidationError when they clash.

    A live setting that is no longer given anywhere is open to a collection's profile again.
    """
    given = {name for name in old.given() if name not in LIVE}
    given |= {name for name in new.given() if name in LIVE}
    return Settings(**{name: (new if name in LIVE else old).value(name) for name in given})
