"""The distribution: its name, its version, and the optional packages that its extras bring."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

from core.errors import CarrelError, OperatorError

DISTRIBUTION = "carrel-rag"  # on the package index, where "carrel" is another product
EXTRAS = {  # the modules that come with each, as the code imports them
    "chroma": ("chromadb", "langchain_chroma"),
    "connectors": ("httpx_auth", "keyring", "langchain_community", "watchfiles"),
    "encryption": ("sqlcipher3",),
    "entities": ("spacy",),
    "eval": ("ir_measures", "matplotlib", "nltk", "rouge_score", "sklearn"),
    "huggingface": ("langchain_huggingface", "sentence_transformers", "torch", "transformers"),
    "llama": ("llama_cpp",),
    "ocr": ("PIL", "rapidocr"),
    "oidc": ("authlib",),
    "otel": ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http"),
    "postgres": ("psycopg", "psycopg_pool"),
    "providers": ("langchain",),
    "redis": ("redis",),
    "scale": ("milvus_lite", "pymilvus"),
    "tree": ("sklearn", "umap"),
}


@cache
def program_version() -> str:
    """Return the installed version, "unknown" in a checkout that is not installed."""
    from importlib.metadata import (  # 20 ms, at most commands for nothing
        PackageNotFoundError,
        version,
    )

    try:
        return version(DISTRIBUTION)
    except PackageNotFoundError:
        return "unknown"


def explain_import(error: ImportError) -> str:
    """Return why a module of this distribution cannot be imported, "" where it is another's."""
    from importlib.metadata import packages_distributions

    room = (error.name or "").partition(".")[0]
    owners = set(packages_distributions().get(room, []))
    if DISTRIBUTION not in owners:
        return ""
    others = ", ".join(sorted(owners - {DISTRIBUTION})) or "another distribution"
    return (
        f"Carrel's package '{room}' is not as it was installed ({error}); {others} may have"
        " overwritten it. Install Carrel into an environment of its own."
    )


def install_command(extra: str) -> str:
    """Return the command that installs an extra."""
    return f"pip install '{DISTRIBUTION}[{extra}]'"


def has_extra(extra: str) -> bool:
    """Tell whether every module of an extra is installed."""
    return all(_is_found(module) for module in EXTRAS[extra])


def require_extra(
    extra: str,
    purpose: str,
    *,
    value: object = None,
    otherwise: str = "",
    error: type[CarrelError] = OperatorError,
) -> None:
    """Raise `error` unless an extra is installed: `purpose` needs it, `otherwise` does without."""
    missing = [module for module in EXTRAS[extra] if not _is_found(module)]
    if not missing:
        return
    hint = f"run `{install_command(extra)}`" + (f", or {otherwise}" if otherwise else "")
    rule = f"{purpose} needs packages that are not installed ({', '.join(missing)})"
    raise error(rule, value=value, hint=hint)


def load_extra(extra: str, purpose: str, module: str) -> ModuleType:
    """Import a module of this program that needs an extra; raises OperatorError without that."""
    require_extra(extra, purpose)
    return import_module(module)


def _is_found(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # of a package above it
        return False
