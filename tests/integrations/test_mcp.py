"""``torchdoctor mcp`` with the client of the SDK, over standard input and output as agents start it."""

from __future__ import annotations

import json
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp.server.mcpserver")
import anyio
import mcp_types as types
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from torchdoctor.hooks.mcp_server import server

ROOT = Path(__file__).parents[2]
LOG = 'Traceback (most recent call last):\n  File "train.py", line 1, in <module>\n    x\nKeyError: 1\n'
pytestmark = pytest.mark.filterwarnings("default")  # the SDK's own


def talk(call: Callable[[Client], Awaitable[Any]], roots: list[Path] | None = None, **how: Any) -> Any:
    """Run ``call`` with a client that declares the roots; with ``over`` through that transport."""

    async def list_roots(context: Any) -> types.ListRootsResult:
        return types.ListRootsResult(roots=[types.Root(uri=path.as_uri()) for path in roots or ()])

    async def main() -> Any:
        over = how.pop("over", None) or server()
        callback = list_roots if roots is not None else None
        async with Client(over, list_roots_callback=callback, **how) as client:
            return await call(client)

    return anyio.run(main)


def tool(name: str, **arguments: str) -> Callable[[Client], Awaitable[tuple[bool, str]]]:
    async def call(client: Client) -> tuple[bool, str]:
        answer = await client.call_tool(name, arguments)
        (content,) = answer.content
        assert isinstance(content, types.TextContent)
        assert len(content.text.encode()) <= 8_000
        return bool(answer.is_error), content.text

    return call


@pytest.fixture
def log(tmp_path: Path) -> Path:
    file = tmp_path / "a project" / "train.log"
    file.parent.mkdir()
    file.write_text(LOG, encoding="utf-8")
    return file


def test_as_a_program(log: Path) -> None:
    async def call(client: Client) -> None:
        tools = (await client.list_tools()).tools
        assert [one.name for one in tools] == [
            "explain_log", "check_environment", "show_rule", "search_rules",
        ]  # fmt: skip
        assert all(one.annotations and one.annotations.read_only_hint for one in tools)
        assert all(
            set(one.input_schema["properties"]) <= {"path", "text", "python", "rule_id", "query"}
            for one in tools
        )
        failed, text = await tool("explain_log", path=str(log))(client)
        assert not failed
        data = json.loads(text)
        assert data["diagnoses"][0]["rule"] == "own-code-error"
        assert data["rest"].startswith(f"torchdoctor explain --format json {log}; ")
        (content,) = (await client.read_resource("torchdoctor://rules/matmul-shape")).contents
        assert content.text.startswith("Matrix sizes do not fit\n")  # type: ignore[union-attr]
        (content,) = (await client.read_resource("torchdoctor://rules")).contents
        assert "\nnccl-timeout: " in content.text  # type: ignore[union-attr]

    program = StdioServerParameters(command=sys.executable, args=["-m", "torchdoctor", "mcp"])
    talk(call, over=stdio_client(program))


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_roots(log: Path, tmp_path: Path, mode: str) -> None:
    """Also of a client of an older revision, which is asked in a request of its own."""
    outside = tmp_path / "outside.log"
    outside.write_text(LOG, encoding="utf-8")
    inside = log.parent / "link.log"
    inside.symlink_to(outside)
    ask = lambda path, roots: talk(tool("explain_log", path=str(path)), roots, mode=mode)  # noqa: E731
    assert not ask(log, [log.parent])[0]
    assert not ask(log.parent, [log.parent])[0]
    assert not ask(outside, None)[0]
    assert not ask(outside, [])[0]
    for path in (outside, inside, log.parent / ".." / "outside.log", "/etc/passwd", "-"):
        failed, text = ask(path, [log.parent, tmp_path / "other"])
        assert failed
        assert "outside of the folders that the client allows" in text
    assert "outside" in talk(tool("check_environment", python="/usr/bin/python3"), [tmp_path], mode=mode)[1]


@pytest.mark.parametrize(
    ("name", "arguments", "says"),
    [
        ("explain_log", {}, "give either path"),
        ("explain_log", {"path": "/tmp/*.log"}, "no such file"),
        ("explain_log", {"path": "-"}, "no such file"),
        ("check_environment", {"python": "/bin/cat"}, "not the name of a Python interpreter"),
        ("show_rule", {"rule_id": "nccl-timeou"}, "did you mean nccl-timeout"),
    ],
)
def test_mistakes_are_explained(name: str, arguments: dict[str, str], says: str) -> None:
    failed, text = talk(tool(name, **arguments))
    assert failed
    assert says in text


def test_answers() -> None:
    rules = json.loads(talk(tool("search_rules", query="mat1 and mat2 shapes cannot be multiplied"))[1])
    assert rules["rules"][0]["id"] == "matmul-shape"
    assert talk(tool("show_rule", rule_id="matmul-shape"))[1].startswith("Matrix sizes do not fit\n")
    long = talk(tool("show_rule", rule_id="device-mismatch"))[1]
    assert long.endswith(
        "the rest: torchdoctor://rules/device-mismatch, or torchdoctor rules show device-mismatch"
    )
    huge = json.loads(
        talk(tool("explain_log", text=LOG.replace("KeyError: 1", f"KeyError: {'x' * 50_000}")))[1]
    )
    assert huge["cut"] is True
    assert huge["diagnoses"][0]["rule"] == "own-code-error"
    found = json.loads(talk(tool("check_environment", python=sys.executable))[1])
    assert found["passed"] > 0
