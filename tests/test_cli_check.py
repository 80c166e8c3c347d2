"""The commands `check` and `facts`: exit codes, output that can be read, and mistakes in the call."""

from __future__ import annotations

import json
import sys
import time
import venv
from dataclasses import replace
from pathlib import Path

import pytest
from printed import Printed

from torchdoctor.cli import verdicts
from torchdoctor.cli.main import main
from torchdoctor.model import CheckResult, Fact, NotChecked, Outcome, Report, Verdict

MACHINES = Path(__file__).parents[1] / "fixtures" / "machines"
LAPTOP = str(MACHINES / "laptop-cpu.json")
SCHEMA = Path(__file__).parents[1] / "torchdoctor" / "schema" / "report-1.json"


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with a torch whose import fails for want of a library."""
    folder = tmp_path_factory.mktemp("planted") / "env"
    venv.create(folder, with_pip=False, symlinks=True)
    site = folder / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"
    (site / "torch").mkdir()
    (site / "torch" / "version.py").write_text("__version__ = '2.5.1+cu124'\ncuda = '12.4'\n")
    (site / "torch" / "__init__.py").write_text(
        "raise OSError('libcudart.so.12: cannot open shared object file: No such file or directory')"
    )
    return folder


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "400")  # no path is broken up
    for name in ("PYTHONPATH", "LD_LIBRARY_PATH", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)


def faulty(folder: Path, **facts: object) -> str:
    """The laptop with these facts instead of its own readings."""
    data = json.loads(Path(LAPTOP).read_text(encoding="utf-8"))
    del data["reads"], data["programs"]
    data["facts"].update({name.replace("__", "."): value for name, value in facts.items()})
    path = folder / "machine.json"
    path.write_text(json.dumps(data), encoding="utf-8")
    return str(path)


def report(capsys: pytest.CaptureFixture[str]) -> dict[str, object]:
    out = capsys.readouterr().out
    data = json.loads(out)
    try:
        import jsonschema
    except ImportError:
        return data
    jsonschema.validate(data, json.loads(SCHEMA.read_text(encoding="utf-8")))
    return data


def test_a_healthy_recorded_machine(printed: Printed) -> None:
    text = printed(["check", "--facts", LAPTOP])
    assert text.startswith("✓ ")
    assert "torch 2.13.0+cpu" in text
    assert "limits.nofile = 1024" in text  # a note


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--facts", LAPTOP, "--format", "json"]) == 0
    data = report(capsys)
    assert data["outcome"] == "no-failure"
    assert {"torch-import", "torch-missing"} <= {check["id"] for check in data["checks"]}  # type: ignore[attr-defined]


def bare(folder: Path) -> tuple[Path, Path]:
    """An environment without any package, and its site-packages."""
    venv.create(folder, with_pip=False, symlinks=True)
    return folder, folder / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"


@pytest.mark.parametrize("metadata", [False, True], ids=["no-metadata", "metadata"])
@pytest.mark.parametrize("editable", [False, True], ids=["copied", "editable"])
def test_a_torch_without_its_version_file_is_told_with_place_and_error(
    editable: bool, metadata: bool, tmp_path: Path, printed: Printed
) -> None:
    python, site = bare(tmp_path / "env")
    home = tmp_path / "clone" if editable else site
    (home / "torch").mkdir(parents=True)
    (home / "torch" / "__init__.py").write_text("from torch._C import *\n")
    if editable:  # as setuptools does it: a finder on no folder of the path
        (site / "_finder.py").write_text(
            "import sys, importlib.util as util\n"
            "class Finder:\n    @classmethod\n    def find_spec(cls, name, path=None, target=None):\n"
            "        if name == 'torch':\n            return util.spec_from_file_location(name, "
            f"{str(home / 'torch' / '__init__.py')!r}, "
            f"submodule_search_locations=[{str(home / 'torch')!r}])\n"
            "sys.meta_path.append(Finder)\n"
        )
        (site / "_finder.pth").write_text("import _finder\n")
    if metadata:
        (site / "torch-2.9.0.dist-info").mkdir()
        (site / "torch-2.9.0.dist-info" / "METADATA").write_text("Name: torch\nVersion: 2.9.0\n")
    text = " ".join(printed(["check", "--python", str(python)], 1).split())
    assert "[torch-import]" in text
    assert f"torch.path: {home / 'torch'}" in text
    assert "ModuleNotFoundError: No module named 'torch._C'" in text
    assert ("the metadata of 2.9.0" if metadata else "no package metadata") in text
    assert "[torch-missing]" not in text
    assert "[torch-shadowed]" not in text


@pytest.mark.parametrize("form", ["file", "folder"])
def test_something_else_that_is_called_torch(form: str, tmp_path: Path, printed: Printed) -> None:
    python, site = bare(tmp_path / "env")
    if form == "file":
        (site / "torch.py").write_text("answer = 42\n")
    else:
        (site / "torch" / "lib").mkdir(parents=True)
    text = printed(["check", "--python", str(python)], 1)
    assert text.startswith("✗ 1 problem,")
    assert "What is imported as torch is not torch  [torch-import]" in text
    assert "has no attribute '__version__'" in " ".join(text.split())


def test_the_metadata_of_a_torch_that_is_gone(tmp_path: Path, printed: Printed) -> None:
    python, site = bare(tmp_path / "env")
    (site / "torch-2.9.0.dist-info").mkdir()
    (site / "torch-2.9.0.dist-info" / "METADATA").write_text("Name: torch\nVersion: 2.9.0\n")
    text = " ".join(printed(["check", "--python", str(python)], 1).split())
    assert "[torch-missing]" in text
    assert "metadata of torch 2.9.0, and no torch on sys.path" in text
    install = (
        f"Do: Install torch into the interpreter that runs the program. ({python}/bin/python -m pip install "
    )
    assert install in text or sys.platform != "linux"  # and nothing of sudo, Jetson or Windows


def test_what_hides_the_real_torch_is_told_with_its_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, printed: Printed
) -> None:
    python, site = bare(tmp_path / "env")
    for home in (site, tmp_path / "clone"):
        (home / "torch").mkdir(parents=True)
        (home / "torch" / "__init__.py").write_text("from torch._C import *\n")
    (site / "torch" / "version.py").write_text("__version__ = '2.5.1'\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "clone"))
    text = " ".join(printed(["check", "--python", str(python)], 1).split())
    assert text.startswith("✗ 1 problem,")
    assert "[torch-shadowed]" in text
    assert "No module named 'torch._C'" in text
    assert "{match." not in text  # a fix that needs a message has nothing to say here


def test_this_machine_with_a_broken_torch(planted: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--python", str(planted), "--format", "json"]) == 1
    data = report(capsys)
    assert data["outcome"] == "diagnosed"
    failed = [check for check in data["checks"] if check["verdict"] == "fail"]  # type: ignore[attr-defined]
    assert [check["id"] for check in failed] == ["cuda-library-missing"]
    assert any("libcudart.so.12" in item["text"] for item in failed[0]["evidence"])


def test_text_of_a_finding(planted: Path, printed: Printed) -> None:
    text = printed(["check", "--python", str(planted)], 1)
    assert text.startswith("✗ 1 problem")
    assert "[cuda-library-missing]" in text
    assert "libcudart.so.12: cannot open shared object file" in " ".join(text.split())
    assert "Do: " in text


def test_a_missing_cudnn_is_told_once(planted: Path, capsys: pytest.CaptureFixture[str]) -> None:
    init = next(planted.rglob("torch/__init__.py"))
    kept = init.read_text()
    try:
        init.write_text(kept.replace("libcudart.so.12", "libcudnn.so.9"))
        assert main(["check", "--python", str(planted)]) == 1
    finally:
        init.write_text(kept)
    text = capsys.readouterr().out
    assert "[cudnn-library-missing]" in text
    assert "[cuda-library-missing]" not in text


def test_an_import_that_no_rule_explains(planted: Path, printed: Printed) -> None:
    init = next(planted.rglob("torch/__init__.py"))
    kept = init.read_text()
    try:
        init.write_text("import os; os.abort()")
        text = printed(["check", "--python", str(planted)], 1)
        assert "[torch-import]" in text
        assert "SIGABRT" in text
        # one that is not done yet has not failed
        init.write_text("import time; time.sleep(60)")
        text = printed(["check", "--python", str(planted), "--time-limit", "1.5"])
        assert "torch/__init__.py:1 in <module>; a slow disk, a lock" in " ".join(text.split())
        assert "--time-limit SECONDS" in text
    finally:
        init.write_text(kept)


def test_a_program_that_is_no_python(printed: Printed) -> None:
    assert "[python-start]" in printed(["check", "--python", "/bin/true"], 1)


@pytest.mark.parametrize(
    ("facts", "options", "code"),
    [
        ({"torch__installed": False}, [], 1),
        ({"torch__installed": False}, ["--fail-on", "never"], 0),
        ({"shm__free_bytes": 64 << 20}, [], 0),  # a warning
        ({"shm__free_bytes": 64 << 20}, ["--fail-on", "warn"], 1),
        ({"limits__nofile": 256}, ["--fail-on", "warn"], 0),  # a note
        ({"shm__free_bytes": {"state": "unknown", "reason": "not-permitted"}}, [], 0),
        ({"shm__free_bytes": {"state": "unknown", "reason": "not-permitted"}}, ["--strict"], 3),
        ({"torch__installed": False, "shm__free_bytes": {"state": "unknown"}}, ["--strict"], 1),
    ],
)
def test_exit_codes(
    facts: dict[str, object],
    options: list[str],
    code: int,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["check", "--facts", faulty(tmp_path, **facts), *options]) == code
    capsys.readouterr()


@pytest.mark.parametrize(
    ("facts", "rule", "verdict"),
    [
        ({"env__leaked_debug": ["CUDA_LAUNCH_BLOCKING=1: waits"]}, "debug-variables-set", "warn"),
        ({}, "debug-variables-set", "pass"),
        (
            {"torch__requirements_ok": False, "torch__requirements_other": ["triton 3.1.0, wants ==3.2.0"]},
            "torch-requirements-unmet",
            "warn",
        ),
        ({"torch__requirements_ok": True}, "torch-requirements-unmet", "pass"),
        (
            {"driver__minor_compatible": True, "torch__needs_ptx_jit": True},
            "ptx-unsupported-toolchain",
            "fail",
        ),
        (
            {"driver__minor_compatible": True, "torch__needs_ptx_jit": False},
            "ptx-unsupported-toolchain",
            "pass",
        ),
        (
            {"driver__minor_compatible": False, "torch__needs_ptx_jit": True},
            "ptx-unsupported-toolchain",
            None,
        ),
        # a toolkit of another CUDA stops only builds of extensions: a note
        (
            {"toolkit__version": "11.8", "torch__cuda": "12.4", "toolkit__matches_torch": False},
            "extension-cuda-mismatch",
            None,
        ),
    ],
)
def test_which_facts_fail(
    facts: dict[str, object], rule: str, verdict: str | None, tmp_path: Path, printed: Printed
) -> None:
    facts = {"torch__installed": True, **facts}
    told = json.loads(printed(["check", "--facts", faulty(tmp_path, **facts), "--format", "json"], None))
    assert {check["id"]: check["verdict"] for check in told["checks"]}.get(rule) == verdict
    if rule == "extension-cuda-mismatch":
        assert any(rule in note for note in told["notes"])


@pytest.mark.parametrize(
    ("args", "complaint"),
    [
        (["check", "--python", "/no/such/python"], "no such file"),
        (["check", "--facts", "/no/such/file"], "No such file"),
        (["check", "--facts", LAPTOP, "--python", "python3"], "--facts names a recorded machine"),
        (["check", "--time-limit", "0"], "0"),
        (["facts", "--facts", LAPTOP, "--save", "x"], "--facts names a recorded machine"),
        (["facts", "--save", "/no/such/folder/x.json", "--python", "/bin/true"], "cannot be written"),
        (["facts", "diff", LAPTOP], "BAD"),
        (["facts", "diff", LAPTOP, "/no/such/file"], "No such file"),
    ],
)
def test_mistakes_in_the_call(args: list[str], complaint: str, printed: Printed) -> None:
    assert complaint in printed.errors(args, 2)


def test_no_escape_of_a_torch_reaches_the_terminal(planted: Path, printed: Printed) -> None:
    init = next(planted.rglob("torch/__init__.py"))
    kept = init.read_text()
    try:
        init.write_text("raise RuntimeError('\\x1b]0;owned\\x07\\x1b[2J [bold]x[/bold]')")
        for args in (["check"], ["check", "-v"], ["facts"]):
            assert "\x1b" not in printed([*args, "--python", str(planted)], None)
    finally:
        init.write_text(kept)


def test_color_only_when_wanted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, printed: Printed) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[32m✓\x1b[0m" in printed(["check", "--facts", LAPTOP], None)
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in printed(["check", "--facts", LAPTOP], None)


def test_facts_saved_shown_and_compared(
    planted: Path, tmp_path: Path, printed: Printed, capsys: pytest.CaptureFixture[str]
) -> None:
    saved = str(tmp_path / "machine.json")
    assert main(["facts", "--python", str(planted), "--save", saved]) == 0
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "saved in" in captured.err
    assert "[cuda-library-missing]" in printed(["check", "--facts", saved], 1)
    assert "2.5.1+cu124" in printed(["facts", "--facts", saved])
    assert main(["facts", "--facts", saved, "--format", "json"]) == 0
    shown = report(capsys)
    assert {"name", "state", "value", "reason", "source", "detail"} == set(shown["facts"][0])  # type: ignore[index]
    # what a report says of a machine can be looked at again
    (tmp_path / "report.json").write_text(json.dumps(shown))
    assert "No meaningful difference" in printed(["facts", "diff", saved, str(tmp_path / "report.json")])


def test_difference(printed: Printed) -> None:
    h100 = str(MACHINES / "h100.json")
    first = printed(["facts", "diff", LAPTOP, h100]).splitlines()
    assert any(line.startswith("driver.version") for line in first[:3])
    assert len(printed(["facts", "diff", LAPTOP, h100, "--all"]).splitlines()) > len(first)
    data = json.loads(printed(["facts", "diff", LAPTOP, h100, "--format", "json"]))
    assert data["changes"][0]["name"] == "torch.cuda_available"
    assert set(data["changes"][0]) == {"name", "good", "bad", "noise"}


def test_a_fault_of_ours_is_told(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from torchdoctor.probes import limits
    from torchdoctor.probes.probe import Cost, Probe

    def broken(context: object) -> list[object]:
        raise ZeroDivisionError("ours")

    monkeypatch.setattr(limits, "PROBES", (Probe(tuple(limits._LIMITS), Cost.FREE, broken),))  # type: ignore[arg-type]
    assert main(["check", "--python", "/bin/true"]) == 70
    captured = capsys.readouterr()
    assert "ZeroDivisionError: ours" in captured.err
    assert captured.out  # the other checks were made


def test_help(capsys: pytest.CaptureFixture[str]) -> None:
    for args in (["check", "--help"], ["facts", "--help"], ["facts", "diff", "--help"]):
        assert main(args) == 0
        assert "Exit codes" in capsys.readouterr().out or args[1] == "diff"


def test_a_fault_of_ours_gives_70_in_every_command_of_verdicts(capsys: pytest.CaptureFixture[str]) -> None:
    report = Report(outcome=Outcome.NO_FAILURE, faults=("Traceback …\nKeyError: 'ours'",))
    assert verdicts.exit_code(report, "fail", False) == 70
    assert "KeyError: 'ours'" in capsys.readouterr().err


def test_narrow_terminals(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """No line is wider, not even titles; one reason for many checks is told once."""
    monkeypatch.setenv("COLUMNS", "44")
    report = Report(
        Outcome.DIAGNOSED,
        checks=(
            CheckResult("a-check-of-mine", Verdict.FAIL, "A title that is longer than the terminal is wide"),
            *(CheckResult(f"good-{number}", Verdict.PASS, "good") for number in range(20)),
        ),
        not_checked=(
            NotChecked("one", "could not tell: torch cannot be imported"),
            NotChecked("two", "could not tell: torch cannot be imported"),
            NotChecked("three", "something else"),
        ),
    )
    verdicts.show(
        report, "text", lambda: "torch 2.13.0, Python 3.14; /opt/environments/of/mine/python", False
    )
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 44
    assert lines[:2] == ["✗ 1 problem, 20 checks passed, 3 could not", "  be determined"]
    assert lines[5:7] == ["✗ A title that is longer than the terminal", "  is wide  [a-check-of-mine]"]
    assert "    one, two: torch cannot be imported" in lines


@pytest.mark.parametrize("way", ["shares", "no shares", "a start that hangs"])
def test_the_time_limit_is_that_of_the_whole_run(
    way: str,
    planted: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """NVML, nvidia-smi, the import and two file systems hang: what was found by then is told."""
    from torchdoctor.probes import disk, extension, nvml
    from torchdoctor.probes.machine import Command
    from torchdoctor.probes.probe import Cost, Limits, Probe

    def dead(context: object) -> list[Fact]:
        time.sleep(60)
        return []

    for module in (disk, extension):
        names = tuple(name for probe in module.PROBES for name in probe.names)
        monkeypatch.setattr(module, "PROBES", (Probe(names, Cost.CHEAP, dead),))
    monkeypatch.setattr(nvml, "command", lambda context: Command("nvml", ("sleep", "60"), 60.0, reports=True))
    (tmp_path / "nvidia-smi").write_text("#!/bin/sh\nsleep 60\n")
    (tmp_path / "nvidia-smi").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("CUDA_LAUNCH_BLOCKING", "1")
    if way == "a start that hangs":
        monkeypatch.setattr(nvml, "command", dead)
        monkeypatch.setattr(nvml, "PROBES", (replace(nvml.PROBES[0], command=dead),))
    if way == "no shares":  # the limit of all holds without them
        monkeypatch.setattr(Limits, "within", staticmethod(lambda total_s, _: Limits(total_s=total_s)))
    init = next(planted.rglob("torch/__init__.py"))
    kept = init.read_text()
    begun = time.monotonic()
    try:
        init.write_text("import time; time.sleep(60)")
        code = main(
            ["check", "--python", str(planted), "--time-limit", "3", "--fail-on", "warn", "--format", "json"]
        )
    finally:
        init.write_text(kept)
    assert time.monotonic() - begun < 4.0
    data = report(capsys)
    checks = {check["id"]: check["verdict"] for check in data["checks"]}  # type: ignore[attr-defined]
    if way != "no shares":
        assert (code, checks["debug-variables-set"]) == (1, "warn")
    assert checks["torch-import"] == "unknown"
    untold = {item["id"] for item in data["not_checked"]}  # type: ignore[attr-defined]
    assert {"torch-import", "disk-nearly-full", "extension-stale-lock", "gpu-throttled"} <= untold


def test_a_line_of_progress_from_the_third_second_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from torchdoctor.cli.progress import Line

    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    line = Line()
    line.put_late("waiting for NVML")
    assert capsys.readouterr().err == ""
    line._begun -= 3
    line.put_late("waiting for NVML")
    line.clear()
    assert capsys.readouterr().err == "\r3 s  waiting for NVML\r" + " " * 21 + "\r"


HOSTILE = "`<b>\x1b[31m|\x00‮ @x"


def test_documents(tmp_path: Path, printed: Printed) -> None:
    """Findings by group, what passed folded away; what the machine says is data."""
    machine = faulty(tmp_path, torch__installed=True, env__leaked_debug=[HOSTILE], shm__free_bytes=1)
    text = printed(["check", "--facts", machine, "--format", "markdown"])
    assert text.startswith("## ! 2 warnings, ")
    assert "### Environment\n\n**! Variables meant for debugging" in text
    assert "### Data\n\n**! Shared memory" in text
    assert "checks passed</summary>" in text
    page = printed(["check", "--facts", machine, "--format", "html"])
    assert "<h2>Environment</h2>" in page
    assert "<script" not in page
    assert "<b>" not in page
    assert "&lt;b&gt;" in page
    for told in (text, page):
        assert "\x1b" not in told
        assert "‮" not in told


def test_collect_env_is_a_superset_of_torchs_own_report_in_its_order(printed: Printed) -> None:
    collect_env = pytest.importorskip("torch.utils.collect_env")
    keys = [
        line.partition(":")[0]
        for line in collect_env.env_info_fmt.splitlines()
        if ":" in line and not line.startswith("{")
    ]
    assert len(keys) > 20
    lines = printed(["check", "--python", sys.executable, "--format", "collect-env"]).splitlines()
    at = [next(n for n, line in enumerate(lines) if line.startswith(f"{key}:")) for key in keys]
    assert at == sorted(at)
    assert f"PyTorch version: {collect_env.torch.__version__}" in lines
    assert any(line.startswith("[pip3] torch==") for line in lines)
    assert f"python.executable: {sys.executable}" in lines


def test_everything_in_reading_order_and_times(printed: Printed) -> None:
    text = printed(["check", "--facts", LAPTOP, "-vv"])
    assert "\nChecked, nothing found: Environment\n" in text
    assert "✓ debug-variables-set: env.leaked_debug: absent\n    looked for: Variables meant for" in text
    assert "\nTimes:\n" in text
    assert "Times:" not in printed(["check", "--facts", LAPTOP, "-v"])


def test_plan(printed: Printed) -> None:
    assert printed(["check", "--plan", "--facts", str(MACHINES / "h100.json")]).splitlines()[-1] == (
        "python -m pip install torch==2.14.1 --index-url https://download.pytorch.org/whl/cu130"
    )


def test_what_is_pasted_into_an_issue_names_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, printed: Printed
) -> None:
    monkeypatch.setenv("USER", "adalovelace")
    facts = {"torch__installed": True, "env__leaked_debug": ["CUDA_X=1: /home/adalovelace/x"]}
    machine = faulty(tmp_path, **facts)
    for form in ("markdown", "github"):
        text = printed(["check", "--facts", machine, "--format", form])
        assert "CUDA_X=1" in text
        assert "adalovelace" not in text
    monkeypatch.setenv("PYTHONPATH", "/home/adalovelace/lib")
    text = printed(["check", "--python", sys.executable, "--format", "collect-env"])
    assert "env.PYTHONPATH: /home/" in text
    assert "adalovelace" not in text
