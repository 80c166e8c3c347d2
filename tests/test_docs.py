"""What the documents show is what the commands print, and their links lead somewhere."""

from __future__ import annotations

import html
import importlib.util
import os
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest
from planted_modules import loaded

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("deploy/*/*.md")]
# of a machine, and not to be had everywhere
NEEDS = {
    "hang": importlib.util.find_spec("py_spy") is not None or Path(sys.prefix, "bin", "py-spy").exists(),
    "gate": not os.path.exists("/proc/driver/nvidia"),
}


def _tool(name: str) -> ModuleType:
    return loaded(ROOT / "docs" / "tools" / f"{name}.py")


SHOWN = _tool("shown")


@pytest.mark.skipif(sys.platform != "linux", reason="shown as on Linux")
@pytest.mark.parametrize("name", SHOWN.EXAMPLES)
def test_the_readme_shows_what_the_command_prints(name: str) -> None:
    if not NEEDS.get(name, True):
        pytest.skip("this machine prints something else")
    assert SHOWN.differences([name]) == []


def test_the_pictures_show_the_first_example() -> None:
    said = re.sub(r"[\W_]+", "", (ROOT / "README.md").read_text(encoding="utf-8"))
    for shade in ("light", "dark"):
        text = (ROOT / f"docs/pictures/explain-{shade}.svg").read_text(encoding="utf-8")
        runs = re.findall(r"<tspan[^>]*>([^<]*)<", text)
        assert len(runs) > 20
        assert [run for run in runs if re.sub(r"[\W_]+", "", html.unescape(run)) not in said] == []


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_lead_to_what_is_there(path: Path) -> None:
    text = re.sub(r"^ *```.*?^ *```$", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    links = re.findall(r"\]\((?![a-z]+:)([^)#\s]*)|src(?:set)?=\"([^\"]+)\"", text)
    assert [link for pair in links for link in pair if link and not (path.parent / link).exists()] == []


def test_a_picture_escapes_what_it_draws() -> None:
    picture = _tool("picture")
    drawn = picture.drawn("x <y>", "\x1b[1;31m✗ a\x1b[0m  & <b>\n", "dark")
    assert "&lt;b&gt;" in drawn
    assert 'font-weight="bold"' in drawn
    assert drawn.count("<text") == 2


def test_the_changelog_names_each_new_rule_once() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    section = text.partition("\nNew rules\n")[2].partition("\n### ")[0]
    named = re.findall(r"`([a-z0-9-]+)`", section)
    assert named
    assert named == sorted(set(named))
    assert set(named) <= set((ROOT / "rules" / "ids.txt").read_text(encoding="utf-8").split())
