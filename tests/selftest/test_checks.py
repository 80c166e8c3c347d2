"""Each check: a healthy run passes, a spoilt one fails, and the words say what was wrong."""

from __future__ import annotations

import ast
import json
import signal
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from printed import Printed

from torchdoctor.model import Blame, Verdict
from torchdoctor.selftest import runner, standalone
from torchdoctor.selftest.registry import CHECKS, find

from .conftest import Try, needs_torch

ON_CPU = [check.name for check in CHECKS if check.place.value in ("device", "host") or check.name == "p2p"]

# check, fault, a case that must fail
SPOILT = [
    ("lstsq-rank", "one-element", "tall float32"),
    ("lstsq-rank", "nan", "batched complex128"),
    ("gemm-exact", "one-element", "fp32, n = 512"),
    ("gemm-exact", "tile", "int8, n = 512"),
    ("bit-equal", "one-element", "attention"),
    ("bit-equal", "nan", "convolution"),
    ("bit-equal-hot", "one-element", "sort, hot"),
    ("bit-equal-hot", "tile", "matrix product, hot"),
    ("conv", "one-element", "conv2d dilated float32"),
    ("conv", "nan", "conv transposed bfloat16"),
    ("attention", "tile", "attention causal math float32"),
    ("fft", "one-element", "rfft 1009 float32"),
    ("linalg", "one-element", "cholesky float32"),
    ("nan", "nan", "transformer, finite"),
    ("nan", "one-element", "transformer, 5 steps"),
    ("autograd", "one-element", "gradients float32"),
    ("amp", "one-element", "GradScaler"),
    ("amp", "nan", "autocast bfloat16, result"),
    ("rng", "one-element", "random, same seed"),
    ("graphs", "one-element", "replayed inference"),
    ("graphs", "nan", "weights after 6 replayed steps"),
    ("compile", "one-element", "compiled gather"),
    ("extension", "one-element", "C++, built here"),
    ("extension", "silent", "C++, lock held"),
    ("memory", "one-element", "patterns"),
    ("p2p", "one-element", "bytes, host to host"),
    ("dataloader", "one-element", "dataloader, fork"),
    ("dataloader", "worker-killed", "dataloader, fork"),
    ("fork-spawn", "one-element", "process, fork"),
    ("gloo", "one-element", "gloo all_reduce"),
    ("gloo", "rank-dies", "gloo, 2 ranks"),
    ("device-assert", "silent", "gather"),
    ("device-assert", "one-element", "new process"),
]


@pytest.mark.parametrize("name", ON_CPU)
def test_a_healthy_device_passes(attempt: Try, name: str) -> None:
    judged = attempt(name)
    if name == "jitter" and judged.result.verdict is Verdict.SKIP:
        pytest.skip(judged.result.reason or "")
    assert judged.result.verdict is Verdict.PASS, judged.result
    assert judged.not_checked == ()


@pytest.mark.parametrize(("name", "fault", "case"), SPOILT)
def test_a_spoilt_result_fails(attempt: Try, name: str, fault: str, case: str) -> None:
    judged = attempt(name, fault)
    assert judged.result.verdict is Verdict.FAIL, judged.result
    assert case in [one.name for one in judged.cases if one.verdict == "fail"]
    assert judged.result.blame in (None, Blame.ENVIRONMENT)  # a CPU is never called a broken node
    assert judged.result.action == "repeat"
    assert judged.result.title != find(name).title  # type: ignore[union-attr]


def test_scattered_times_only_warn_and_not_on_a_busy_processor(attempt: Try) -> None:
    judged = attempt("jitter", "stall")
    if judged.result.verdict is Verdict.SKIP:
        assert "the processor is busy: a load of" in str(judged.result.reason)
        return
    assert (judged.result.verdict, judged.result.blame) == (Verdict.WARN, None)
    assert judged.result.title == "The times of one kernel scatter"
    assert [case.verdict for case in judged.cases if case.name == "slowest 25 % of launches"] == ["warn"]


# Checks that have no meaning on a CPU: what makes them fail is shown with invented measurements, there
JUDGED_ELSEWHERE = {
    "h2d": "test_siblings.test_every_rate_passes_warns_fails_and_can_be_unreadable",
    "d2h": "test_siblings.test_every_rate_passes_warns_fails_and_can_be_unreadable",
    "hbm": "test_siblings.test_every_rate_passes_warns_fails_and_can_be_unreadable",
    "gemm-rate": "test_siblings.test_every_rate_passes_warns_fails_and_can_be_unreadable",
    "nccl": "test_siblings.test_collectives_of_gpus_fail_and_pass",
}


def test_every_check_has_a_fault_that_it_finds() -> None:
    """What none can read, for all of them: test_endings.test_what_no_check_can_read_is_unknown."""
    assert {name for name, _, _ in SPOILT} | {"jitter"} == set(ON_CPU)
    assert {check.name for check in CHECKS} == set(ON_CPU) | set(JUDGED_ELSEWHERE)


def test_a_rank_deficient_problem_is_told_and_never_a_failure(attempt: Try) -> None:
    judged = attempt("lstsq-rank")
    notes = {case.name: case for case in judged.cases if case.verdict == "note"}
    assert len(notes) == 16
    wide = notes["gels, wide, two equal rows, float64"]
    assert "where the smallest solution has at most" in wide.measured
    assert wide.value is not None
    assert wide.value > 1e6
    assert judged.notes == (
        "lstsq-rank@cpu: without full rank gels, the only driver on CUDA, has no defined answer: not broken "
        "hardware (torchdoctor rules show lstsq-rank-deficient)",
    )


def test_the_causes_of_a_device_assert_are_named(attempt: Try) -> None:
    judged = attempt("device-assert")
    named = {case.name: case.measured for case in judged.cases if case.name.endswith("cause named")}
    assert named == {
        "label, cause named": "cuda-assert-label-range",
        "index, cause named": "cuda-assert-index-range",
        "gather, cause named": "cuda-assert-index-range",
        "embedding, cause named": "cuda-assert-index-range",
    }


def test_the_place_of_a_wrong_tile_is_told(attempt: Try) -> None:
    judged = attempt("gemm-exact", "tile")
    (tile,) = (case for case in judged.cases if case.name == "fp32, n = 512")
    assert tile.measured == "1024 wrong: first at [0, 0], within rows 0-31, columns 0-31"


def test_what_is_computed_after_the_load_is_held_against_what_was_before(attempt: Try) -> None:
    judged = attempt("bit-equal-hot")
    hot = {case.name: case for case in judged.cases if case.verdict == "pass"}
    cold = {case.name for case in attempt("bit-equal").cases if case.verdict == "pass"}
    assert set(hot) == {f"{name}, hot" for name in cold}
    assert len(hot) == 7
    assert {case.source for case in hot.values()} == {"the same computation before the load"}
    assert "state during load of 0.5 s" in {case.name for case in judged.cases}


def test_kinds_of_extensions_have_names_of_their_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """torch adds _v1 to the file of a second build under one name, and the library is not found then."""
    cpp_extension = pytest.importorskip("torch.utils.cpp_extension")
    from torchdoctor.selftest.child import extension

    asked: list[str] = []
    monkeypatch.setattr(cpp_extension, "load", lambda name, sources, **flags: asked.append(name))
    bench = SimpleNamespace(fault="")
    made = {
        kind: extension.build(cast("Any", bench), kind, str(tmp_path))
        for kind in ("plain", "kernel", "torch")
    }
    assert len(set(asked)) == 3
    assert made["kernel"] == str(tmp_path / f"{asked[1]}.so")


def test_an_exception_of_a_signal_handler_while_another_is_told_belongs_to_the_same_case(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """DataLoader's handler of SIGCHLD raises wherever the program is; its queue may have raised before."""
    from torchdoctor.selftest.child import bench

    def check(one: bench.Bench) -> None:
        one.attempt("first", one.exact, "first", 0, "nothing")
        one.attempt("second", lambda: [][1])

    told = bench.Bench.caught
    handlers = iter([RuntimeError("DataLoader worker (pid 7) is killed by signal: Killed.")])

    def interrupted(one: bench.Bench, case: str, error: Exception) -> None:
        for raised in handlers:
            raise raised
        told(one, case, error)

    report = tmp_path / "report"
    monkeypatch.setattr(bench.Bench, "caught", interrupted)
    monkeypatch.setattr("sys.argv", ["check", "--stay", str(report)])
    with pytest.raises(SystemExit):
        bench.run(check)
    records = [json.loads(line) for line in report.read_text().splitlines()]
    assert [(one["case"], one["verdict"]) for one in records if "verdict" in one] == [
        ("first", "pass"),
        ("second", "fail"),
    ]
    assert "DataLoader worker (pid 7)" in next(one["text"] for one in records if "text" in one)
    assert records[-1]["done"] is True


def test_a_killed_worker_is_explained(attempt: Try) -> None:
    judged = attempt("dataloader", "worker-killed")
    assert "[dataloader-worker-killed]" in " ".join(item.text for item in judged.result.evidence)


@pytest.mark.parametrize("name", [check.name for check in CHECKS if check.place.value == "gpu"])
def test_a_check_of_gpus_alone_is_left_out_on_a_cpu(attempt: Try, name: str) -> None:
    assert attempt(name).result.verdict is Verdict.SKIP


# The stand-alone programs: complete, and the same as what runs
NAMES = [check.name for check in CHECKS]


@pytest.mark.parametrize("name", NAMES)
def test_a_program_needs_nothing_of_ours(name: str, printed: Printed) -> None:
    text = printed(["selftest", "--show", name])
    tree = ast.parse(text, feature_version=(3, 8))
    names = {
        (node.module or "") if isinstance(node, ast.ImportFrom) else node.names[0].name
        for node in ast.walk(tree)
        if isinstance(node, (ast.Import, ast.ImportFrom))
    }
    assert not any(name.startswith("torchdoctor") for name in names)
    assert "torch" in names
    assert "--fault" in text


def test_every_program_under_child_is_a_check() -> None:
    files = {path.stem for path in Path(standalone.FOLDER).glob("*.py")}
    assert files == {check.file for check in CHECKS} | {
        "__init__", "batch", "bench", "forker", "survey", "watching",
    }  # fmt: skip


def test_two_gpus_that_ask_for_a_program_at_once_both_get_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    # the second got a file that the first was still writing: "ended without a result" on one of two H200
    size = 64 << 20
    monkeypatch.setattr(standalone, "compose", lambda module: "#" * size)
    programs = runner.Programs()
    try:
        path = Path(programs.path("first")).with_name("second.py")
        writer = threading.Thread(target=programs.path, args=("second",))
        writer.start()
        while not path.exists():
            pass
        assert Path(programs.path("second")).stat().st_size == size
        writer.join()
    finally:
        programs.close()


@needs_torch
def test_a_program_runs_alone_and_its_exit_code_tells(tmp_path: Path) -> None:
    path = tmp_path / "check.py"
    path.write_text(standalone.compose("lstsq_rank"), encoding="utf-8")
    argv = [sys.executable, "-I", str(path), "--seed", "5"]
    good = subprocess.run(argv, capture_output=True, text=True, cwd=tmp_path, timeout=60)
    assert (good.returncode, good.stderr) == (0, "")
    assert "pass     wide float32" in good.stdout
    bad = subprocess.run([*argv, "--fault", "nan"], capture_output=True, text=True, cwd=tmp_path, timeout=60)
    assert bad.returncode == 1
    assert "fail     wide float32: inf" in bad.stdout
    # read by somebody who reads a line and no more
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path) as piped:
        piped.stdout.readline()
        piped.stdout.close()
        assert piped.stderr.read() == b""
    assert piped.returncode == -signal.SIGPIPE
