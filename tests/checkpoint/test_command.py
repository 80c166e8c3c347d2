"""``torchdoctor checkpoint``: what it prints, its JSON and its exit codes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from checkpoint import made
from checkpoint.broken import good, lfs_pointer
from click.testing import CliRunner

from torchdoctor.cli.checkpoint import command


def call(*args: str) -> tuple[int, str]:
    done = CliRunner().invoke(command, ["--torch", "2.13", *args], standalone_mode=False)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.return_value, done.output


def test_a_good_file() -> None:
    code, printed = call(str(made.folder() / "2.13/state.pt"))
    assert code == 0
    assert printed.startswith("✓ Nothing wrong found in ")
    assert "torch zip archive" in printed
    assert "10 tensors" in printed


def test_info_is_no_finding() -> None:
    code, printed = call(str(made.folder() / "2.13/wrapped.pt"))
    assert code == 0
    assert "checkpoint-module-prefix" in printed


def test_a_finding_and_its_exit_codes(tmp_path: Path) -> None:
    path = tmp_path / "model.pt"
    path.write_bytes(lfs_pointer())
    assert call(str(path))[0] == 1
    assert call("--fail-on", "never", str(path))[0] == 0
    assert "git lfs pull" in call(str(path))[1]


def test_warnings_count_where_they_are_asked_for() -> None:
    path = str(made.folder() / "2.6/class.pt")
    report = ["--torch", "2.5", "--fail-on", "warn", path]
    assert call(*report)[0] == 0
    assert call("--torch", "2.6", path)[0] == 1


def test_what_was_not_read_is_three_with_strict(tmp_path: Path) -> None:
    path = tmp_path / "model.pkl"
    path.write_bytes(b"\x80\x02]" + b"Na" * 1_600_000 + b".")
    assert call(str(path))[0] == 0
    code, printed = call("--strict", str(path))
    assert code == 3
    assert "Could not tell" in printed


def test_json_is_a_report() -> None:
    code, printed = call("--format", "json", str(made.folder() / "2.13/nan.pt"), "--values")
    report = json.loads(printed)
    assert code == 1
    assert report["schema"] == "torchdoctor.report/1"
    assert [one["rule"] for one in report["diagnoses"]] == ["checkpoint-not-finite"]
    assert report["diagnoses"][0]["severity"] == "fatal"
    facts = {one["name"]: one["value"] for one in report["facts"]}
    assert facts["ckpt.tensors"] == [
        ["weight", "float32", [3], "cpu", 12],
        ["bias", "float32", [2], "cpu", 8],
    ]


def test_the_schema_holds() -> None:
    import jsonschema

    schema = json.loads(
        (Path(__file__).parents[2] / "torchdoctor/schema/report-1.json").read_text(encoding="utf-8")
    )
    for name in ("2.13/trainer.pt", "1.4/whole.pt", "2.13/dcp", "2.6/kinds.safetensors"):
        jsonschema.validate(json.loads(call("--format", "json", str(made.folder() / name))[1]), schema)


def test_all_tensors_are_shown_when_asked_for() -> None:
    assert "embed.weight  float32  (10, 4)  cpu  160" in call("-v", str(made.folder() / "2.13/state.pt"))[1]


def test_mistakes_in_the_call(tmp_path: Path) -> None:
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}

    def run(*args: str) -> subprocess.CompletedProcess[str]:
        line = [sys.executable, "-m", "torchdoctor", "checkpoint", *args]
        return subprocess.run(line, capture_output=True, text=True, env=env, timeout=60)

    for args in ([str(tmp_path / "none.pt")], ["/dev/null"], [str(tmp_path)], ["--torch", "x", "y"], []):
        done = run(*args)
        assert done.returncode == 2, (args, done.stderr)
        assert "Traceback" not in done.stderr


def test_torch_is_not_imported(tmp_path: Path) -> None:
    code = (
        "import sys\nfrom torchdoctor.checkpoint.report import examine\nfrom "
        "torchdoctor.checkpoint.target import Target\n"
        f"examine([{str(made.folder() / '2.13/whole.pt')!r}], Target(), values=True)\n"
        "assert not {'torch', 'numpy', 'pickle', 'zipfile'} & set(sys.modules), sorted(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_names_in_a_file_reach_no_terminal_raw(tmp_path: Path) -> None:
    from checkpoint.broken import tensors

    path = tmp_path / "model.safetensors"
    path.write_bytes(tensors({"module.\x1b[31mred\x1b]0;title\x07": [2], "module.b": [2]}))
    assert "\x1b" not in call(str(path))[1]
    assert "\x1b" not in call("-v", str(path))[1]


@pytest.mark.parametrize("name", ["state.pt", "legacy.pt"])
def test_facts_for_an_answer_about_a_log(name: str, tmp_path: Path) -> None:
    from torchdoctor.checkpoint import facts

    found = {one.name: one.value for one in facts(str(made.folder() / "2.13" / name))}
    assert ("head.bias", "float32", (3,), "cpu", 12) in found["ckpt.tensors"]  # type: ignore[operator]
    assert facts(str(tmp_path)) == ()
    (tmp_path / "cut.pt").write_bytes(good()[:900])
    assert {one.name: one.value for one in facts(str(tmp_path / "cut.pt"))}["ckpt.findings"] == (
        "checkpoint-truncated",
    )
