"""One look at a server on this machine."""

from __future__ import annotations

import http.client
from typing import Literal

Health = Literal["ok", "loading", "silent"]
Backend = Literal["llama-server", "llama_cpp.server"]


def look(port: int, backend: Backend, seconds: float) -> Health:
    """Ask a server on 127.0.0.1 how it is, and wait some seconds for the answer.

    llama-server says 503 while it loads; llama_cpp.server listens once it has loaded, and has no
    page for its health that a running answer does not block, so any reply of it will do.
    """
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=seconds)
    try:
        connection.request("GET", "/health")
        status = connection.getresponse().status
    except (OSError, http.client.HTTPException):
        return "silent"
    finally:
        connection.close()
    if status == 200 or (status == 404 and backend == "llama_cpp.server"):
        return "ok"
    return "loading" if status == 503 else "silent"
