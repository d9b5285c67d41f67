"""Query parameters that a route does not know are refused, as unknown fields of bodies are."""

from __future__ import annotations

from fastapi import Request
from fastapi.routing import APIRoute

from serve.errors import Refused

STRICT = "/api/"  # clients of other protocols send parameters of their own


async def known_query(request: Request) -> None:
    """Refuse a parameter in the query that the route does not take."""
    route = request.scope.get("route")
    if not request.query_params or not isinstance(route, APIRoute):
        return
    if not route.path.startswith(STRICT):
        return
    known = {field.alias for field in route.dependant.query_params}
    for name in request.query_params:
        if name not in known:
            takes = f"it takes {', '.join(sorted(known))}" if known else "it takes none"
            raise Refused(
                422, "invalid", "the route takes no such parameter", value=name, hint=takes
            )
