"""The gate as a process: whatever happens to it, its exit code is never a verdict that it did not come to."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import jsonschema
import pytest
from gate_machines import CASES, MACHINES, ROOT, Altered, planted, xid

from torchdoctor.gate import files, supervisor
from torchdoctor.gate.facts import record
from torchdoctor.gate.outcome import to_json, to_prometheus
from torchdoctor.gate.supervisor import Run, Wish, _together
from torchdoctor.probes.machine import Command

SCHEMA = json.loads((ROOT / "torchdoctor/gate/schema/verdict-1.json").read_text(encoding="utf-8"))
VALID = jsonschema.Draft202012Validator(SCHEMA)
HEALTHY = str(MACHINES["hgx-h100x8"])


def gate(*words: str, **options: object) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "torchdoctor", "gate", *words]
    return subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False, **options)  # type: ignore[call-overload, no-any-return]


@pytest.fixture
def broken(tmp_path: Path) -> str:
    """A recording of a node with Xid 79."""
    from dataclasses import replace

    it = Altered()
    kernel = it.ended["gate-kernel-log"]
    lines = tuple(
        {**line, "value": [*line["value"], [5000.0, xid(79)]]} if line.get("name") == "kernel.lines" else line
        for line in kernel.lines
    )
    path = tmp_path / "broken.json"
    path.write_text(record({**it.ended, "gate-kernel-log": replace(kernel, lines=lines)}), encoding="utf-8")
    return str(path)


def test_verdict_file_code_and_reason_agree(tmp_path: Path, broken: str) -> None:
    for machine, code in ((HEALTHY, 0), (broken, 10)):
        file, metrics = tmp_path / "verdict.json", tmp_path / "torchdoctor.prom"
        done = gate("--tier", "passive", "--facts", machine, "-o", str(file), "--prometheus", str(metrics))
        assert done.returncode == code, done.stderr
        verdict = json.loads(file.read_text(encoding="utf-8"))
        VALID.validate(verdict)
        assert verdict["exit_code"] == code
        assert f'verdict="unfit"}} {int(code == 10)}' in metrics.read_text(encoding="utf-8")
        assert sorted(one.name for one in tmp_path.iterdir()) == [
            "broken.json",
            "torchdoctor.prom",
            "verdict.json",
        ]


def test_every_outcome_follows_the_schema() -> None:
    for _, lines, _ in CASES:
        outcome = planted(lines).judge()
        VALID.validate(json.loads(to_json(outcome)))
        assert to_prometheus(outcome).endswith("\n")


def test_forms_of_output(broken: str) -> None:
    assert gate("--tier", "passive", "--facts", broken, "--format", "reason").stdout == (
        "[node_problem] td:xid79 GPU1 0000:43:00 reboot\n"
    )
    jsonschema.validate(
        json.loads(gate("--tier", "passive", "--facts", broken, "--format", "json").stdout), SCHEMA
    )
    text = gate("--tier", "passive", "--facts", broken).stdout
    assert text.startswith("✗ UNFIT")
    assert "Xid (PCI:0000:43:00): 79" in text


def test_lines_for_collectors_of_logs(broken: str) -> None:
    told = gate("--tier", "passive", "--facts", broken, "--format", "jsonl").stdout.splitlines()
    lines = [json.loads(line) for line in told]
    assert lines[-1]["kind"] == "verdict"
    assert lines[-1]["exit_code"] == 10
    assert {line["kind"] for line in lines} >= {"finding", "verdict"}
    assert next(line["tag"] for line in lines if line["kind"] == "finding") == "xid79"
    for line in lines:
        assert line["schema"] == "torchdoctor.gate/1"
        assert line["host"] == lines[0]["host"]
        assert line["time_s"] == lines[0]["time_s"]


def test_a_bundle_gives_the_same_verdict_elsewhere(tmp_path: Path, broken: str) -> None:
    policy = tmp_path / "site.toml"
    policy.write_text("[checks.xid]\nweight = 'warn'\n[expect]\ngpus = 9\n", encoding="utf-8")
    folder = tmp_path / "bundle"
    words = ("--tier", "passive", "--facts", broken, "--policy", str(policy), "--before-job")
    saved = gate(*words, "--save", f"{folder}/")
    assert saved.returncode == 10
    assert sorted(one.name for one in folder.iterdir()) == [
        "call.json", "machine.json", "policy.toml", "verdict.json",
    ]  # fmt: skip
    policy.unlink()
    again = gate("--facts", str(folder), "--format", "json")
    assert again.returncode == 10
    then, now = json.loads((folder / "verdict.json").read_text(encoding="utf-8")), json.loads(again.stdout)
    for key in ("tier", "verdict", "reason", "not_checked", "expected"):
        assert then[key] == now[key] or key == "expected"
    assert [one["tag"] for one in then["findings"]] == [one["tag"] for one in now["findings"]]
    # what is said in the call comes before what was said then
    assert gate("--facts", str(folder), "--gpus", "8").returncode == 0


@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        ("machine.json", None, "holds no machine.json"),
        ("call.json", "{", "call.json: not as gate --save writes it"),
        ("call.json", '{"tier": "fast", "gpus": 1, "before_job": false}', "not as gate --save writes it"),
    ],
)
def test_a_folder_that_is_no_bundle_is_a_mistake(
    tmp_path: Path, file: str, text: str | None, said: str
) -> None:
    folder = tmp_path / "bundle"
    gate("--tier", "passive", "--facts", HEALTHY, "--save", f"{folder}/")
    (folder / file).unlink()
    if text is not None:
        (folder / file).write_text(text, encoding="utf-8")
    done = gate("--facts", str(folder))
    assert done.returncode == 2
    assert said in done.stderr


def test_observe_and_styles(broken: str) -> None:
    assert gate("--tier", "passive", "--facts", broken, "--observe").returncode == 0
    assert gate("--tier", "passive", "--facts", broken, "--exit-style", "slurm").returncode == 0
    assert gate("--tier", "passive", "--facts", broken, "--exit-style", "slurm", "--drain").returncode == 1
    assert gate("--tier", "passive", "--facts", broken, "--exit-style", "nagios").returncode == 2
    words = ("--tier", "passive", "--facts", broken, "--exit-style", "slurm-prolog")
    assert [gate(*words).returncode, gate(*words, "--drain").returncode] == [0, 1]


@pytest.mark.skipif(find_spec("torch") is None, reason="needs torch")
def test_a_node_of_processors_is_looked_at_whole_where_no_gpu_is_expected(tmp_path: Path) -> None:
    """Nothing of it is needed that only a GPU has, and the workers of a DataLoader are tried."""
    file, policy = tmp_path / "verdict.json", tmp_path / "site.toml"
    policy.write_text("[expect]\ngpus = 0\n[thresholds]\nshm_fail_bytes = 0\n", encoding="utf-8")
    env = {**os.environ, "TORCH_EXTENSIONS_DIR": str(tmp_path), "LOCAL_WORLD_SIZE": "4"}
    words = ("--tier", "quick", "--python", sys.executable, "--policy", str(policy), "-o", str(file))
    done = gate(*words, "--save", str(tmp_path / "saved.json"), env=env)
    verdict = json.loads(file.read_text(encoding="utf-8"))
    needed = {one["check"] for one in verdict["not_checked"] if one["required"]}
    assert not needed & {"active", "gemm-exact", "nvml", "gpu-count", "ecc"}, done.stdout
    assert verdict["expected"]["gpus"] == 0
    lines = json.loads((tmp_path / "saved.json").read_text())["programs"]["gate-active"]["lines"]
    assert any(str(line.get("check", "")).startswith("dataloader") for line in lines)


def test_a_look_at_a_healthy_node_imports_no_engine() -> None:
    """It costs a tenth of a second, and is needed where a torch died."""
    code = (
        f"import sys; from torchdoctor.cli.main import main; main(['gate', '--tier', 'passive', '--facts', "
        f"{HEALTHY!r}]); sys.exit('torchdoctor.engine.diagnose' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0


def test_a_fault_of_ours_ends_with_70(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import torchdoctor.gate.passive as p\ndef bad(*a, **k): raise RuntimeError\np.look_at = bad\n",
        encoding="utf-8",
    )
    env = {**os.environ, "PYTHONPATH": f"{tmp_path}:{ROOT}"}
    assert gate("--tier", "passive", "--facts", HEALTHY, env=env).returncode == 70


@pytest.mark.parametrize("module", ["click", "torchdoctor.cli.main", "torchdoctor.gate.supervisor"])
def test_a_broken_installation_ends_with_70(tmp_path: Path, module: str) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        f"import sys\nsys.modules[{module!r}] = None\n", encoding="utf-8"
    )
    env = {**os.environ, "PYTHONPATH": f"{tmp_path}:{ROOT}"}
    assert gate("--tier", "passive", "--facts", HEALTHY, env=env).returncode == 70


def test_a_full_disk_for_the_verdict_ends_with_70() -> None:
    # a file cannot be made there, whoever asks
    done = gate("--tier", "passive", "--facts", HEALTHY, "-o", "/proc/self/verdict.json")
    assert done.returncode == 70
    assert "verdict.json" in done.stderr
    for style, code in (("slurm", 0), ("nagios", 3), ("npd", 2), ("k8s", 70)):
        words = (
            "--tier",
            "passive",
            "--facts",
            HEALTHY,
            "-o",
            "/proc/self/verdict.json",
            "--exit-style",
            style,
        )
        assert gate(*words, *(["--drain"] if style == "slurm" else [])).returncode == code


def slow_python(folder: Path, text: str) -> str:
    path = folder / "python3"
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_stopped_means_a_partial_verdict_and_nothing_left(tmp_path: Path, number: int) -> None:
    python = slow_python(tmp_path, "sleep 300.25 & sleep 300.25")
    file = tmp_path / "verdict.json"
    argv = [sys.executable, "-m", "torchdoctor", "gate", "--tier", "quick", "--gpus", "0", "--python", python]
    with subprocess.Popen([*argv, "-o", str(file)], cwd=ROOT, stdout=subprocess.DEVNULL) as process:
        deadline = time.monotonic() + 20
        while not running("300.25") and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(number)
        assert process.wait(20) == 12
    verdict = json.loads(file.read_text(encoding="utf-8"))
    assert [one["check"] for one in verdict["not_checked"] if one["required"]][-1] == "gate"
    assert not running("300.25")


def running(mark: str) -> bool:
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                if mark.encode() in Path(f"/proc/{name}/cmdline").read_bytes().split(b"\0"):
                    return True
            except OSError:
                continue
    return False


def test_a_killed_gate_is_no_verdict(tmp_path: Path) -> None:
    python = slow_python(tmp_path, "exec sleep 5.5")
    argv = [sys.executable, "-m", "torchdoctor", "gate", "--tier", "quick", "--gpus", "0", "--python", python]
    file = tmp_path / "verdict.json"
    with subprocess.Popen([*argv, "-o", str(file)], cwd=ROOT, stdout=subprocess.DEVNULL) as process:
        time.sleep(0.7)
        process.kill()
        assert process.wait() not in (0, 10)
    assert not file.exists()


def test_a_killed_gate_leaves_no_process_of_the_job(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("import time\ntime.sleep(100)\n", encoding="utf-8")
    env = {**os.environ, "PYTHONPATH": f"{tmp_path}:{ROOT}"}
    argv = [
        sys.executable,
        "-m",
        "torchdoctor",
        "gate",
        "--tier",
        "quick",
        "--gpus",
        "0",
        "--python",
        sys.executable,
    ]
    program = str(ROOT / "torchdoctor" / "gate" / "child" / "environment.py")
    with subprocess.Popen(argv, cwd=ROOT, env=env, stdout=subprocess.DEVNULL) as process:
        assert waited(lambda: running(program))
        time.sleep(0.3)
        process.kill()
        process.wait()
    assert waited(lambda: not running(program))


def waited(condition: Callable[[], bool], limit_s: float = 10.0) -> bool:
    deadline = time.monotonic() + limit_s
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.05)
    return condition()


def test_a_set_that_hangs_is_ended_in_time_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "_RESERVE_S", 0.2)
    run = Run(Wish("quick", gpus=0, limit_s=1.5), time.monotonic(), time.time())
    command = Command("gate-environment", ("/bin/sh", "-c", "sleep 100"), 1.0, reports=True)
    begun = time.monotonic()
    _together(run, (command,))
    assert time.monotonic() - begun < 4
    assert run.facts.ended["gate-environment"].timed_out
    outcome = run.outcome()
    assert "interpreter" in {one.check for one in outcome.untold if one.required}


def test_a_file_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    files.replace_file(str(path), "one")
    with pytest.raises(files.WriteError, match="gone"):
        files.replace_file(str(tmp_path / "gone" / "a.json"), "two")
    assert path.read_text(encoding="utf-8") == "one"


def test_a_hung_disk_does_not_hold_us(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_write", lambda path, text: time.sleep(60))
    begun = time.monotonic()
    with pytest.raises(files.WriteError, match="disk hangs"):
        files.replace_file(str(tmp_path / "a"), "x", 0.3)
    assert time.monotonic() - begun < 2


@pytest.mark.parametrize("ending", ["/", ""])
def test_a_recording_that_cannot_be_written_is_a_mistake_in_the_call(ending: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    done = gate("--tier", "passive", "--facts", HEALTHY, "--save", f"{tmp_path}/file/machine{ending}")
    assert done.returncode == 2
    assert "--save" in done.stderr
    assert "internal error" not in done.stderr


def test_a_recording_of_less_is_no_verdict_of_more(tmp_path: Path) -> None:
    """What was not looked at counts as not told, never as well."""
    done = gate("--tier", "quick", "--gpus", "1", "--facts", HEALTHY, "--format", "json")
    assert done.returncode == 12
    told = {one["check"]: one["reason"] for one in json.loads(done.stdout)["not_checked"] if one["required"]}
    assert told == {
        "interpreter": "the job's environment is not in this recording",
        "active": "no measurement is in this recording",
    }
    assert gate("--tier", "passive", "--facts", HEALTHY, "--save", f"{tmp_path}/kept/").returncode == 0
    done = gate("--facts", f"{tmp_path}/kept", "--tier", "standard")
    assert done.returncode == 2
    assert "--tier standard: the recording holds only what tier passive examines" in done.stderr
