"""deploy/kubernetes/job.yaml: its command runs as it stands, and ends as a pod needs it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
WRAPPER = "/opt/torchdoctor/bin/torchdoctor-gate"
MANIFEST = (ROOT / "deploy" / "kubernetes" / "job.yaml").read_text(encoding="utf-8")


def command() -> str:
    """The shell line of the init container."""
    found = re.search(r"args:\n\s+- >-\n((?:\s+.*\n)+?)\s+env:", MANIFEST)
    assert found is not None
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
