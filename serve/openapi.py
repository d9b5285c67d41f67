"""The page of all routes: how to sign in, and the shape of every error."""

from __future__ import annotations

import re
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from serve.protocols.langserve.schemas import FailureDetail
from serve.protocols.openai.schemas import ErrorReply

REF = "#/components/schemas/{model}"
OPEN = re.compile(r"/api/v1/health|/|/page/.*")  # what needs no key
JSON = "application/json"


class ApiErrorDetail(BaseModel):
    """Say which rule was broken, the actual value, and what to do; `id` finds it in the log."""

    id: str
    code: str
    rule: str
    value: str | None
    hint: str
    message: str


class ApiError(BaseModel):
    """Hold the one shape of all errors of /api."""

    error: ApiErrorDetail


ERRORS: dict[str, type[BaseModel]] = {"/v1/": ErrorReply, "/agent/": FailureDetail}


def document_errors(app: FastAPI) -> None:
    """Have the application's page of routes name the errors and the key of every route."""

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = described(
                get_openapi(title=app.title, version=app.version, routes=app.routes)
            )
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]  # as FastAPI's documentation does


def described(document: dict[str, Any]) -> dict[str, Any]:
    """Return the document with errors by protocol in place of FastAPI's own, and with the key."""
    components = document.setdefault("components", {})
    models: list[type[BaseModel]] = [ApiError, ErrorReply, FailureDetail]
    _, made = models_json_schema([(model, "serialization") for model in models], ref_template=REF)
    components.setdefault("schemas", {}).update(made["$defs"])
    components["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
    for path, operations in document["paths"].items():
        kind = next((ERRORS[start] for start in ERRORS if path.startswith(start)), ApiError)
        content = {JSON: {"schema": {"$ref": REF.format(model=kind.__name__)}}}
        for operation in operations.values():
            operation["responses"].pop("422", None)
            operation["responses"]["default"] = {"description": kind.__doc__, "content": content}
            operation["security"] = [] if OPEN.fullmatch(path) else [{"key": []}]
    for unused in ("HTTPValidationError", "ValidationError"):
        components["schemas"].pop(unused, None)
    return document
