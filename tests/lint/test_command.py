"""``torchdoctor lint``: exit codes, formats, settings, exceptions to rules, and mistakes of a call."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import jsonschema
import pytest
from printed import Printed

from torchdoctor.cli.main import main

ROOT = Path(__file__).resolve().parent.parent.parent
SCHEMA = json.loads((ROOT / "torchdoctor" / "schema" / "report-1.json").read_text(encoding="utf-8"))
BAD = """import torch
opt = torch.optim.SGD(net.parameters(), 0.1)
for x in loader:
    loss = net(x).sum()
    loss.backward()
    opt.step()
"""
ADVICE = "import torch\nx = torch.Tensor([1])\n"
GOOD = "import torch\nx = torch.zeros(3)\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def put(folder: Path, **files: str) -> None:
    for name, text in files.items():
        path = folder / (name.replace("__", "/") + ".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def report(capsys: pytest.CaptureFixture[str], *args: str, code: int) -> dict[str, list[dict[str, object]]]:
    assert main(["lint", "--format", "json", *args]) == code
    data: dict[str, list[dict[str, object]]] = json.loads(capsys.readouterr().out)
    jsonschema.validate(data, SCHEMA)
    return data


def rules(data: dict[str, list[dict[str, object]]]) -> list[object]:
    return [one["rule"] for one in data["diagnoses"]]


@pytest.mark.parametrize(
    ("text", "options", "code"),
    [
        (BAD, [], 1),
        (BAD, ["--fail-on", "never"], 0),
        (BAD, ["--ignore", "zero-grad-missing"], 0),
        (BAD, ["--select", "scaler-order,graph-cut"], 0),
        (GOOD, [], 0),
        (ADVICE, [], 0),
        (ADVICE, ["--advice"], 0),
        (ADVICE, ["--advice", "--fail-on", "warn"], 1),
        (ADVICE, ["--select", "legacy-tensor-constructor", "--fail-on", "warn"], 1),
        ("print 'two'\n", [], 0),
        ("print 'two'\n", ["--fail-on", "warn"], 1),
        ("", [], 0),
    ],
)
def test_exit_codes(text: str, options: list[str], code: int, folder: Path, printed: Printed) -> None:
    put(folder, a=text)
    assert printed.errors(["lint", "a.py", *options], code) == ""


def test_a_finding_in_json(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(folder, a=BAD)
    data = report(capsys, "a.py", code=1)
    (one,) = data["diagnoses"]
    assert data["outcome"] == "diagnosed"  # type: ignore[comparison-overlap]
    assert data["checks"] == []
    assert (one["rule"], one["family"], one["severity"]) == ("zero-grad-missing", "lint", "fatal")
    assert one["standing"] == "confirmed"
    assert one["frame"] == {"file": "a.py", "line": 6, "function": None, "code": "    opt.step()"}
    assert one["fixes"]


def test_advice_is_a_possible_warning(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(folder, a=ADVICE)
    (one,) = report(capsys, "--advice", "a.py", code=0)["diagnoses"]
    assert (one["severity"], one["standing"]) == ("warning", "possible")


def test_text_has_the_line_with_a_caret(folder: Path, printed: Printed) -> None:
    put(folder, a=BAD.replace("net(x).sum()", "net(x, 'ä').sum()"))
    lines = printed(["lint", "a.py"], 1).splitlines()
    assert lines[0] == "✗ 1 problem in 1 file; --fix repairs 1"
    at = lines.index("     6 | opt.step()")
    assert lines[at - 1].startswith("✗ a.py:6:5: ")
    assert lines[at - 1].endswith("[zero-grad-missing]")
    assert lines[at + 1] == "       | ^^^^^^^^^^"
    assert any(line.startswith("    Do: Call optimizer.zero_grad()") for line in lines)


@pytest.mark.parametrize("width", [40, 60, 200])
def test_no_line_is_wider_than_the_terminal(
    width: int, folder: Path, monkeypatch: pytest.MonkeyPatch, printed: Printed
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    put(
        folder, a=BAD.replace("opt.step()", "foo(1234567890, 1234567890, 1234567890, 1234567890); opt.step()")
    )
    lines = printed(["lint", "a.py"], None).splitlines()
    assert max(map(len, lines)) <= width
    assert "^" in "".join(lines)


def test_no_escape_of_a_source_reaches_the_terminal(folder: Path, printed: Printed) -> None:
    put(folder, a=BAD.replace("opt.step()", "opt.step()  # \x1b]0;owned\x07\x1b[2J [bold]"))
    for form in ("text", "json", "sarif", "github"):
        assert "\x1b" not in printed(["lint", "a.py", "--format", form], None)


def test_sarif(folder: Path, printed: Printed) -> None:
    put(folder, **{"a b": BAD, "c": "x = (\n"})
    data = json.loads(printed(["lint", ".", "--format", "sarif"], 1))
    assert data["version"] == "2.1.0"
    (run,) = data["runs"]
    ids = [one["id"] for one in run["tool"]["driver"]["rules"]]
    assert ids == ["zero-grad-missing", "syntax-error"]
    first, second = run["results"]
    assert (first["ruleId"], first["ruleIndex"], first["level"]) == ("zero-grad-missing", 0, "error")
    assert second["level"] == "warning"
    place = first["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": "a%20b.py"}
    assert {key: place["region"][key] for key in ("startLine", "startColumn", "endLine", "endColumn")} == {
        "startLine": 6, "startColumn": 5, "endLine": 6, "endColumn": 15,
    }  # fmt: skip


def test_github(folder: Path, printed: Printed) -> None:
    put(folder, **{"a,b": BAD})
    (line,) = printed(["lint", ".", "--format", "github"], 1).splitlines()
    assert line.startswith(
        "::error file=a%2Cb.py,line=6,col=5,endLine=6,endColumn=15,title=torchdoctor zero-"
    )


def test_statistics_and_list(folder: Path, printed: Printed) -> None:
    put(folder, a=BAD, b=BAD, c="x = (\n")
    lines = printed(["lint", "--statistics", "."], 1).splitlines()
    assert lines[0] == "✗ 2 problems, 1 warning in 3 files; --fix repairs 2"
    assert lines[1].split()[:2] == ["2", "zero-grad-missing"]
    assert lines[2].split()[:2] == ["1", "syntax-error"]
    text = printed(["lint", "--list"])
    assert "zero-grad-missing" in text
    assert "horovod-no-broadcast" in text


def test_standard_input(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Stdin:
        buffer = io.BytesIO(BAD.encode())

    monkeypatch.setattr(sys, "stdin", Stdin)
    (one,) = report(capsys, "-", "--stdin-filename", "pkg/train.py", code=1)["diagnoses"]
    frame = one["frame"]
    assert isinstance(frame, dict)
    assert frame["file"] == "pkg/train.py"


@pytest.mark.parametrize(
    ("comment", "hidden"),
    [
        ("# torchdoctor: ignore[zero-grad-missing]", True),
        ("#torchdoctor:ignore[graph-cut, zero-grad-missing]", True),
        ("# noqa  # torchdoctor: ignore[zero-grad-missing]", True),
        ("# torchdoctor: ignore[graph-cut]", False),
        ("; x = '# torchdoctor: ignore[zero-grad-missing]'", False),
    ],
)
def test_a_comment_hides_one(
    comment: str, hidden: bool, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    put(folder, a=BAD.replace("opt.step()", f"opt.step() {comment}"))
    assert rules(report(capsys, "a.py", code=0 if hidden else 1)) == [] if hidden else ["zero-grad-missing"]


def test_a_comment_for_the_file(folder: Path, printed: Printed, capsys: pytest.CaptureFixture[str]) -> None:
    put(folder, a="# torchdoctor: ignore-file[zero-grad-missing]\n" + BAD)
    assert main(["lint", "a.py"]) == 0
    put(folder, a="\n" * 12 + BAD + "# torchdoctor: ignore-file[zero-grad-missing]\n")
    capsys.readouterr()
    assert "first 10 lines" in printed.errors(["lint", "a.py"], 2)


def test_a_comment_that_hides_nothing(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(folder, a="import torch\nx = 1  # torchdoctor: ignore[graph-cut]\n")
    assert report(capsys, "a.py", code=0)["notes"] == []
    assert report(capsys, "--advice", "a.py", code=0)["notes"] == ["a.py:2: ignore[graph-cut] hides nothing"]


def test_no_tick_where_nothing_was_read(folder: Path, printed: Printed) -> None:
    assert printed(["lint", "no/such.py"], 2) == ""


@pytest.mark.parametrize(
    ("args", "text", "settings", "says"),
    [
        (["--select", "zero-grad-mising,zero-grad-missing"], BAD, "", 'did you mean "zero-grad-missing"'),
        (["--ignore", "scaler-ordr"], BAD, "", 'did you mean "scaler-order"'),
        ([], BAD + "# torchdoctor: ignore[graph-cat]\n", "", 'did you mean "graph-cut"'),
        ([], BAD, 'ignore = ["graf-cut"]', 'did you mean "graph-cut"'),
        ([], BAD, 'ignor = ["graph-cut"]', 'did you mean "ignore"'),
        ([], BAD, "exclude = 3", "list of strings"),
        ([], BAD, "this is no TOML", "cannot be used"),
        (["no/such.py"], BAD, "", "no such file or folder"),
        ([], BAD + "# torchdoctor: ignore\n", "", "names the checks"),
    ],
)
def test_mistakes_are_told_and_the_rest_is_done(
    args: list[str], text: str, settings: str, says: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    put(folder, a=text)
    (folder / "pyproject.toml").write_text(f"[tool.torchdoctor.lint]\n{settings}\n")
    assert main(["lint", "a.py", *args]) == 2
    captured = capsys.readouterr()
    assert says in captured.err
    assert "[zero-grad-missing]" in captured.out


@pytest.mark.parametrize(
    "args", [[], ["--fix", "--diff", "a.py"], ["-", "a.py"], ["-", "--fix"], ["--format", "xml", "a.py"]]
)
def test_calls_that_make_no_sense(args: list[str], folder: Path, printed: Printed) -> None:
    assert printed(["lint", *args], 2) == ""


def test_settings_of_the_project(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(folder, a=BAD, examples__b=BAD, old__c=BAD, sub__d=ADVICE)
    (folder / "pyproject.toml").write_text(
        '[tool.torchdoctor.lint]\nselect = ["zero-grad-missing", "legacy-tensor-constructor"]\n'
        'exclude = ["old/"]\n'
        '[tool.torchdoctor.lint.per-file-ignores]\n"examples/*.py" = ["zero-grad-missing"]\n'
    )
    found = [(one["rule"], one["frame"]["file"]) for one in report(capsys, ".", code=1)["diagnoses"]]  # type: ignore[index]
    assert found == [("zero-grad-missing", "a.py"), ("legacy-tensor-constructor", "sub/d.py")]
    # the nearest file counts, for one that is named too
    assert rules(report(capsys, "examples/b.py", code=0)) == []
    assert rules(report(capsys, "--select", "zero-grad-missing", "sub", code=0)) == []


def test_what_is_skipped_below_a_folder(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / ".git").mkdir()
    (folder / ".gitignore").write_text("/gen/\n*_pb2.py\n!keep_pb2.py\n")
    put(
        folder,
        a=BAD,
        x_pb2=BAD,
        keep_pb2=BAD,
        gen__b=BAD,
        build__c=BAD,
        lib__site_packages__d=BAD,
        e__gen__f=BAD,
        deep__g=BAD,
        deep__h=BAD,
    )
    for name in (".venv", "node_modules", "env"):
        (folder / name).mkdir()
        (folder / name / "i.py").write_text(BAD)
    (folder / "env" / "pyvenv.cfg").write_text("")
    (folder / "lib" / "site_packages").rename(folder / "lib" / "site-packages")
    (folder / "deep" / ".gitignore").write_text("h.py\n")
    data = report(capsys, ".", code=1)
    files = [one["frame"]["file"] for one in data["diagnoses"]]  # type: ignore[index]
    assert files == ["a.py", "deep/g.py", "e/gen/f.py", "keep_pb2.py"]
    data = report(capsys, "--exclude", "deep", "--exclude", "*_pb2.py", ".", code=1)
    assert [one["frame"]["file"] for one in data["diagnoses"]] == ["a.py", "e/gen/f.py"]  # type: ignore[index]
    # what is named itself is looked at
    assert len(rules(report(capsys, "build", ".venv/i.py", code=1))) == 2


def test_a_file_is_looked_at_once(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(folder, a=BAD)
    assert len(rules(report(capsys, "a.py", ".", "./a.py", code=1))) == 1


def test_rules_know_the_checks(printed: Printed) -> None:
    assert "scaler-order" in printed(["rules", "list", "--family", "lint"])
    listed = {one["id"]: one for one in json.loads(printed(["rules", "list", "--format", "json"]))}
    assert listed["scaler-order"]["severity"] == "fatal"
    assert "nccl-timeout" in listed
    assert "amp-scaler-order" in printed(["rules", "show", "scaler-order"])
    assert (
        json.loads(printed(["rules", "show", "scaler-order", "--format", "json"]))["cause"]
        == "amp-scaler-order"
    )


def test_other_commands_do_not_load_it() -> None:
    import subprocess

    code = (
        "import sys; from torchdoctor.cli.main import main; main(['--version']); main(['check', '--help']); "
        "sys.exit(any(name.startswith('torchdoctor.lint') for name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, check=False)
    assert done.returncode == 0
