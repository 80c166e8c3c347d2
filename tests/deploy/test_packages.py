"""The conda recipe says what the package says; nothing takes a name from an index without a version."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

import torchdoctor

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parent.parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
DEPLOY = [path for path in (ROOT / "deploy").rglob("*") if path.is_file()]


def recipe() -> dict[str, list[str]]:
    """The lists and values of the recipe, by the path of their keys. It is YAML of the plainest form."""
    found: dict[str, list[str]] = {}
    path: list[tuple[int, str]] = []
    for line in (ROOT / "deploy/conda/meta.yaml").read_text(encoding="utf-8").splitlines():
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        depth = len(line) - len(line.lstrip())
        if text.startswith("- "):
            found[".".join(name for _, name in path)].append(text[2:])
            continue
        key, _, value = text.partition(":")
        path = [(at, name) for at, name in path if at < depth] + [(depth, key)]
        found[".".join(name for _, name in path)] = [value.strip().strip('"')] if value.strip() else []
    return found


def test_the_conda_recipe_says_what_the_package_says() -> None:
    said = recipe()
    assert said["package.name"] == [PROJECT["name"]]
    assert said["package.version"] == [torchdoctor.__version__]
    assert said["about.summary"] == [PROJECT["description"]]
    assert said["about.license"] == [PROJECT["license"]]
    assert said["about.license_file"] == PROJECT["license-files"]
    program = PROJECT["scripts"]["torchdoctor"]
    assert said["build.entry_points"] == [f"torchdoctor = {program}"]
    # the recipe asks for a Python that needs no tomli
    needs = {item.replace(" ", "") for item in said["requirements.run"] if not item.startswith("python ")}
    assert needs == {item for item in PROJECT["dependencies"] if not item.startswith("tomli")}


def test_the_lowest_versions_are_the_bounds() -> None:
    lines = (ROOT / ".ci/lowest.txt").read_text(encoding="utf-8").splitlines()
    lowest = dict(line.split("==") for line in lines if not line.startswith("#"))
    bounds = dict(re.findall(r"([\w-]+)>=([\d.]+)", "\n".join(PROJECT["dependencies"])))
    assert lowest.keys() == bounds.keys()
    for name, version in lowest.items():
        assert f"{version}.".startswith(f"{bounds[name]}."), name


@pytest.mark.parametrize("path", DEPLOY, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_pip_installs_a_checkout_or_a_pinned_version(path: Path) -> None:
    text = path.read_text(encoding="utf-8").replace("\\\n", " ")
    for call in re.findall(r"pip\"? (?:install|wheel)\b([^`\n;&|]*)", text):
        words = re.sub(r"--find-links \S+|--wheel-dir \S+", "", call).split()
        named = [word.strip("'\")") for word in words if re.match(r"['\"]?[a-zA-Z]", word)]
        assert "--no-index" in words or all("==" in name for name in named), call
