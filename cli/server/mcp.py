"""`carrel mcp`: the tools of the Model Context Protocol over stdin and stdout."""

from __future__ import annotations

from cli.options import CallerOptions, opened, with_options


@with_options
def mcp(options: CallerOptions) -> None:
    """Offer the collections to a program that speaks MCP, over stdin and stdout.

    `carrel serve` offers the same at /mcp, for callers with a key.
    """
    settings = options.settings()
    with opened(settings, alone=True) as session:
        from serve.protocols.mcp_tools import serve_stdio  # late: it loads a server
        from serve.services import make_app_state

        serve_stdio(make_app_state(session), options.auth)
