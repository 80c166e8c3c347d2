"""Interpreters of other versions, and files that are none."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from probe_machines import Environment

from torchdoctor.model import Reason, State
from torchdoctor.probes import candidates, interpreter
from torchdoctor.probes.live import LiveMachine
from torchdoctor.probes.names import CATALOGUE
from torchdoctor.probes.opening import InterpreterError, resolve
from torchdoctor.probes.search_paths import program_on_path, without_current_folder
from torchdoctor.probes.source import ProbeSource

CHILD = Path(interpreter.TARGET)

# Interpreters of pyenv, of a build machine, or of the system, as far as they are here.
OTHERS = sorted(
    {
        *(str(path) for path in Path.home().glob(".pyenv/versions/*/bin/python")),
        *(str(path) for path in Path("/opt").glob("python/cp*/bin/python")),
        "/usr/bin/python3",
    }
)


def version_of(python: str) -> str:
    said = subprocess.run([python, "-V"], capture_output=True, text=True, check=False)
    return (said.stdout + said.stderr).strip().partition(" ")[2]


@pytest.mark.parametrize("python", OTHERS)
def test_another_interpreter(python: str, tmp_path: Path, look: Callable[..., ProbeSource]) -> None:
    if not os.path.exists(python):
        pytest.skip(f"{python} is not here")
    version = version_of(python)
    source = look(Environment(Path(python), tmp_path, tmp_path))
    assert source.fetch("python.version").value == version
    if tuple(int(part) for part in version.split(".")[:2]) < (3, 6):
        assert "older than 3.6" in str(source.fetch("python.start_error").value)
        assert source.fetch("torch.version").state is State.UNKNOWN
        return
    assert source.fetch("python.start_error").state is State.ABSENT
    assert source.fetch("python.bits").value == 64
    path = source.fetch("python.path").value
    assert isinstance(path, tuple)
    assert all(os.path.isabs(str(entry)) for entry in path)
    assert str(tmp_path) not in path  # where a stranger's random.py may lie
    assert str(CHILD.parent) not in path
    assert source.fetch("torch.installed").state is State.KNOWN


def test_the_child_is_in_the_syntax_of_python_3_6() -> None:
    ast.parse(CHILD.read_text(encoding="utf-8"), feature_version=(3, 6))


def test_the_child_imports_next_to_nothing_before_torch(tmp_path: Path) -> None:
    """Each module it loads is one whose hiding by a user's file would go unnoticed."""
    (tmp_path / "torch.py").write_text("import os, sys\nos.write(1, repr(sorted(sys.modules)).encode())")
    loaded = subprocess.run(
        [sys.executable, "-S", str(CHILD), "import@20", str(tmp_path / "facts")],
        env={"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    plain = subprocess.run(
        [sys.executable, "-S", "-c", "import os, sys; print(sorted(sys.modules))"],
        env={}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    extra = set(ast.literal_eval(loaded.stdout)) - set(ast.literal_eval(plain.stdout))
    assert {name for name in extra if not name.startswith("encodings.")} <= {"torch", "gc", "faulthandler"}


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        0,
        -7,
        1.5,
        "",
        'quote " backslash \\ newline \n',
        "ü → 𝄞 \udc80 \x00",
        ["a", [1, None]],
        {"k": "v"},
    ],
)
def test_the_child_writes_json(value: object) -> None:
    scope: dict[str, Callable[[object], str]] = {}
    tree = ast.parse(CHILD.read_text(encoding="utf-8"))
    wanted = [
        node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("encode")
    ]
    exec(compile(ast.Module(wanted, []), "child", "exec"), scope)
    assert json.loads(scope["encode"](value)) == value
    assert scope["encode"](value).isascii()
    assert json.loads(scope["encode"](float("nan"))) is None


def test_a_program_that_is_no_python(tmp_path: Path, look: Callable[..., ProbeSource]) -> None:
    source = look(Environment(Path("/bin/true"), tmp_path, tmp_path))
    assert "is it a Python interpreter?" in str(source.fetch("python.start_error").value)
    for name in CATALOGUE["interpreter"]:
        if name != "python.start_error":
            assert source.fetch(name).state is State.UNKNOWN, name
    assert source.fetch("torch.installed").state is State.UNKNOWN
    assert source.fetch("torch.import_ok").state is State.UNKNOWN
    assert source.fetch("torch.version").state is State.UNKNOWN
    assert source.fetch("numpy.version").state is State.UNKNOWN


def test_a_program_that_is_not_there(tmp_path: Path, look: Callable[..., ProbeSource]) -> None:
    source = look(Environment(tmp_path / "gone", tmp_path, tmp_path))
    assert "No such file" in str(source.fetch("python.start_error").value)
    assert source.fetch("python.version").reason is Reason.NOT_INSTALLED


@pytest.mark.parametrize(
    "words", ["exit 3", "kill -SEGV $$", "echo garbage; echo '{\"name\": 1}' >&2; exit 0"]
)
def test_a_broken_interpreter(words: str, tmp_path: Path, look: Callable[..., ProbeSource]) -> None:
    program = tmp_path / "python"
    program.write_text(f"#!/bin/sh\n{words}\n")
    program.chmod(0o755)
    source = look(Environment(program, tmp_path, tmp_path))
    assert source.fetch("python.start_error").state is State.KNOWN
    assert source.fetch("torch.import_ok").state is State.UNKNOWN


def test_resolve(tmp_path: Path, empty_python: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert resolve(str(empty_python)) == str(empty_python / "bin" / "python")
    assert resolve(str(empty_python / "bin" / "python")) == str(empty_python / "bin" / "python")
    monkeypatch.setenv("PATH", str(empty_python / "bin"))
    assert resolve("python") == str(empty_python / "bin" / "python")
    with pytest.raises(InterpreterError, match="no such file"):
        resolve(str(tmp_path / "python"))
    with pytest.raises(InterpreterError, match="without an interpreter"):
        resolve(str(tmp_path))
    with pytest.raises(InterpreterError, match="not on PATH"):
        resolve("python99")
    (tmp_path / "notes.txt").write_text("")
    with pytest.raises(InterpreterError, match="not allowed to be run"):
        resolve(str(tmp_path / "notes.txt"))


class TestChoice:
    """Which interpreter is meant when none is named."""

    @pytest.fixture(autouse=True)
    def own(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys, "argv", ["/opt/tool/bin/torchdoctor"])
        monkeypatch.setattr(sys, "executable", "/opt/tool/bin/python")
        monkeypatch.setattr(sys, "prefix", "/opt/tool")
        monkeypatch.setattr(sys, "path", ["/opt/tool/lib/python3/site-packages"])

    def test_run_as_a_module(self, monkeypatch: pytest.MonkeyPatch, empty_python: Path) -> None:
        monkeypatch.setattr(sys, "argv", ["/opt/tool/lib/torchdoctor/__main__.py"])
        assert interpreter.choose({"VIRTUAL_ENV": str(empty_python)})[0] == "/opt/tool/bin/python"

    def test_the_active_environment(self, empty_python: Path) -> None:
        for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
            python, why, _ = interpreter.choose({variable: str(empty_python)})
            assert python == str(empty_python / "bin" / "python")
            assert variable in why

    def test_an_environment_that_is_gone(self, empty_python: Path) -> None:
        environment = {"VIRTUAL_ENV": "/gone", "PATH": str(empty_python / "bin")}
        assert interpreter.choose(environment)[0].startswith(str(empty_python / "bin"))

    def test_torch_beside_us(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, empty_python: Path
    ) -> None:
        (tmp_path / "site-packages" / "torch").mkdir(parents=True)
        monkeypatch.setattr(sys, "path", [str(tmp_path / "site-packages")])
        assert interpreter.choose({"PATH": str(empty_python / "bin")})[0] == "/opt/tool/bin/python"

    @pytest.mark.parametrize("place", ["PATH", ".venv", "kernel", "base", "nowhere"])
    def test_torch_is_looked_for(
        self, place: str, environment: Environment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """An environment that is active decides; without one, what has torch is taken, and that is told."""
        home = str(environment.python.parents[1])
        for name in ("VIRTUAL_ENV", "CONDA_PREFIX", "JUPYTER_PATH"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("PATH", "/nowhere")
        monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path))
        monkeypatch.chdir(environment.work)
        if place != "nowhere":
            environment.plant("")
        if place == "PATH":
            monkeypatch.setenv("PATH", f"{home}/bin")
        elif place in (".venv", "base"):
            (environment.work / ".venv").symlink_to(home)
        else:
            (tmp_path / "kernels" / "mine").mkdir(parents=True)
            (tmp_path / "kernels" / "mine" / "kernel.json").write_text(
                f'{{"argv": ["{environment.python}"]}}'
            )
        if place == "base":
            bare = tmp_path / "base" / "bin"
            bare.mkdir(parents=True)
            (bare / "python").symlink_to(os.path.realpath(environment.python))
            monkeypatch.setenv("CONDA_PREFIX", str(bare.parent))
        chosen = candidates.find()
        if place == "base":  # an active one decides, but for conda's base
            assert chosen.python == str(bare / "python")
            assert f"torch is installed for {environment.work}/.venv/bin/python (.venv in this" in chosen.note
            monkeypatch.setenv("CONDA_DEFAULT_ENV", "base")
            chosen = candidates.find()
        if place == "nowhere":
            assert chosen.python == "/opt/tool/bin/python"
            assert chosen.note.startswith("No interpreter with torch was found")
            return
        assert os.path.realpath(chosen.python) == os.path.realpath(environment.python)
        assert chosen.note.startswith(f"Examined {chosen.python}: ") == (place != "PATH")
        assert ("--python PATH" in chosen.note) == (place != "PATH")

    def test_what_another_user_put_here_is_not_run(
        self, environment: Environment, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (environment.work / ".venv").symlink_to(environment.python.parents[1])
        monkeypatch.chdir(environment.work)
        monkeypatch.setattr(os, "geteuid", lambda: 4321)
        assert not any("this folder" in why for _, why in candidates._further(os.environ))

    def test_nothing_else(self) -> None:
        assert interpreter.choose({"PATH": "/nowhere"})[0] == "/opt/tool/bin/python"


@pytest.mark.parametrize("variable", ["VIRTUAL_ENV", "CONDA_PREFIX"])
@pytest.mark.parametrize("prefix", ["env", "./env", ""])
def test_an_environment_of_the_current_folder_is_not_chosen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str, prefix: str
) -> None:
    """What lies there may be a stranger's."""
    for folder in ("env/bin", "bin"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "python").symlink_to(sys.executable)
    monkeypatch.chdir(tmp_path)
    found, *_ = interpreter.choose({variable: prefix, "PATH": f"{prefix}/bin:bin:/usr/bin:/bin"})
    assert os.path.isabs(found)
    assert not found.startswith(str(tmp_path))
    # named in full it is the active environment
    assert interpreter.choose({variable: str(tmp_path / "env")})[0] == str(tmp_path / "env/bin/python")


def test_an_environment_is_read_where_no_program_may_run(empty_python: Path) -> None:
    source = ProbeSource(LiveMachine(programs=False), str(empty_python / "bin" / "python"))
    facts = {fact.name: fact for fact in source.all()}
    assert source.faults == []
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    library = f"{empty_python}/lib/{version}"
    assert facts["python.path"].value == (library, f"{library}/site-packages")
    assert facts["python.environment"].value == "venv"
    assert facts["torch.copies"].value == ()
    for name in ("python.version", "torch.import_ok", "torch.cuda_available"):
        assert facts[name].reason is Reason.NOT_ASKED
        assert "--here" in facts[name].detail
    source.close()


@pytest.mark.parametrize("python", ["/usr/bin/python3", "/nonexistent/bin/python"])
def test_of_another_interpreter_files_do_not_tell_the_path(python: str) -> None:
    source = ProbeSource(LiveMachine(programs=False), python)
    assert source.fetch("python.path").state is State.UNKNOWN
    assert source.fetch("torch.version").state is State.UNKNOWN
    assert source.faults == []


# Where programs of ours may find code
@pytest.mark.parametrize(
    ("variable", "value", "left"),
    [
        ("PATH", "/usr/bin:/bin", "/usr/bin:/bin"),
        ("PATH", ":/usr/bin::/bin:", "/usr/bin:/bin"),
        ("PATH", ".:bin:../bin:/usr/bin", "/usr/bin"),
        ("PATH", "{here}:{here}/:/usr/bin:{here}/bin", "/usr/bin:{here}/bin"),
        ("PYTHONPATH", "", None),
        ("PYTHONPATH", ".", None),
        ("LD_LIBRARY_PATH", "/opt/lib", "/opt/lib"),
        ("LD_PRELOAD", "libjemalloc.so.2", "libjemalloc.so.2"),
        ("LD_PRELOAD", "libjemalloc.so.2:./libx.so {here}/liby.so", "libjemalloc.so.2"),
        ("PYTHONHOME", "/opt/python", "/opt/python"),
        ("PYTHONHOME", ".", None),
        ("HOME", ".", "."),
    ],
)
def test_what_is_left_of_a_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str, value: str, left: str | None
) -> None:
    monkeypatch.chdir(tmp_path)
    found = without_current_folder({variable: value.format(here=tmp_path)})
    assert found.get(variable) == (left if left is None else left.format(here=tmp_path))
    assert found["PYTHONSAFEPATH"] == "1"


def test_a_folder_that_was_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert without_current_folder({"PATH": ":/bin"})["PATH"] == "/bin"


def test_a_program_of_the_current_folder_is_not_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tool").write_text("#!/bin/sh\n")
    (tmp_path / "tool").chmod(0o755)
    monkeypatch.chdir(tmp_path)
    for path in ("", ".", os.pathsep, str(tmp_path)):
        assert program_on_path("tool", path) == ""
    monkeypatch.chdir("/")
    assert program_on_path("tool", str(tmp_path)) == str(tmp_path / "tool")
