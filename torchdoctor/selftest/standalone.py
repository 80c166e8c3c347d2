"""A self-check as one stand-alone program: what runs is what ``--show`` prints."""

from __future__ import annotations

import ast
import os

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "child")
SHARED = ("bench", "watching")  # in this order: the second uses the first
_IMPORT = "from torchdoctor.selftest.child."


def source(module: str) -> str:
    """The text of a module under ``child/``."""
    with open(os.path.join(FOLDER, f"{module}.py"), encoding="utf-8") as stream:
        return stream.read()


def compose(module: str) -> str:
    """The check's program with the shared parts in it; needs torch and nothing of ours."""
    text = source(module)
    title, own = _split(text)
    parts = []
    for name in SHARED:
        if f"{_IMPORT}{name} import" in text:
            shared_title, shared = _split(source(name))
            head = "\n".join(f"# {line}".rstrip() for line in shared_title.splitlines())
            parts.append(f"{head}\n\n{shared.strip()}\n\n\n")
    return (
        f'"""{title}"""\n\nfrom __future__ import annotations\n\n{"".join(parts)}'
        f"# The check itself.\n\n{own.strip()}\n"
    )


def _split(text: str) -> tuple[str, str]:
    """A module's docstring, and the rest without its __future__ import and those of the shared parts."""
    lines = text.splitlines()
    for node in ast.parse(text).body:
        end = node.end_lineno or node.lineno
        ours = ast.get_source_segment(text, node) or ""
        if ours.startswith((_IMPORT, "from __future__", '"""')):
            lines[node.lineno - 1 : end] = [""] * (end - node.lineno + 1)
    return ast.get_docstring(ast.parse(text), clean=False) or "", "\n".join(lines)
