"""``torchdoctor mcp``: the doctor for agents, over the Model Context Protocol on standard input and output.

The official SDK for Python, https://github.com/modelcontextprotocol/python-sdk, version 2; the extra ``mcp``.
"""

from __future__ import annotations

import os
from typing import Annotated, Any
from urllib.parse import unquote, urlsplit
from urllib.request import url2pathname

import mcp_types as types
from mcp.server.mcpserver import Context, ListRoots, MCPServer, Resolve
from mcp.server.mcpserver.exceptions import ResourceError, ToolError
from pydantic import Field

from torchdoctor import __version__, catalog
from torchdoctor.hooks import answers
from torchdoctor.model import TorchdoctorError

_ABOUT = (
    "Explains why a PyTorch run failed and what to change, from its logs. Call explain_log on a failed run "
    "before guessing; check_environment before a run or when an import fails. `standing` confirmed: the "
    "message excludes other causes; possible: it fits, so say that it is not proven. `missing` lists what "
    "could not be determined. Ask before applying a fix whose `risk` is not safe."
)


async def _roots(ctx: Context) -> ListRoots | None:
    """The folders of the client, where it declares that it has some."""
    declared = ctx.client_capabilities
    return ListRoots() if declared is not None and declared.roots is not None else None


_Roots = Annotated[types.ListRootsResult | None, Resolve(_roots)]


def _folders(roots: types.ListRootsResult | None) -> list[str] | None:
    """Paths of the roots that are folders of files; None without any root."""
    if roots is None or not roots.roots:
        return None
    parts = [urlsplit(str(root.uri)) for root in roots.roots]
    paths = [url2pathname(unquote(part.path)) for part in parts if part.scheme == "file"]
    return [path for path in paths if os.path.isabs(path)]


def _tool(call: Any, *arguments: Any) -> str:
    try:
        answer: str = call(*arguments)
    except TorchdoctorError as error:
        raise ToolError("; ".join(error.problems)) from None
    return answer


def explain_log(
    roots: _Roots,
    path: Annotated[str, Field(description="A log, or a folder of the logs of one run (all ranks)")] = "",
    text: Annotated[str, Field(description="What the program printed, instead of a path")] = "",
) -> str:
    """Why did this run fail? JSON: diagnoses[0] is the cause with evidence, your frame and fixes."""
    return _tool(answers.explain_log, path, text, _folders(roots))


def check_environment(
    roots: _Roots,
    python: Annotated[str, Field(description="Interpreter or environment that runs the program")] = "",
) -> str:
    """What will fail on this machine before anything is run: torch, driver, libraries, limits. JSON."""
    return _tool(answers.check_environment, python, _folders(roots))


def show_rule(rule_id: Annotated[str, Field(description="As in diagnoses[].rule, nccl-timeout")]) -> str:
    """One cause in full: why it happens, what it looks like, what to do, what looks similar."""
    return _tool(answers.show_rule, rule_id)


def search_rules(query: Annotated[str, Field(description="An error message, or words")]) -> str:
    """Which causes of failure match these words or know a message like this? JSON."""
    return _tool(answers.search_rules, query)


def rule_page(rule_id: str) -> str:
    """The page of a rule."""
    try:
        return answers.page(rule_id)
    except TorchdoctorError as error:
        raise ResourceError(str(error)) from None


def rule_list() -> str:
    """All rules: id and title, one per line."""
    rules = catalog.load_with_packs()[0]
    return "\n".join(f"{rule.id}: {rule.title}" for rule in rules.rules())


def server() -> MCPServer:
    """The server with its tools, all of which only read, and its resources."""
    made: MCPServer = MCPServer("torchdoctor", instructions=_ABOUT, version=__version__, log_level="WARNING")
    reads = types.ToolAnnotations(read_only_hint=True, destructive_hint=False, open_world_hint=False)
    for tool in (explain_log, check_environment, show_rule, search_rules):
        made.tool(annotations=reads, structured_output=False)(tool)
    made.resource("torchdoctor://rules", mime_type="text/plain")(rule_list)
    made.resource("torchdoctor://rules/{rule_id}", mime_type="text/plain")(rule_page)
    return made


def run() -> None:
    """Serve until standard input ends."""
    server().run("stdio")
