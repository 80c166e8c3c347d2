"""What ships: the version, the files in the package, the README's commands, the settings of the build."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from importlib import resources
from pathlib import Path

import pytest
from case_files import case_text

import torchdoctor
import torchdoctor.model

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).absolute().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
README = (ROOT / "README.md").read_text(encoding="utf-8")
CI = (ROOT / ".ci" / "run").read_text(encoding="utf-8")


def readme_command(name: str) -> str:
    """The fenced block under ``<!-- ci: NAME -->``."""
    match = re.search(rf"^<!-- ci: {name} -->\n```sh\n(.*?)\n```$", README, re.MULTILINE | re.DOTALL)
    assert match is not None, name
    return match[1]


@pytest.mark.parametrize("name", ["try", "test"])
def test_each_set_up_of_the_readme_is_one_command_line(name: str) -> None:
    command = readme_command(name)
    assert "\n" not in command
    assert command.startswith("python3 -m venv .venv && .venv/bin/pip install ")


def test_the_first_command_explains_a_sample_that_is_there() -> None:
    path = readme_command("try").split()[-1]
    assert path.startswith("fixtures/samples/")
    assert (ROOT / path).read_text(encoding="utf-8") == case_text(
        "cuda-assert-label-range/h200x2-label-rank0"
    )


def test_the_second_command_runs_the_tests_with_all_they_need() -> None:
    command = readme_command("test")
    assert "-e '.[dev]'" in command
    assert ".venv/bin/pytest" in command
    assert "torch==2.13.0" in PROJECT["project"]["optional-dependencies"]["dev"]
    assert PROJECT["tool"]["pytest"]["ini_options"]["testpaths"] == ["tests"]
    assert " tests/" not in command, "all of them run"


@pytest.mark.skipif(shutil.which("bash") is None or shutil.which("awk") is None, reason="needs bash and awk")
@pytest.mark.parametrize("name", ["try", "test"])
def test_ci_runs_what_the_readme_says(name: str) -> None:
    function = re.search(r"^readme\(\) \{\n.*?^\}$", CI, re.MULTILINE | re.DOTALL)
    done = subprocess.run(
        ["bash", "-c", f'root="$1"\n{function[0]}\nreadme {name}', "-", str(ROOT)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == readme_command(name)
    assert f"command=$(readme {name})\n" in CI
    assert CI.count('bash -euo pipefail -c "$command"') == 2


def test_torch_is_no_dependency() -> None:
    names = {re.split(r"[<>=!~;\[ ]", item)[0] for item in PROJECT["project"]["dependencies"]}
    assert names == {"click", "rich", "psutil", "nvidia-ml-py", "packaging", "tomli"}


def test_version() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+", torchdoctor.__version__)
    assert PROJECT["tool"]["hatch"]["version"]["path"] == "torchdoctor/__init__.py"


def test_the_package_is_typed_and_carries_the_schema() -> None:
    package = resources.files("torchdoctor")
    assert package.joinpath("py.typed").is_file()
    schema = json.loads(package.joinpath("schema/report-1.json").read_text("utf-8"))
    assert schema["properties"]["schema"]["const"] == torchdoctor.model.REPORT_SCHEMA


def test_the_licence_is_the_one_that_is_named() -> None:
    assert PROJECT["project"]["license"] == "Apache-2.0"
    text = (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert "Apache License\n                           Version 2.0, January 2004" in text
    assert "END OF TERMS AND CONDITIONS" in text


def test_every_command_is_in_the_readme() -> None:
    import click

    from torchdoctor.cli.main import cli

    for name in cli.list_commands(click.Context(cli)):
        assert f"torchdoctor {name}" in README, name


def test_addresses_come_from_one_constant() -> None:
    urls = PROJECT["project"].get("urls", {})
    assert all(torchdoctor.model.SITE and url.startswith(torchdoctor.model.SITE) for url in urls.values())


def test_every_command_and_option_has_help() -> None:
    import click

    from torchdoctor.cli.main import cli

    def walk(command: click.Command) -> list[click.Command]:
        below = []
        if isinstance(command, click.Group):
            context = click.Context(command)
            for name in command.list_commands(context):
                found = command.get_command(context, name)
                assert found is not None
                below += walk(found)
        return [command, *below]

    for command in walk(cli):
        assert command.help, command.name
        for parameter in command.params:
            if isinstance(parameter, click.Option):
                assert parameter.help, (command.name, parameter.name)


@pytest.mark.parametrize("module", ["torchdoctor", "torchdoctor.cli.main", "torchdoctor.engine"])
def test_importing_the_package_imports_no_torch(module: str) -> None:
    code = f"import sys, {module}; sys.exit('torch' in sys.modules or 'rich' in sys.modules)"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    assert subprocess.run([sys.executable, "-c", code], env=environment, check=False).returncode == 0
