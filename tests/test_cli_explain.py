"""``torchdoctor explain`` from the outside: inputs, formats, exit codes, streams of every kind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from printed import Printed

from torchdoctor.cli import streams
from torchdoctor.cli.main import main

SOURCES = str(Path(__file__).absolute().parent.parent)

RULE = """\
id       = "test-frobnication"
family   = "tensor"
severity = "fatal"
role     = "cause"
title    = "A tensor was frobnicated"
why      = "Frobnication is invented, so that these tests do not depend on any rule of the catalog."

# invented
[[match]]
text = "Frobnication of tensor {number:int} failed"

[[fix]]
do  = "Do not frobnicate."
run = "python train.py --no-frobnication"
"""

FAILED = """\
epoch 1 step 10 loss 2.3
Traceback (most recent call last):
  File "/home/me/project/train.py", line 12, in <module>
    main()
  File "/usr/lib/python3.11/site-packages/torch/nn/modules/module.py", line 1518, in _wrapped_call_impl
    return self._call_impl(*args, **kwargs)
RuntimeError: Frobnication of tensor 7 failed in a way that nobody foresaw
"""

UNKNOWN = """\
Traceback (most recent call last):
  File "/home/me/project/train.py", line 3, in turn
    widgets.turn()
  File "/v/lib/python3.11/site-packages/widgets/core.py", line 9, in turn
    raise BrokenWidgetError("the widget broke")
widgets.BrokenWidgetError: the widget broke
"""

CLEAN = "epoch 1 loss 2.3\nepoch 2 loss 1.1\nTraining finished.\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with a log of each kind and a folder of one rule of our own."""
    (tmp_path / "rules" / "tensor").mkdir(parents=True)
    (tmp_path / "rules" / "tensor" / "test-frobnication.toml").write_text(RULE, encoding="utf-8")
    for name, text in (("failed.log", FAILED), ("unknown.log", UNKNOWN), ("clean.log", CLEAN)):
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES", "TORCHDOCTOR_DEBUG"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def run(*arguments: str, stdin: bytes = b"", **environment: str) -> subprocess.CompletedProcess[bytes]:
    """A process of its own, whose standard streams are pipes."""
    return subprocess.run(
        [sys.executable, "-m", "torchdoctor", *arguments],
        input=stdin,
        capture_output=True,
        env={**os.environ, "PYTHONPATH": SOURCES, **environment},
        check=False,
    )


EXPLAIN = ["explain", "--rules", "rules"]


def explain(*arguments: str) -> int:
    return main([*EXPLAIN, *arguments])


@pytest.mark.usefixtures("folder")
class TestFormats:
    def test_text(self, printed: Printed) -> None:
        out, err = printed.both([*EXPLAIN, "failed.log"])
        assert out.startswith("✗ A tensor was frobnicated\n")
        assert "failed.log:7" in out
        assert "--> /home/me/project/train.py:12" in out
        assert "$ python train.py --no-frobnication" in out
        assert err == ""

    @pytest.mark.parametrize("form", ["json", "jsonl"])
    def test_json_is_one_report_on_one_line(self, form: str, printed: Printed) -> None:
        (line,) = printed([*EXPLAIN, "--format", form, "failed.log"]).splitlines()
        report = json.loads(line)
        assert report["schema"] == "torchdoctor.report/1"
        assert report["source"] == ["failed.log"]
        assert report["diagnoses"][0]["rule"] == "test-frobnication"
        assert report["diagnoses"][0]["evidence"][0]["line"] == 7

    def test_inputs_that_nothing_joins_are_several_incidents(self, printed: Printed) -> None:
        report = json.loads(printed([*EXPLAIN, "--format", "json", "clean.log", "failed.log", "unknown.log"]))
        assert report["source"] == ["failed.log"]
        assert [one["outcome"] for one in report["incidents"]] == ["no-failure", "diagnosed", "unrecognised"]
        assert report["incidents"][1]["diagnoses"] == report["diagnoses"]
        assert report["notes"][0].startswith("3 files, taken as 3 incidents: ")
        out = printed([*EXPLAIN, "--fail-on", "unknown", "failed.log", "clean.log", "unknown.log"], 4)
        assert "\n    unknown.log: a failure that no rule knows, widgets.BrokenWidgetError, line 6\n" in out

    def test_each_takes_the_files_below_a_folder(self, folder: Path, printed: Printed) -> None:
        below = folder / "logs" / "node1"
        below.mkdir(parents=True)
        for name, data in (
            ("z.log", FAILED),
            ("a.txt", CLEAN),
            (".hidden.log", FAILED),
            ("train.py", "x = 1"),
        ):
            (below / name).write_text(data, encoding="utf-8")
        (below / "core.log").write_bytes(bytes(range(256)) * 64)
        (folder / "logs" / "link.log").symlink_to(below / "z.log")
        reports = [
            json.loads(line)
            for line in printed([*EXPLAIN, "--each", "--format", "jsonl", "logs"], 2).splitlines()
        ]
        assert [(*report["source"], report["outcome"]) for report in reports] == [
            ("logs/node1/a.txt", "no-failure"),
            ("logs/node1/core.log", "unreadable"),
            ("logs/node1/z.log", "diagnosed"),
        ]

    def test_runs_of_a_file(self, folder: Path, printed: Printed) -> None:
        second = CLEAN.replace("epoch", "2026-03-09 03:12:00 INFO epoch")
        (folder / "nohup.out").write_text(
            f"$ python t.py\n{FAILED}$ python t.py\n{second}$ python t.py\n{UNKNOWN}"
        )
        report = json.loads(printed([*EXPLAIN, "--format", "json", "nohup.out"]))
        assert report["suspect"]["type"] == "widgets.BrokenWidgetError"
        assert report["runs"][:2] == [
            {"number": 1, "file": "nohup.out", "line": 1, "end_line": 8, "started": None}
            | {"outcome": "diagnosed", "rule": "test-frobnication"},
            {"number": 2, "file": "nohup.out", "line": 9, "end_line": 12, "started": "2026-03-09T03:12:00"}
            | {"outcome": "no-failure", "rule": None},
        ]
        assert report["notes"][:2] == [
            "earlier in this file: run 1 ended by test-frobnication, line 8 (lines 1 to 8, shown by --run 1)",
            "earlier in this file: run of 03:12: no failure in it (lines 9 to 12, shown by --run 2)",
        ]
        first = json.loads(printed([*EXPLAIN, "--format", "json", "--run", "1", "nohup.out"]))
        assert (first["diagnoses"][0]["rule"], first["runs"]) == ("test-frobnication", report["runs"])
        outcomes = [
            json.loads(line)["outcome"]
            for line in printed([*EXPLAIN, "--format", "jsonl", "--run", "all", "nohup.out"]).splitlines()
        ]
        assert outcomes == ["diagnosed", "no-failure", "unrecognised"]
        assert "nohup.out, run 2 of 3, lines 9 to 12\n✓ No failure" in printed(
            [*EXPLAIN, "--run", "all", "nohup.out"]
        )

    def test_many_runs_are_counted_by_their_ends(self, folder: Path, printed: Printed) -> None:
        text = "".join(f"$ python t.py\n{part}" for part in (FAILED, CLEAN, FAILED, FAILED, UNKNOWN))
        (folder / "nohup.out").write_text(text, encoding="utf-8")
        report = json.loads(printed([*EXPLAIN, "--format", "json", "nohup.out"]))
        assert [run["rule"] for run in report["runs"]][:3] == ["test-frobnication", None, "test-frobnication"]
        assert report["notes"][0] == (
            "4 other runs in the input: 3 ended by test-frobnication, 1 without a failure "
            "(--run N shows one, --run all shows all)"
        )

    def test_a_run_that_only_begins_hides_no_failure(self, folder: Path, printed: Printed) -> None:
        begins = "$ python t.py\nloading the data\n"
        (folder / "loop.log").write_text(f"$ python t.py\n{FAILED}{begins}", encoding="utf-8")
        report = json.loads(printed([*EXPLAIN, "--format", "json", "loop.log"]))
        assert report["diagnoses"][0]["rule"] == "test-frobnication"
        assert report["notes"][0] == (
            "later in this file: run 2: no failure in it (lines 9 to 10, shown by --run 2)"
        )
        (folder / "goes.log").write_text(
            f"$ python t.py\n{FAILED}{begins}step 1 loss 0.9\nstep 2 loss 0.8\n", encoding="utf-8"
        )
        assert json.loads(printed([*EXPLAIN, "--format", "json", "goes.log"]))["outcome"] == "no-failure"

    @pytest.mark.parametrize(
        "shown", ["epochs=10, batch=8, lr=0.0001\n", "Training:   0%|    | 0/388 [00:00<?, ?it/s]"]
    )
    def test_settings_and_an_empty_bar_are_no_steps(self, shown: str, folder: Path, printed: Printed) -> None:
        text = f"$ python t.py\n{FAILED}$ python t.py\nloading the data\n{shown}"
        (folder / "loop.log").write_text(text, encoding="utf-8")
        report = json.loads(printed([*EXPLAIN, "--format", "json", "loop.log"]))
        assert report["diagnoses"][0]["rule"] == "test-frobnication"

    @pytest.mark.parametrize(
        ("given", "told"),
        [
            (("--run", "9", "clean.log"), "no run 9 in clean.log: it holds 1 run"),
            (("--run", "0", "clean.log"), "--run 0: give the number of a run"),
            (("--run", "1", "--each", "clean.log"), "choose one"),
            (("--run", "1", "clean.log", "failed.log"), "these 2 files are 2 incidents: name"),
        ],
    )
    def test_runs_that_are_not_there(self, given: tuple[str, ...], told: str, printed: Printed) -> None:
        assert told in printed.errors([*EXPLAIN, *given], 2)

    def test_each_gives_one_line_a_file_in_order(self, printed: Printed) -> None:
        reports = [
            json.loads(line)
            for line in printed(
                [*EXPLAIN, "--each", "--format", "jsonl", "unknown.log", "failed.log", "clean.log"]
            ).splitlines()
        ]
        assert [report["source"] for report in reports] == [["unknown.log"], ["failed.log"], ["clean.log"]]
        assert [report["outcome"] for report in reports] == ["unrecognised", "diagnosed", "no-failure"]

    def test_each_as_json_is_an_array(self, printed: Printed) -> None:
        reports = json.loads(printed([*EXPLAIN, "--each", "--format", "json", "failed.log", "clean.log"]))
        assert [report["outcome"] for report in reports] == ["diagnosed", "no-failure"]

    def test_each_as_text_names_the_files(self, printed: Printed) -> None:
        out = printed([*EXPLAIN, "--each", "failed.log", "clean.log"])
        assert out.startswith("failed.log\n✗ ")
        assert "\n\nclean.log\n✓ No failure found in clean.log\n" in out


@pytest.mark.usefixtures("folder")
class TestExitCodes:
    @pytest.mark.parametrize("name", ["failed.log", "unknown.log", "clean.log"])
    def test_0_whatever_was_found(self, name: str) -> None:
        assert explain(name) == 0

    @pytest.mark.parametrize(("name", "code"), [("failed.log", 0), ("unknown.log", 4), ("clean.log", 0)])
    def test_4_for_an_unknown_failure_when_asked(self, name: str, code: int) -> None:
        assert explain("--fail-on", "unknown", name) == code

    def test_4_when_one_of_several_is_unknown(self) -> None:
        assert explain("--each", "--fail-on", "unknown", "unknown.log", "clean.log") == 4

    @pytest.mark.parametrize("form", ["text", "json", "jsonl"])
    @pytest.mark.parametrize("each", [(), ("--each",)])
    def test_2_for_an_unreadable_input_and_the_others_are_done(
        self, form: str, each: tuple[str, ...], printed: Printed
    ) -> None:
        out, err = printed.both([*EXPLAIN, *each, "--format", form, "clean.log", "gone.log", "failed.log"], 2)
        assert "frobnicat" in out
        assert err == "torchdoctor: gone.log: no such file\n"

    def test_an_unreadable_file_has_its_line_with_each(self, printed: Printed) -> None:
        reports = [
            json.loads(line)
            for line in printed(
                [*EXPLAIN, "--each", "--format", "jsonl", "failed.log", "gone.log", "clean.log"], 2
            ).splitlines()
        ]
        assert [report["outcome"] for report in reports] == ["diagnosed", "unreadable", "no-failure"]
        assert reports[1]["source"] == ["gone.log"]
        assert reports[1]["notes"] == ["gone.log: no such file"]

    def test_2_goes_before_4(self) -> None:
        assert explain("--fail-on", "unknown", "gone.log", "unknown.log") == 2

    def test_2_when_nothing_can_be_read(self, printed: Printed) -> None:
        out, err = printed.both([*EXPLAIN, "gone.log", "lost.log"], 2)
        assert out == ""
        assert err.splitlines() == [
            "torchdoctor: gone.log: no such file",
            "torchdoctor: lost.log: no such file",
        ]

    def test_json_says_that_nothing_could_be_read(self, printed: Printed) -> None:
        assert json.loads(printed([*EXPLAIN, "--format", "json", "gone.log"], 2))["outcome"] == "unreadable"

    @pytest.mark.parametrize(
        "arguments",
        [
            ("--format", "xml", "failed.log"),
            ("--fail-on", "fatal", "failed.log"),
            ("--no-such-option", "failed.log"),
            ("--facts",),
        ],
    )
    def test_2_for_a_mistake_in_the_call(self, arguments: tuple[str, ...], printed: Printed) -> None:
        assert "Error: " in printed.errors([*EXPLAIN, *arguments], 2)

    def test_70_for_a_fault_of_ours(self, monkeypatch: pytest.MonkeyPatch, printed: Printed) -> None:
        def broken(*_: object) -> None:
            raise KeyError("planted")

        monkeypatch.setattr("torchdoctor.engine.incident.diagnose", broken)
        err = printed.errors([*EXPLAIN, "failed.log"], 70)
        assert err.startswith("torchdoctor: internal error: KeyError: 'planted' at test_cli_explain.py:")
        assert "Please report it" in err
        assert "Traceback" not in err
        monkeypatch.setenv("TORCHDOCTOR_DEBUG", "1")
        assert "Traceback (most recent call last)" in printed.errors([*EXPLAIN, "failed.log"], 70)

    def test_130_when_interrupted(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def interrupted(*_: object) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr("torchdoctor.engine.incident.diagnose", interrupted)
        assert explain("failed.log") == 130


@pytest.mark.usefixtures("folder")
class TestBadInput:
    def test_malformed_facts(self, folder: Path, printed: Printed) -> None:
        (folder / "facts.json").write_text("{not json", encoding="utf-8")
        assert "facts.json: not JSON" in printed.errors([*EXPLAIN, "--facts", "facts.json", "failed.log"], 2)

    def test_malformed_rule(self, folder: Path, printed: Printed) -> None:
        bad = folder / "bad" / "tensor"
        bad.mkdir(parents=True)
        (bad / "test-frobnication.toml").write_text(RULE.replace("severity", "severty"), encoding="utf-8")
        err = printed.errors(["explain", "--rules", "bad", "failed.log"], 2)
        assert "tensor/test-frobnication.toml" in err
        assert 'did you mean "severity"' in err

    def test_folder_without_logs(self, folder: Path, printed: Printed) -> None:
        (folder / "empty").mkdir()
        out, err = printed.both([*EXPLAIN, "empty", "failed.log"], 2)
        assert "frobnicated" in out
        assert err.startswith("torchdoctor: empty: ")

    @pytest.mark.parametrize("each", [(), ("--each",)])
    def test_binary_junk(self, each: tuple[str, ...], folder: Path, printed: Printed) -> None:
        (folder / "junk.bin").write_bytes(bytes(range(256)) * 64)
        out, err = printed.both([*EXPLAIN, *each, "junk.bin", "failed.log"], 2)
        assert "frobnicated" in out
        assert err.startswith("torchdoctor: junk.bin: ")

    def test_empty_file(self, folder: Path, printed: Printed) -> None:
        (folder / "empty.log").write_bytes(b"")
        report = json.loads(printed([*EXPLAIN, "--format", "json", "empty.log"]))
        assert report["outcome"] == "no-failure"
        (note,) = report["notes"]
        assert note.startswith("The input holds no text. ")
        assert note.endswith("> train.log 2>&1")
        (folder / "full.log").write_bytes(b"epoch 1\n")
        note, _ = json.loads(printed([*EXPLAIN, "--format", "json", "empty.log", "full.log"]))["notes"]
        assert note == "2 files, taken as one incident because only one of them is the log of a run"

    def test_damaged_archive_without_a_line(self, folder: Path, printed: Printed) -> None:
        import gzip

        (folder / "cut.gz").write_bytes(gzip.compress(b"x")[:12])
        assert "cut.gz: reading stopped: damaged archive" in " ".join(printed([*EXPLAIN, "cut.gz"]).split())

    @pytest.mark.parametrize("address", ["https://host/train.log", "s3://bucket/train.log"])
    def test_an_address_is_not_fetched(self, address: str, printed: Printed) -> None:
        assert f"{address}: no such file; nothing is fetched" in printed.errors([*EXPLAIN, address], 2)

    def test_line_of_200_kb(self, folder: Path, printed: Printed) -> None:
        (folder / "long.log").write_text("x" * 200_000 + "\n" + FAILED, encoding="utf-8")
        out = printed([*EXPLAIN, "long.log"])
        assert "frobnicated" in out
        assert max(map(len, out.splitlines())) <= streams.PIPE_WIDTH

    @pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "latin-1"])
    def test_encodings(self, encoding: str, folder: Path, printed: Printed) -> None:
        (folder / "other.log").write_text("é\n" + FAILED, encoding=encoding)
        assert (
            json.loads(printed([*EXPLAIN, "--format", "json", "other.log"]))["diagnoses"][0]["rule"]
            == "test-frobnication"
        )

    def test_escape_sequences_in_names_do_not_reach_the_terminal(self, printed: Printed) -> None:
        assert (
            printed.errors([*EXPLAIN, "gone\x1b[31m\u202e.log"], 2) == "torchdoctor: gone.log: no such file\n"
        )

    def test_escape_sequences_in_a_log_do_not_reach_the_terminal(
        self, folder: Path, printed: Printed
    ) -> None:
        dirty = FAILED.replace("nobody", "\x1b]0;owned\x07\x9b2Jnobody\u202e")
        (folder / "dirty.log").write_text(dirty, encoding="utf-8")
        out = printed([*EXPLAIN, "dirty.log"])
        assert "frobnicated" in out
        assert out.replace("\n", "").isprintable()


@pytest.mark.usefixtures("folder")
class TestStreams:
    @pytest.mark.parametrize("arguments", [(), ("-",)])
    def test_standard_input(self, arguments: tuple[str, ...]) -> None:
        done = run("explain", "--rules", "rules", *arguments, stdin=FAILED.encode())
        assert done.returncode == 0
        assert done.stdout.decode().startswith("✗ A tensor was frobnicated\n")
        assert done.stderr == b""

    def test_a_terminal_as_standard_input_is_a_usage_error(self) -> None:
        pty = pytest.importorskip("pty")
        ours, theirs = pty.openpty()
        try:
            done = subprocess.run(
                [sys.executable, "-m", "torchdoctor", "explain"],
                stdin=theirs,
                capture_output=True,
                env={**os.environ, "PYTHONPATH": SOURCES},
                check=False,
                timeout=60,
            )
        finally:
            os.close(ours)
            os.close(theirs)
        assert done.returncode == 2
        assert b"python train.py 2>&1 | torchdoctor explain" in done.stderr

    @pytest.mark.skipif(os.name != "posix", reason="closes a descriptor in the shell")
    @pytest.mark.parametrize("arguments", ["", "-"])
    def test_closed_input(self, arguments: str) -> None:
        done = subprocess.run(
            ["sh", "-c", f'"{sys.executable}" -m torchdoctor explain {arguments} <&-'],
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": SOURCES},
            check=False,
        )
        assert done.returncode == 2
        assert b"Error: " in done.stderr

    def test_nothing_is_lost_in_a_pipe(self) -> None:
        done = run("explain", "--each", "--format", "jsonl", *["failed.log"] * 300)
        assert len(done.stdout) > 200_000
        assert len([json.loads(line) for line in done.stdout.splitlines()]) == 300

    def test_a_terminal_gets_colour(self) -> None:
        assert b"\x1b[1;31m" in self._on_a_terminal(TERM="xterm-256color")

    @pytest.mark.parametrize("environment", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
    def test_no_colour_where_it_is_not_wanted(self, environment: dict[str, str]) -> None:
        assert b"\x1b" not in self._on_a_terminal(**{"TERM": "xterm", **environment})

    def _on_a_terminal(self, **environment: str) -> bytes:
        pty = pytest.importorskip("pty")
        ours, theirs = pty.openpty()
        process = subprocess.Popen(
            [sys.executable, "-m", "torchdoctor", "explain", "--rules", "rules", "failed.log"],
            stdin=subprocess.DEVNULL,
            stdout=theirs,
            env={**os.environ, "PYTHONPATH": SOURCES, **environment},
        )
        os.close(theirs)
        output = b""
        while True:
            try:
                chunk = os.read(ours, 65536)
            except OSError:  # Linux: the other end is closed
                break
            if not chunk:
                break
            output += chunk
        os.close(ours)
        assert process.wait(timeout=60) == 0
        assert b"frobnicated" in output
        return output

    def test_no_colour_in_a_pipe_unless_forced(self) -> None:
        assert b"\x1b" not in run("explain", "--rules", "rules", "failed.log").stdout
        assert b"\x1b[" in run("explain", "--rules", "rules", "failed.log", FORCE_COLOR="1").stdout

    @pytest.mark.parametrize("columns", [20, 40, 80, 120])
    def test_width(self, columns: int) -> None:
        done = run("explain", "--rules", "rules", "failed.log", COLUMNS=str(columns))
        lines = done.stdout.decode().splitlines()
        assert max(len(line) for line in lines if not line.lstrip().startswith("$")) <= columns

    @pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252"])
    def test_marks_in_poor_encodings(self, encoding: str) -> None:
        done = run("explain", "--rules", "rules", "failed.log", PYTHONIOENCODING=encoding)
        assert done.returncode == 0
        assert done.stdout.decode(encoding).startswith("x A tensor was frobnicated\n")


def imported(arguments: list[str], environment: dict[str, str]) -> set[str]:
    """Names of all modules that a process of this interpreter imports."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", *arguments], capture_output=True, env=environment, check=True
    )
    lines = done.stderr.decode().splitlines()
    return {line.rpartition("|")[2].strip() for line in lines if line.startswith("import time:")}


class TestStartUp:
    @pytest.mark.parametrize(
        ("form", "heavy"),
        [
            (
                "json",
                {"rich", "tomllib", "tomli", "subprocess", "importlib.metadata", "packaging", "asyncio"},
            ),
            ("text", {"tomllib", "tomli", "subprocess", "importlib.metadata", "packaging", "asyncio"}),
        ],
    )
    def test_what_explain_does_not_import(self, folder: Path, form: str, heavy: set[str]) -> None:
        environment = {**os.environ, "PYTHONPATH": SOURCES, "XDG_CACHE_HOME": str(folder / "cache")}
        # the first run compiles the catalog, which needs TOML
        imported(["-m", "torchdoctor", "explain", "clean.log"], environment)
        modules = imported(
            ["-m", "torchdoctor", "explain", "--format", form, "failed.log"], environment
        ) - imported(["-c", "import click"], environment)
        assert "torchdoctor.engine.diagnose" in modules
        assert not modules & (heavy | {"torch", "pynvml", "psutil", "numpy"})


WARNED = """\
/v/lib/python3.11/site-packages/torch/optim/lr_scheduler.py:139: UserWarning: Detected call of \
`lr_scheduler.step()` before `optimizer.step()`. In PyTorch 1.1.0 and later, call them in the opposite order
epoch 1 step 10 loss 2.3
Traceback (most recent call last):
  File "/home/me/project/train.py", line 12, in <module>
    save(modell)
NameError: name 'modell' is not defined. Did you mean: 'model'?
"""


def test_a_warning_is_no_other_cause_of_what_an_exception_ended(folder: Path) -> None:
    (folder / "warned.log").write_text(WARNED)
    text = run("explain", "--offline", "warned.log", COLUMNS="120").stdout.decode()
    assert "Write model in place of modell" in text
    assert "Other possible causes" not in text
    assert "scheduler-order, possible" in text.partition("Warnings to look at\n")[2]
    assert "warned.log:1  UserWarning: Detected call of `lr_scheduler.step()`" in text


def test_a_traceback_without_its_end_asks_for_the_rest(folder: Path) -> None:
    (folder / "cut.log").write_text(UNKNOWN.partition("    raise ")[0] + "    spin()\n")
    text = " ".join(run("explain", "--offline", "cut.log", COLUMNS="120").stdout.decode().split())
    assert 'File "/v/lib/python3.11/site-packages/widgets/core.py", line 9, in turn' in text
    assert "this one is cut off before the last line of the traceback" in text
    assert "To search for" not in text


def test_a_traceback_without_its_end_is_told_by_the_line_that_announces_it(folder: Path) -> None:
    stack = UNKNOWN.partition("    raise ")[0] + "    spin()\n"
    (folder / "said.log").write_text(f"Error while turning: the wheel has 9 spokes\n{stack}")
    text = " ".join(run("explain", "--offline", "said.log", COLUMNS="120").stdout.decode().split())
    assert "What looks most like the cause Error while turning: the wheel has 9 spokes" in text
    assert "cut off" not in text
