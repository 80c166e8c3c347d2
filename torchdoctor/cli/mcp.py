"""``torchdoctor mcp``: the server for agents."""

from __future__ import annotations

import click


@click.command("mcp")
def command() -> int:
    """Serve agents over the Model Context Protocol, on standard input and output.

    Tools: explain_log, check_environment, show_rule, search_rules; resources: the pages of the rules. It only
    reads, and nothing outside the folders that the client names. Needs the extra: pip install
    'torchdoctor[mcp]'.

    Exit codes: 0 done, 2 a usage error, or the extra is not installed, 70 a fault of torchdoctor.
    """
    try:
        import mcp.server.mcpserver  # noqa: F401
    except ImportError as error:
        raise click.UsageError(
            f"the extra mcp is not installed here ({error}): pip install 'torchdoctor[mcp]'"
        ) from None
    from torchdoctor.hooks import mcp_server

    mcp_server.run()
    return 0
