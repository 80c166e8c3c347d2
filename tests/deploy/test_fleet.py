"""The recipes outside of Slurm run as they stand: fleets, Kubernetes, node problem detector, Prolog."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from case_files import case_text
from planted_modules import loaded

from torchdoctor.fleet.batch import report_lines

ROOT = Path(__file__).resolve().parents[2]

RULE = "cuda-assert-label-range"


@pytest.fixture
def logs(tmp_path: Path) -> list[str]:
    for number in range(5):
        text = case_text(f"{RULE}/h200x2-label-rank0") if number % 2 else "epoch 1\nTraining finished.\n"
        (tmp_path / f"job {number}.log").write_text(text)
    return [str(tmp_path / f"job {number}.log") for number in range(5)]


def outcomes(lines: list[str]) -> list[tuple[str, str]]:
    reports = [json.loads(line) for line in lines]
    assert all(report["schema"] == "torchdoctor.report/1" for report in reports)
    return [(report["source"][0], report["outcome"]) for report in reports]


def test_paths_and_contents_give_the_same_answers(logs: list[str]) -> None:
    lines = report_lines([*logs, "nowhere.log"])
    assert outcomes(lines)[1::4] == [(logs[1], "diagnosed"), ("nowhere.log", "unreadable")]
    contents = [Path(path).read_bytes() for path in logs]
    assert report_lines(logs, contents) == lines[:5]
    with pytest.raises(ValueError, match="zip"):
        report_lines(logs, contents[:1])


def recipe(name: str) -> Any:
    return loaded(ROOT / "deploy" / "fleet" / f"{name}.py")


def test_the_functions_of_ray_and_spark(logs: list[str]) -> None:
    expected = report_lines(logs)
    assert recipe("ray_data").explain({"path": logs}) == {"report": expected}
    assert list(recipe("spark").explain([{"path": logs[:2]}, {"path": logs[2:]}])) == [
        {"report": expected[:2]}, {"report": expected[2:]},
    ]  # fmt: skip


@pytest.mark.skipif(os.name == "nt", reason="needs bash")
def test_each_task_of_an_array_takes_its_share(logs: list[str], tmp_path: Path) -> None:
    (tmp_path / "logs.txt").write_text("".join(f"{path}\n" for path in [*logs, "nowhere.log"]))
    program = tmp_path / "torchdoctor"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m torchdoctor "$@"\n')
    program.chmod(0o755)
    found: list[str] = []
    for task in (3, 5):
        subprocess.run(
            [ROOT / "deploy" / "fleet" / "slurm_array.sh", "logs.txt", "."], cwd=tmp_path, check=True,
            stderr=subprocess.DEVNULL,
            env={
                **os.environ, "PYTHONPATH": str(ROOT), "TORCHDOCTOR": str(program),
                "SLURM_CPUS_PER_TASK": "2",
                "SLURM_ARRAY_TASK_ID": str(task), "SLURM_ARRAY_TASK_COUNT": "2", "SLURM_ARRAY_TASK_MIN": "3",
                "SLURM_ARRAY_TASK_STEP": "2",
            },
        )  # fmt: skip
        found += (tmp_path / f"{(task - 3) // 2}.jsonl").read_text().splitlines()
    assert sorted(outcomes(found)) == sorted(outcomes(report_lines([*logs, "nowhere.log"])))


# deploy/kubernetes/job.yaml: its command runs as it stands, and ends as a pod needs it

WRAPPER = "/opt/torchdoctor/bin/torchdoctor-gate"

MANIFEST = (ROOT / "deploy" / "kubernetes" / "job.yaml").read_text(encoding="utf-8")


def command() -> str:
    """The shell line of the init container."""
    found = re.search(r"args:\n\s+- >-\n((?:\s+.*\n)+?)\s+env:", MANIFEST)
    return " ".join(line.strip() for line in found[1].splitlines())


@pytest.mark.parametrize(
    ("recording", "options", "code"), [("hgx-h100x8", "", 0), ("hgx-h100x8", "--gpus 16", 1)]
)
def test_the_init_container_ends_0_for_a_fit_node_and_1_for_another(
    recording: str, options: str, code: int, tmp_path: Path
) -> None:
    line = command()
    program = tmp_path / "torchdoctor"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m torchdoctor "$@"\n')
    program.chmod(0o755)
    line = line.replace(WRAPPER, str(ROOT / "deploy" / "torchdoctor-gate"))
    line = line.replace("/verdict/", f"{tmp_path}/").replace(
        "/dev/termination-log", str(tmp_path / "last-words")
    )
    # a recording stands in for the node's GPUs; it holds the passive set
    replayed = f"--tier passive {options} --facts tests/gate/machines/{recording}.json"
    line = line.replace("--tier quick", replayed)
    ran = subprocess.run(
        ["/bin/sh", "-c", line],
        cwd=ROOT,
        env={**os.environ, "NODE_NAME": "gpu-7", "TORCHDOCTOR": str(program)},
        timeout=60,
        check=False,
    )
    assert ran.returncode == code
    assert (tmp_path / "gpu-7.json").exists()
    words = (tmp_path / "last-words").read_text()
    assert len(words) <= 4096  # what Kubernetes keeps of them
    assert words.startswith("td:fit" if code == 0 else ("[node_problem]", "td:"))


def test_the_manifest_follows_the_schemas_of_kubernetes() -> None:
    validate = pytest.importorskip("kubernetes_validate", reason="pip install kubernetes-validate pyyaml")
    yaml = pytest.importorskip("yaml")
    for document in yaml.safe_load_all(MANIFEST):
        validate.validate(document, "1.32", strict=True)


def test_the_parts_that_the_page_speaks_of_are_there() -> None:
    """By hand what a schema cannot know: names that must agree, and the message where it is looked for."""
    lines = MANIFEST.splitlines()
    mounted = set(re.findall(r"\{ name: (\w+), mountPath", MANIFEST))
    volumes = {match[1] for line in lines if (match := re.match(r"        - name: (\w+)$", line))}
    assert mounted <= volumes
    assert {"verdict", "shm"} <= mounted
    assert "/dev/termination-log" in command()
    assert "terminationMessagePolicy: FallbackToLogsOnError" in MANIFEST
    assert MANIFEST.count("nvidia.com/gpu: 8") == 2  # the gate looks at the GPUs that the job gets
    assert "fieldPath: spec.nodeName" in MANIFEST


@pytest.mark.parametrize("answer", ["exit 1", "kill -9 $$", "exit 70", "exit 127", "exit 2"])
def test_a_gate_that_does_not_come_to_a_verdict_starts_no_training(answer: str, tmp_path: Path) -> None:
    program = tmp_path / "torchdoctor"
    program.write_text(f"#!/bin/sh\n{answer}\n")
    program.chmod(0o755)
    line = command().replace(WRAPPER, str(ROOT / "deploy" / "torchdoctor-gate"))
    line = line.replace("/dev/termination-log", str(tmp_path / "last-words"))
    environ = {**os.environ, "TORCHDOCTOR": str(program)}
    assert subprocess.run(["/bin/sh", "-c", line], env=environ, timeout=30, check=False).returncode == 1


# deploy/node-problem-detector/torchdoctor.json: its command runs, and its codes are the detector's

CONFIG = json.loads(
    (ROOT / "deploy" / "node-problem-detector" / "torchdoctor.json").read_text(encoding="utf-8")
)


def test_it_has_what_a_custom_plugin_needs() -> None:
    """Keys and meanings of the detector's docs/custom_plugin_monitor.md."""
    assert CONFIG["plugin"] == "custom"
    assert CONFIG["pluginConfig"]["max_output_length"] >= 160  # else it cuts our reason
    (condition,) = CONFIG["conditions"]
    (rule,) = CONFIG["rules"]
    assert rule["type"] == "permanent"
    assert rule["condition"] == condition["type"]
    assert int(rule["timeout"][:-1]) <= int(CONFIG["pluginConfig"]["timeout"][:-1])
    assert int(rule["timeout"][:-1]) > 10  # the hard limit of the passive set
    assert rule["path"].startswith("/")


@pytest.mark.parametrize(("options", "code"), [([], 0), (["--gpus", "16"], 1), (["--facts", "/nowhere"], 2)])
def test_its_command_ends_as_the_detector_reads_it(options: list[str], code: int, tmp_path: Path) -> None:
    """0 is no problem, 1 a problem, everything else unknown."""
    recording = [] if "--facts" in options else ["--facts", "tests/gate/machines/hgx-h100x8.json"]
    (rule,) = CONFIG["rules"]
    program = tmp_path / "torchdoctor"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m torchdoctor "$@"\n')
    program.chmod(0o755)
    argv = [
        str(ROOT / "deploy" / os.path.basename(rule["path"])),
        *rule["args"],
        *recording,
        *options,
    ]
    environ = {**os.environ, "TORCHDOCTOR": str(program)}
    ran = subprocess.run(
        argv,
        cwd=ROOT,
        env=environ,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == code, ran.stderr
    if code < 2:
        assert len(ran.stdout.splitlines()) == 1
        assert len(ran.stdout) <= 161


# What the Prolog looks for in a verdict file is in the file of an unfit node; Slurm itself is not needed

MACHINE = ROOT / "tests" / "gate" / "machines" / "hgx-h100x8.json"


def test_the_file_of_an_unfit_node_has_what_the_prolog_looks_for(tmp_path: Path) -> None:
    prolog = (ROOT / "deploy" / "slurm" / "prolog.sh").read_text()
    wanted = re.findall(r"grep -q '([^']+)' \"\$verdict\"", prolog)
    assert len(wanted) == 1
    verdict = tmp_path / "verdict.json"
    gate = [sys.executable, "-m", "torchdoctor", "gate", "--tier", "passive", "-o", str(verdict)]
    ran = subprocess.run(
        [*gate, "--gpus", "9", "--facts", str(MACHINE)],
        cwd=ROOT,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 10
    assert wanted[0] in verdict.read_text()
