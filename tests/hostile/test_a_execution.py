"""Nothing of a stranger's folder, log, cache or rule runs, is followed or takes the tool down."""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import subprocess
import sys
import venv
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from hostile.command import LIMIT_S, run

linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="made of FIFOs, devices and owners")

# What `import torch` of a real torch takes in, as far as a stranger may hide it
FAKE_TORCH = """
import collections, copy, ctypes, json, logging, platform, queue, random, sysconfig, types
try:
    import numpy
except ImportError:
    pass
__version__ = "2.5.1"
"""
HIDERS = ("torch.py", "random.py", "numpy.py", "ctypes.py", "sysconfig.py", "collections.py", "types.py",
          "json.py", "queue.py", "sitecustomize.py")  # fmt: skip


class Place:
    """A folder with a log in it, an environment to examine, and a mark that hostile code would set."""

    def __init__(self, base: Path, python: Path) -> None:
        self.folder = base / "work"
        self.folder.mkdir()
        self.python = python
        self.mark = base / "it-ran"

    @property
    def hostile(self) -> str:
        return f"open({str(self.mark)!r}, 'a').write('x')\n"

    def plant(self, *names: str, where: str = "") -> None:
        folder = self.folder / where
        folder.mkdir(parents=True, exist_ok=True)
        for name in names:
            (folder / name).write_text(self.hostile)

    def plant_program(self, path: str, words: str = "") -> Path:
        program = self.folder / path
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text(f"#!/bin/sh\necho x >> {self.mark}\n{words}\n")
        program.chmod(0o755)
        return program

    def command(
        self, *words: str | bytes, code: tuple[int, ...] = (0, 1, 2, 3), **environment: str
    ) -> subprocess.CompletedProcess[bytes]:
        done = run(words, self.folder, environment=environment, limit_s=LIMIT_S * 3)
        assert done.returncode in code, done.stderr
        return done

    def untouched(self) -> bool:
        return not self.mark.exists()


@pytest.fixture(scope="session")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An interpreter with a torch that imports as much as the real one, in a moment."""
    folder = tmp_path_factory.mktemp("examined") / "env"
    venv.create(folder, with_pip=False, symlinks=True)
    (site,) = folder.glob("lib/python3*/site-packages")
    (site / "torch").mkdir()
    (site / "torch" / "__init__.py").write_text(FAKE_TORCH)
    (site / "torch" / "version.py").write_text('__version__ = "2.5.1"\ncuda = None\nhip = None\n')
    return folder / "bin" / "python"


@pytest.fixture
def place(tmp_path: Path, python: Path, warm: Path) -> Place:
    shutil.copytree(warm, tmp_path / "cache")
    return Place(tmp_path, python)


# ------------------------------------------------------------------------------------- the current folder


@pytest.mark.parametrize(
    "name",
    [
        *HIDERS[:-1],
        # site looks for it before there is a current folder on the path
        pytest.param(HIDERS[-1], marks=pytest.mark.held_before),
    ],
)
def test_check_runs_no_module_of_the_current_folder(place: Place, name: str) -> None:
    place.plant(name)
    place.command("check", "--python", str(place.python))
    assert place.untouched()


def test_check_says_what_hides_torch_without_running_it(place: Place) -> None:
    place.plant("random.py")
    done = place.command("check", "--python", str(place.python), "--format", "json")
    (found,) = (one for one in json.loads(done.stdout)["checks"] if one["id"] == "torch-shadowed")
    assert found["verdict"] == "fail"
    assert place.untouched()


def test_a_package_that_hides_torch_is_not_run(place: Place) -> None:
    place.plant("__init__.py", "version.py", where="torch")
    place.command("check", "--python", str(place.python))
    assert place.untouched()


def test_facts_run_no_module_of_the_current_folder(place: Place) -> None:
    place.plant(*HIDERS)
    place.command("facts", "--python", str(place.python))
    assert place.untouched()


def test_saving_facts_runs_no_module_of_the_current_folder(place: Place) -> None:
    place.plant(*HIDERS)
    place.command("facts", "--python", str(place.python), "--save", "machine.json")
    assert place.untouched()


LOG = """Traceback (most recent call last):
{frames}RuntimeError: CUDA error: no kernel image is available for execution on the device
"""


def log_of(*frames: tuple[object, int, str]) -> str:
    return LOG.format(
        frames="".join(f'  File "{file}", line {line}, in main\n    {code}\n' for file, line, code in frames)
    )


@pytest.mark.parametrize("asked", ["--here", "--python"])
def test_explain_runs_no_module_of_the_current_folder(place: Place, asked: str) -> None:
    place.plant(*HIDERS)
    (place.folder / "train.log").write_text(log_of(("/home/me/train.py", 3, "loss.backward(x)")))
    words = [asked] if asked == "--here" else [asked, str(place.python)]
    place.command("explain", "train.log", *words, code=(0,), VIRTUAL_ENV=str(place.python.parent.parent))
    assert place.untouched()


@pytest.mark.parametrize("entries", ["", ":", ".", "src", "./src:", "{here}", ":/usr/share"])
def test_relative_entries_of_pythonpath_lead_nowhere(place: Place, entries: str) -> None:
    # not what Python and an installer's script import before a line of torchdoctor has run
    names = ("torch.py", "numpy.py", "ctypes.py", "sysconfig.py")
    place.plant(*names)
    place.plant(*names, where="src")
    here = entries.format(here=place.folder)
    place.command("check", "--python", str(place.python), PYTHONPATH=here)
    assert place.untouched()


def test_selftest_imports_nothing_of_the_current_folder(place: Place) -> None:
    place.plant("torch.py", "numpy.py", "ctypes.py")
    words = ("selftest", "--device", "cpu", "--only", "gemm-exact", "--python", str(place.python))
    place.command(*words, PYTHONPATH=":")
    assert place.untouched()


@linux
def test_the_active_part_of_gate_imports_nothing_of_the_current_folder(place: Place) -> None:
    place.plant(*HIDERS)
    words = ("gate", "--tier", "quick", "--gpus", "0", "--python", str(place.python))
    place.command(*words, code=(0, 10, 11, 12))
    assert place.untouched()


# ----------------------------------------------------------------------- other ways to the current folder


@linux
@pytest.mark.parametrize("entry", [".", "", "tools"])
def test_no_tool_is_taken_from_a_relative_entry_of_path(place: Place, entry: str) -> None:
    place.plant_program(f"{entry or '.'}/c++")
    place.command("facts", "--python", str(place.python), PATH=f"{entry}:/usr/bin:/bin")
    assert place.untouched()


@linux
def test_a_relative_environment_is_none(place: Place) -> None:
    place.plant_program("env/bin/python")
    place.command("facts", "--format", "json", VIRTUAL_ENV="env")
    assert place.untouched()


@linux
@pytest.mark.parametrize(
    ("variable", "value", "left"),
    [
        ("LD_LIBRARY_PATH", ":/opt/lib", "/opt/lib"),
        ("LD_LIBRARY_PATH", ".", None),
        ("LD_LIBRARY_PATH", "/opt/lib:lib", "/opt/lib"),
        ("PYTHONPATH", "src:/opt/code", "/opt/code"),
        ("PYTHONUSERBASE", "base", None),
        ("PYTHONPYCACHEPREFIX", "cache", None),
        ("LD_PRELOAD", "./own.so /nonexistent/b.so", "/nonexistent/b.so"),
    ],
)
def test_what_an_examined_interpreter_is_given(
    place: Place, variable: str, value: str, left: str | None
) -> None:
    """An interpreter that writes down what it was given, and from where it was started."""
    told = place.mark
    fake = place.folder.parent / "fake-python"
    fake.write_text(f"#!/bin/sh\npwd > {told}\nenv >> {told}\n")
    fake.chmod(0o755)
    place.command("check", "--python", str(fake), **{variable: value})
    folder, *lines = told.read_text().splitlines()
    assert folder != str(place.folder)
    given = dict(line.split("=", 1) for line in lines if "=" in line)
    assert given.get(variable) == left


# ------------------------------------------------------------------------------------------ what a log says


def examined(place: Place) -> dict[str, str]:
    """An active environment whose interpreter tells that it was run."""
    return {"VIRTUAL_ENV": str(place.plant_program("../own/bin/python").parent.parent.resolve())}


OWN = "import torch\n\n\ndef main():\n    loss = model(batch).sum()\n    loss.backward(retain)\n\n\nmain()\n"


def own_file(place: Place) -> Path:
    file = place.folder.parent / "project" / "train.py"
    file.parent.mkdir()
    file.write_text(OWN)
    return file


def quoting(file: object, *numbers: int) -> str:
    return log_of(*((file, number, OWN.splitlines()[number - 1].strip()) for number in numbers))


def standard_library(place: Place) -> str:
    lines = Path(json.__file__).read_text().splitlines()
    found = [(n, code.strip()) for n, code in enumerate(lines, 1) if code.startswith("        return")]
    return log_of(*((json.__file__, n, code) for n, code in found[:3]))


def a_package(place: Place) -> str:
    lines = Path(pytest.__file__).read_text().splitlines()
    found = [(n, code.strip()) for n, code in enumerate(lines, 1) if code.startswith("from ")]
    return log_of(*((pytest.__file__, n, code) for n, code in found[:3]))


def one_own_line(place: Place) -> str:
    return quoting(own_file(place), 6)


def own_lines(place: Place) -> str:
    return quoting(own_file(place), 5, 6)


def a_link(place: Place) -> str:
    link = place.folder / "train.py"
    link.symlink_to(own_file(place))
    return quoting(link, 5, 6)


def a_linked_folder(place: Place) -> str:
    file = own_file(place)
    (place.folder / "project").symlink_to(file.parent)
    return quoting(place.folder / "project" / "train.py", 5, 6)


def dots(place: Place) -> str:
    file = own_file(place)
    return quoting(f"{file.parent}/../project/train.py", 5, 6)


def through_proc(place: Place) -> str:
    return quoting(f"/proc/self/root{own_file(place)}", 5, 6)


@linux
@pytest.mark.parametrize(
    "log", [standard_library, a_package, one_own_line, own_lines, a_link, a_linked_folder, dots, through_proc]
)
def test_a_log_alone_has_no_program_run(place: Place, log: Callable[[Place], str]) -> None:
    given = examined(place)
    (place.folder / "train.log").write_text(log(place))
    place.command("explain", "train.log", **given)
    assert place.untouched()


@linux
@pytest.mark.held_before
def test_the_user_may_have_it_run(place: Place) -> None:
    """Else the situations above would prove nothing."""
    given = examined(place)
    (place.folder / "train.log").write_text(log_of(("/home/me/train.py", 3, "loss.backward(x)")))
    place.command("explain", "train.log", "--here", **given)
    assert not place.untouched()


@linux
@pytest.mark.held_before
@pytest.mark.parametrize("what", ["fifo", "device", "socket-like", "large"])
def test_what_a_log_names_is_not_waited_for(place: Place, what: str) -> None:
    file: object = place.folder / "train.py"
    if what == "fifo":
        os.mkfifo(place.folder / "train.py")
    elif what == "large":
        with open(place.folder / "train.py", "wb") as stream:
            stream.truncate(1 << 30)
    else:
        file = "/dev/zero" if what == "device" else "/dev/tty"
    (place.folder / "train.log").write_text(quoting(file, 5, 6))
    done = run(["explain", "train.log"], place.folder, limit_s=LIMIT_S)
    assert done.returncode == 0


# ---------------------------------------------------------------------------------------------------- caches

RULE = """id = "{id}"
family = "python"
severity = "fatal"
role = "cause"
title = "A failure of ours {id}"
why = "Because."

[[match]]
{match}
"""
TEMPLATE = 'text = "the reactor overheated at {degrees:int} degrees"'


def rules_of(folder: Path, match: str = TEMPLATE, name: str = "reactor-hot") -> Path:
    rules = folder / "own-rules"
    (rules / "python").mkdir(parents=True)
    (rules / "python" / f"{name}.toml").write_text(RULE.format(id=name, match=match))
    return rules


def cache_file(place: Place) -> Path:
    """The cache of the small catalog beside the shipped one, as a first call makes it."""
    before = set((place.folder.parent / "cache" / "torchdoctor").iterdir())
    (place.folder / "a.log").write_text("RuntimeError: the reactor overheated at 900 degrees\n")
    done = place.command("explain", "a.log", "--rules", str(rules_of(place.folder)))
    assert b"reactor-hot" in done.stdout
    (made,) = set((place.folder.parent / "cache" / "torchdoctor").iterdir()) - before
    return made


def body(path: Path, content: bytes) -> None:
    head = path.read_bytes().partition(b"\n")[0]
    path.write_bytes(head + b"\n" + content)


def replaced(path: Path, make: Callable[[Path], object]) -> None:
    path.unlink()
    make(path)


def flipped(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data.replace(b"overheated", b"overheatex"))


def sparse(path: Path) -> None:
    with open(path, "r+b") as stream:
        stream.truncate(1 << 30)


DAMAGES: dict[str, Callable[[Path], object]] = {
    "garbage": lambda path: body(path, b"\x00\xff{[garbage\n\n]\n"),
    "nothing behind the first line": lambda path: body(path, b"]\n"),
    "NULs": lambda path: body(path, b"\0" * 4096 + b"]\n"),
    "null": lambda path: body(path, b"null\nnull\nnull\nnull]\n"),
    "wrong types": lambda path: body(path, b'{"ids":5,"lengths":{},"loose":0}\n\n[[]]\n'),
    "deep nesting": lambda path: body(path, b"[" * 200_000 + b"\n\n" + b"]" * 200_000 + b"\n"),
    "one word changed": flipped,
    "cut": lambda path: path.write_bytes(path.read_bytes()[:-20] + b"]\n"),
    "1 GB": sparse,
    "FIFO": lambda path: replaced(path, os.mkfifo),
    "device": lambda path: replaced(path, lambda place: place.symlink_to("/dev/zero")),
}


@linux
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_cache_is_made_anew(place: Place, damage: str) -> None:
    path = cache_file(place)
    whole = path.read_bytes()
    DAMAGES[damage](path)
    done = run(
        ["explain", "a.log", "--rules", str(place.folder / "own-rules")], place.folder, limit_s=LIMIT_S
    )
    assert done.returncode == 0, done.stderr
    assert b"reactor-hot" in done.stdout
    assert path.is_file()
    assert path.read_bytes() == whole


def forge(path: Path) -> None:
    """Put another title into it, as one who knows the format would: only the trust in the place can fail."""
    head, _, data = path.read_bytes().partition(b"\n")
    assert b"A failure of ours" in data
    data = data.replace(b"A failure of ours", b"A forgery of them")
    if re.fullmatch(rb".* [0-9a-f]{8} \d+", head):
        head = head.rsplit(b" ", 2)[0] + b" %08x %012d" % (zlib.crc32(data), len(data))
    path.write_bytes(head + b"\n" + data)


@linux
@pytest.mark.held_before
def test_a_cache_of_the_users_own_is_believed(place: Place) -> None:
    """Else the situations below would prove nothing."""
    forge(cache_file(place))
    done = place.command("explain", "a.log", "--rules", str(place.folder / "own-rules"))
    assert b"A forgery of them" in done.stdout


@linux
@pytest.mark.parametrize("weakness", ["file", "folder", "linked file", "linked folder", "owner of file"])
def test_a_cache_that_others_can_write_is_neither_read_nor_written(place: Place, weakness: str) -> None:
    path = cache_file(place)
    forge(path)
    elsewhere = place.folder.parent / "elsewhere"
    if weakness == "file":
        path.chmod(0o664)
    elif weakness == "folder":
        path.parent.chmod(0o770)
    elif weakness == "linked file":
        shutil.move(path, elsewhere)
        path.symlink_to(elsewhere)
    elif weakness == "linked folder":
        shutil.move(path.parent, elsewhere)
        path.parent.symlink_to(elsewhere)
    elif os.geteuid() != 0:
        pytest.skip("only root can give a file away")
    else:
        os.chown(path, 12345, 12345)
    forged = path.read_bytes()
    done = place.command("explain", "a.log", "--rules", str(place.folder / "own-rules"))
    assert b"A failure of ours" in done.stdout
    if "folder" in weakness:
        assert path.read_bytes() == forged
        return
    # one of our own took its place
    made = path.lstat()
    assert stat.S_ISREG(made.st_mode)
    assert (made.st_uid, stat.S_IMODE(made.st_mode)) == (os.geteuid(), 0o600)
    if weakness == "linked file":
        assert elsewhere.read_bytes() == forged


@linux
@pytest.mark.parametrize("base", ["cache", "./cache", ".."])
def test_a_relative_cache_folder_is_none(place: Place, base: str) -> None:
    """A folder that came with the log may hold one."""
    home = place.folder.parent / "home"
    rules = str(rules_of(place.folder))
    (place.folder / "a.log").write_text("RuntimeError: the reactor overheated at 900 degrees\n")
    shutil.copytree(place.folder.parent / "cache" / "torchdoctor", home / ".cache" / "torchdoctor")
    place.command("explain", "a.log", "--rules", rules, XDG_CACHE_HOME=base, HOME=str(home))
    assert not (place.folder / base / "torchdoctor").exists()


# ---------------------------------------------------------------------------------------------------- regexes


@pytest.mark.parametrize(
    "regex",
    [
        r"x(a+)+$", r"x(a|a){0,50}b", r"x(.)\1", r"x(?=y)z", "x" * 3000,
    ],
)  # fmt: skip
def test_a_regex_that_may_run_away_is_refused(place: Place, regex: str) -> None:
    rules = rules_of(place.folder, f"event = \"exception\"\nregex = '{regex}'")
    (place.folder / "a.log").write_text("RuntimeError: x" + "a" * 200 + "\n")
    done = run(["explain", "a.log", "--rules", str(rules)], place.folder, limit_s=LIMIT_S)
    assert done.returncode == 2
    assert b"python/reactor-hot.toml: [[match]] 1 " in done.stderr
    assert b"regex" in done.stderr


def test_a_regex_sees_the_beginning_of_an_event_only(place: Place) -> None:
    rules = rules_of(place.folder, "event = \"exception\"\nregex = 'overheated at \\d{1,5}'")
    text = "RuntimeError: it overheated at 900\n"
    late = f"RuntimeError: {'it runs. ' * 500}it overheated at 900\n"
    for log, found in ((text, True), (late, False)):
        (place.folder / "a.log").write_text(log)
        done = place.command("explain", "a.log", "--rules", str(rules))
        assert (b"reactor-hot" in done.stdout) is found


@pytest.mark.held_before
def test_a_linear_regex_is_fast_on_what_is_made_to_be_slow(place: Place) -> None:
    rules = rules_of(
        place.folder, "event = \"exception\"\nregex = 'it [^:]{0,80}overheated: .{0,300}degrees'"
    )
    line = "RuntimeError: " + "it overheated: " * 270
    (place.folder / "a.log").write_text(f"{line}\n" * 20)
    done = run(["explain", "a.log", "--rules", str(rules)], place.folder, limit_s=LIMIT_S)
    assert done.returncode == 0
