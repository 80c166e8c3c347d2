"""Where the output cannot go: closed, a full disk, a reader that has gone. Each command tells it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import click
import pytest
from command_tree import commands

from torchdoctor.cli import progress
from torchdoctor.cli.main import cli

ROOT = Path(__file__).resolve().parent.parent
LOG = str(ROOT / "fixtures" / "samples" / "label-out-of-range.log")
MACHINE = str(ROOT / "fixtures" / "machines" / "laptop-cpu.json")
NODE = str(ROOT / "tests" / "gate" / "machines" / "h100.json")

# command -> exit code when its output is read to the end
COMMANDS = {
    ("explain", LOG): 0,
    ("explain", "--format", "json", LOG): 0,
    ("explain", "--format", "html", LOG): 0,
    ("explain", "--format", "markdown", LOG): 0,
    ("explain", "--each", "--format", "jsonl", LOG, LOG): 0,
    ("check", "--facts", MACHINE): 0,
    ("check", "--facts", MACHINE, "--fail-on", "warn", "--format", "json"): 0,
    ("facts", "--facts", MACHINE): 0,
    ("facts", "diff", MACHINE, MACHINE): 0,
    ("rules", "list"): 0,
    ("rules", "show", "nccl-timeout"): 0,
    ("rules", "facts"): 0,
    ("selftest", "--list"): 0,
    ("lint", "--list"): 0,
    ("selftest", "--show", "conv"): 0,
    ("gate", "policy", "learn", "--facts", NODE): 0,
    ("explain", "--help"): 0,
    ("--version",): 0,
    ("gate", "--tier", "passive", "--facts", NODE): 0,
    ("gate", "--tier", "passive", "--facts", NODE, "--gpus", "8"): 10,
}
_ids = [" ".join(os.path.basename(word) for word in words) for words in COMMANDS]

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="descriptors of a shell")


def call(words: tuple[str, ...], redirect: str) -> subprocess.CompletedProcess[str]:
    """The command in a shell, its exit code being that of the command even before a pipe."""
    script = f'"$@" {redirect}'
    if redirect.startswith("|"):
        script = f"set -o pipefail; {script}"
    return subprocess.run(
        ["bash", "-c", script, "bash", sys.executable, "-m", "torchdoctor", *words],
        cwd=ROOT, capture_output=True, text=True, timeout=120, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip


def unwritable(words: tuple[str, ...]) -> int:
    """The gate's 2 would blame the call: its verdict that cannot be written is told as in docs/gate.md."""
    return 70 if words[0] == "gate" and "policy" not in words else 2


@pytest.mark.parametrize("words", COMMANDS, ids=_ids)
def test_a_closed_output(words: tuple[str, ...]) -> None:
    done = call(words, ">&-")
    assert done.returncode == unwritable(words)
    assert done.stderr.endswith("cannot be written: standard output is closed\n")
    assert done.stderr.count("\n") == 1


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
@pytest.mark.parametrize("words", COMMANDS, ids=_ids)
def test_a_full_disk(words: tuple[str, ...]) -> None:
    done = call(words, ">/dev/full")
    assert done.returncode == unwritable(words)
    assert done.stderr.endswith("cannot be written: No space left on device\n")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("words", COMMANDS, ids=_ids)
def test_a_reader_that_has_gone_hears_nothing_and_changes_no_exit_code(words: tuple[str, ...]) -> None:
    done = call(words, "| true")
    assert (done.returncode, done.stderr) == (COMMANDS[words], "")


def test_a_reader_that_has_gone_hides_no_finding(tmp_path: Path) -> None:
    for words in (
        ("rules", "lint", "--rules", str(_broken_rules(tmp_path))),
        ("check", "--python", str(_bare_python(tmp_path))),
    ):
        done = call(words, "| true")
        assert (done.returncode, done.stderr) == (1, ""), words


def _broken_rules(folder: Path) -> Path:
    (folder / "rules" / "memory").mkdir(parents=True)
    (folder / "rules" / "memory" / "mine.toml").write_text("id = 1\n", encoding="utf-8")
    return folder / "rules"


def _bare_python(folder: Path) -> Path:
    import venv

    venv.create(folder / "env", with_pip=False, symlinks=True)
    return folder / "env"


def test_the_verdict_file_is_enough_where_the_output_was_closed(tmp_path: Path) -> None:
    path = tmp_path / "verdict.json"
    done = call(("gate", "--tier", "passive", "--facts", NODE, "-o", str(path)), ">&-")
    assert (done.returncode, done.stderr) == (0, "")
    assert '"verdict":"fit"' in path.read_text(encoding="utf-8")


def test_no_file_takes_the_place_of_a_closed_output(tmp_path: Path) -> None:
    path = tmp_path / "machine.json"
    done = call(("facts", "--save", str(path)), ">&- 2>&- <&-")
    assert done.returncode == 0
    assert path.read_text(encoding="utf-8").startswith("{")


def test_all_closed() -> None:
    assert call(("explain", LOG), ">&- 2>&- <&-").returncode == 2


def test_every_report_can_go_to_a_file() -> None:
    for path in commands(cli):
        command: click.Command = cli
        for name in path:
            assert isinstance(command, click.Group)
            found = command.get_command(click.Context(command), name)
            assert found is not None
            command = found
        options = {option for one in command.params for option in one.opts}
        assert "--format" not in options or {"-o", "--output"} <= options, path


def test_a_report_in_a_file_is_that_of_the_output(tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    for words in [("explain", "--format", "json", LOG), ("check", "--facts", MACHINE, "--format", "json")]:
        read = call(words, "")
        told = call((*words, "-o", str(file)), "")
        assert (told.returncode, told.stdout, told.stderr) == (read.returncode, "", read.stderr)
        assert file.read_text() == read.stdout
    assert os.listdir(tmp_path) == ["report.json"]
    assert call(("explain", LOG, "-o", "/dev/stdout"), "").stdout == call(("explain", LOG), "").stdout


def test_a_file_stays_where_there_is_no_report(tmp_path: Path) -> None:
    (tmp_path / "kept").write_text("of yesterday")
    for words in [("explain", "none.log"), ("check", "--facts", "none.json"), ("explain", "--run", "0", LOG)]:
        assert call((*words, "-o", str(tmp_path / "kept")), "").returncode == 2
        assert (tmp_path / "kept").read_text() == "of yesterday"
    for place, why in [
        (tmp_path, "this is a folder"),
        (tmp_path / "no" / "file", "No such file"),
        ("/dev/full", "No space"),
    ]:
        done = call(("explain", LOG, "-o", str(place)), "")
        assert (done.returncode, done.stdout) == (2, "")
        assert f"--output {place}: cannot be written: {why}" in done.stderr
    assert os.listdir(tmp_path) == ["kept"]


def test_an_input_passes_through_and_its_report_goes_to_a_file(tmp_path: Path) -> None:
    done = call(("explain", "--tee", "-o", str(tmp_path / "report")), f"< {LOG}")
    assert (done.returncode, done.stdout, done.stderr) == (0, Path(LOG).read_text(), "")
    assert (tmp_path / "report").read_text().startswith("✗ A class label")


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-16"])
def test_a_page_is_utf_8_whatever_the_output_is(encoding: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "torchdoctor", "explain", "--format", "html", LOG],
        cwd=ROOT, capture_output=True, timeout=60, check=False,
        env={**os.environ, "PYTHONIOENCODING": encoding},
    )  # fmt: skip
    page = done.stdout.decode(encoding)
    assert page.isascii()
    assert "&#10007;" in page
    assert "\\u" not in page


def test_an_installation_in_a_folder_that_the_encoding_cannot_name(tmp_path: Path) -> None:
    place = tmp_path / "clone \u00e9"
    place.mkdir()
    (place / "rules").symlink_to(ROOT / "rules")
    shutil.copytree(ROOT / "torchdoctor", place / "torchdoctor", ignore=shutil.ignore_patterns("__pycache__"))
    strict = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONPATH": str(place)}
    done = subprocess.run(
        [sys.executable, "-m", "torchdoctor", "explain", LOG], cwd=place, capture_output=True, timeout=60,
        check=False, env={**os.environ, **strict, "XDG_CACHE_HOME": str(tmp_path / "cache")},
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"cuda-assert-label-range, confirmed" in done.stdout


def test_what_takes_long_says_so_on_a_terminal_only(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "_SOON_S", 0.0)
    with progress.waiting("reading"):
        time.sleep(0.7)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    with progress.waiting("reading"):
        time.sleep(0.7)
    shown = capsys.readouterr().err
    assert "s  reading" in shown
    assert shown.endswith("\r")
    assert list(progress.waited_for(iter([1, 2]), "reading")) == [1, 2]
