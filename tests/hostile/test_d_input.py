# ruff: noqa: E501  messages stand as programs print them, on one line
"""Inputs and variables of forms that nobody expects: none may end in exit code 70."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hostile.measuring import measured, situations
from torchdoctor.catalog import RuleSet, load
from torchdoctor.cli import streams
from torchdoctor.engine.diagnose import diagnose
from torchdoctor.engine.factbook import FactBook
from torchdoctor.extract.environment import covers
from torchdoctor.extract.visible import hides_all
from torchdoctor.gate.expect import listed
from torchdoctor.gate.hostlist import HostListError, hosts_of
from torchdoctor.gate.launch import looks_elsewhere
from torchdoctor.intake.source import IntakeError
from torchdoctor.intake.transcript import read, read_text
from torchdoctor.model import FactSource, Report
from torchdoctor.number import amount, count, elements, number
from torchdoctor.probes.claims_gpu import visible
from torchdoctor.probes.recorded import FactsFileError, load_facts
from torchdoctor.render.json import to_json

HELD = pytest.mark.held_before
LOG = "step 1\nRuntimeError: CUDA error: device-side assert triggered\n"
VARIABLES = (
    "SLURM_PROCID", "SLURM_LOCALID", "SLURM_NNODES", "SLURM_GPUS_ON_NODE", "SLURM_JOB_GPUS", "SLURM_STEP_GPUS",
    "LOCAL_RANK", "LOCAL_WORLD_SIZE", "RANK", "WORLD_SIZE", "MASTER_PORT", "OMPI_COMM_WORLD_LOCAL_RANK",
    "CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "COLUMNS", "LINES", "OMP_NUM_THREADS", "TORCH_CUDA_ARCH_LIST",
)  # fmt: skip
VALUES = {
    "superscript": "²",
    "5000-digits": "9" * 5_000,
    "circled": "①",
    "arabic": "٣",
    "signs": "--1",
    "blank": " ",
}


@pytest.fixture(scope="module")
def rules() -> RuleSet:
    return load()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "job"
    made.mkdir()
    return made


def reported(text: str, rules: RuleSet, facts: FactSource | None = None) -> Report:
    report = diagnose(read_text(text, "a.log"), FactBook(facts), rules)
    assert report.faults == ()
    assert to_json(report)
    return report


# ------------------------------------------------------------------------------------------------ environment


@pytest.mark.parametrize("value", situations(VALUES, held=("arabic", "signs", "blank")))
@pytest.mark.parametrize("command", ["explain", "gate"])
def test_variables(folder: Path, command: str, value: str) -> None:
    (folder / "a.log").write_text(LOG)
    arguments = {"explain": ["explain", "--offline", "a.log"], "gate": ["gate", "--tier", "passive"]}[command]
    environment = dict.fromkeys(VARIABLES, VALUES[value])
    run = measured(arguments, folder, environment=environment)
    assert run.code in (0, 10, 11, 12), run.stderr


@pytest.mark.parametrize(
    "value", situations(["²", "9" * 5_000, "-1", "99999999999", "8x"], held=("²", "-1", "8x"))
)
def test_width_of_the_terminal(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("COLUMNS", value)
    monkeypatch.setenv("LINES", value)
    width, height = streams.screen()
    assert 0 < width <= 10_000
    assert 0 < height <= 10_000


@pytest.mark.parametrize("value", situations(["²", "9" * 5_000, "+1", "1,²", "0-²", "²-3"], held=("+1",)))
def test_lists_of_gpus(value: str) -> None:
    assert listed(value) == tuple(value.split(","))
    assert visible(value, 4, ()) == (1 if value == "+1" or value.startswith("1,") else 0)
    assert hides_all(value, 4) in (None, True, False)


# ------------------------------------------------------------------------------------------------------- logs

TEXTS = {
    "blanks-before": " \t" * 5_000 + "RuntimeError: x\n",
    "blanks-alone": " \t" * 50_000,
    "blank-lines": "\n" * 100_000 + "RuntimeError: x\n",
    "vertical-tabs": "\v\f" * 5_000 + "RuntimeError: x\n",
    "superscript-smi": "Attached GPUs : ²\n    Link Width\n        Max : ²x\n        Current : ²x\n    ECC Errors\n"
    "        Volatile\n            DRAM Uncorrectable : ²\n",
    "superscript-csv": "pcie.link.width.current, pcie.link.width.max\n², ²\n",
    "superscript-arch": "NVIDIA A100 with CUDA capability sm_80 is not compatible with the current PyTorch "
    "installation. The current PyTorch install supports CUDA capabilities sm_² sm_9² compute_².\n",
    "infinite-version": f"torch 1e999\ncapability {'9' * 400}.{'9' * 400}\nGPU0 {'9' * 400} with CUDA capability "
    f"sm_{'9' * 400} is not compatible with the current PyTorch installation.\n",
    "shapes": "RuntimeError: Error(s) in loading state_dict for A:\n\tsize mismatch for a: copying a param with "
    f"shape torch.Size([{', '.join(['9' * 90] * 90)}]) from checkpoint, the shape in current model is "
    "torch.Size([1]).\n",
    "srun": "srun: error: gpu1: tasks 0-99999999999999999999: Exited with exit code 99999999999999999999\n",
    "spawn": f"-- Process {'9' * 5000} terminated with the following error:\nTraceback (most recent call last):\n"
    '  File "a.py", line 1, in f\n    x()\nValueError: a\n',
}  # fmt: skip


@pytest.mark.parametrize("name", situations(TEXTS, new=("blanks-before", "vertical-tabs", "superscript-smi")))
def test_texts(name: str, rules: RuleSet) -> None:
    reported(TEXTS[name], rules)


RECORDS: dict[str, object] = {
    "numbers": {"message": 5, "level": 7, "timestamp": 9},
    "lists": {"message": [1, {"a": []}], "level": ["ERROR"], "exc_info": [[]]},
    "null": {"message": None, "level": None},
    "journal": {"__REALTIME_TIMESTAMP": [], "MESSAGE": {"a": 1}, "_PID": [1]},
    "journal-digits": {"__REALTIME_TIMESTAMP": "9" * 4_000, "MESSAGE": [300, "a", -1]},
    "elastic": {"message": {"message": 5, "extraInfo": {"py_callstack": "RuntimeError: x", "timestamp": "1e999"}}},
    "elastic-list": {"message": {"extraInfo": {"py_callstack": ["a"], "timestamp": {}}}},
}  # fmt: skip


@HELD
@pytest.mark.parametrize("name", RECORDS)
def test_records(name: str, rules: RuleSet) -> None:
    reported(json.dumps(RECORDS[name]) + "\n" + LOG, rules)
    read(["-"], io.BytesIO(json.dumps(RECORDS[name]).encode()))


NOTEBOOKS: dict[str, object] = {
    "source": {"source": 5, "outputs": [{"output_type": "stream", "text": LOG}]},
    "source-list": {"source": [5, None, ["a"]], "outputs": [{"output_type": "stream", "text": LOG}]},
    "outputs": {"source": "a", "outputs": 5},
    "output": {"source": "a", "outputs": [5, None, "a", []]},
    "traceback": {"outputs": [{"output_type": "error", "traceback": 5}]},
    "traceback-items": {"outputs": [{"output_type": "error", "traceback": [5, None, {"a": []}]}]},
    "text": {"outputs": [{"output_type": "stream", "text": {"a": 1}}]},
    "data": {"outputs": [{"data": 5}, {"data": {"text/plain": 5}}]},
    "cell": 5,
}  # fmt: skip


@pytest.mark.parametrize("name", situations(NOTEBOOKS, new=("outputs",)))
def test_notebooks(folder: Path, name: str) -> None:
    cells = [NOTEBOOKS[name], {"cell_type": "code", "source": "", "outputs": [{"text": LOG}]}]
    (folder / "a.ipynb").write_text(json.dumps({"cells": cells}))
    found = read([str(folder / "a.ipynb")])
    assert any("device-side assert" in event.text for event in found.events)


# -------------------------------------------------------------------------------------------- rules and facts


@pytest.mark.parametrize("place", ["memory/a.toml", "memory", "groups.toml", "ids.txt"])
def test_rules_that_link_to_themselves(folder: Path, place: str) -> None:
    (folder / "rules").mkdir()
    path = folder / "rules" / place
    path.parent.mkdir(exist_ok=True)
    os.symlink(path.name, path)
    (folder / "a.log").write_text(LOG)
    run = measured(["explain", "--offline", "--rules", "rules", "a.log"], folder)
    assert run.code == 2, run.stderr
    assert "symbolic links" in run.stderr or "holds no rule" in run.stderr


@pytest.mark.parametrize("place", ["memory/a.toml", "groups.toml"])
def test_rules_that_are_pipes(folder: Path, place: str) -> None:
    path = folder / "rules" / place
    path.parent.mkdir(parents=True)
    os.mkfifo(path)
    (folder / "a.log").write_text(LOG)
    run = measured(["explain", "--offline", "--rules", "rules", "a.log"], folder)
    assert (run.code, "no regular file" in run.stderr) == (2, True), run.stderr


FACTS: dict[str, str] = {
    "infinite": '{"gpu.count": 1e999}',
    "digits": '{"gpu.count": ' + "9" * 5_000 + "}",
    "nan": '{"gpu.count": NaN}',
    "superscript": '{"env.CUDA_VISIBLE_DEVICES": "²", "gpu.count": 2}',
    "large": '{"gpu.count": 99999999999999999999, "env.CUDA_VISIBLE_DEVICES": "' + "9" * 5_000 + '"}',
    "version": '{"torch.version": "' + "9" * 5_000 + '", "python.version": "²", "torch.cuda": "9' + "9" * 5_000 + '"}',
    "exit-code": '{"schema": "torchdoctor.machine/1", "programs": {"a": {"exit_code": 1e300, "signal": 1e300}}}',
}  # fmt: skip


@HELD
@pytest.mark.parametrize("name", FACTS)
def test_facts(folder: Path, name: str) -> None:
    (folder / "facts.json").write_text(FACTS[name])
    run = measured(["check", "--facts", "facts.json"], folder)
    assert run.code in (0, 1, 2, 3), run.stderr


# --------------------------------------------------------------------------------------------------- properties

CHARACTERS = st.characters(blacklist_categories=("Cs",), blacklist_characters="\0")
NUMBERS = st.one_of(
    st.text("0123456789", min_size=1, max_size=12),
    st.integers(1, 6_000).map(lambda size: "9" * size),
    st.sampled_from(
        ("²", "٣", "①", "-", "+7", "1.", ".5", "1e999", "inf", "nan", "0x10", "1_0", " 3", "", "९" * 30)
    ),
    st.text(CHARACTERS, max_size=8),
)
LISTS = st.lists(st.tuples(NUMBERS, st.sampled_from(("-", ",", "")), NUMBERS).map("".join), max_size=5).map(
    ",".join
)
MESSAGES = (
    "CUDA out of memory. Tried to allocate # GiB (GPU #; # GiB total capacity; # GiB already allocated; # MiB free)",
    "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate # MiB. GPU # has a total capacity of # GiB of "
    "which # MiB is free. Process # has # GiB memory in use.",
    "NVRM: Xid (PCI:0000:3b:00): #, pid=#, name=python, Ch #",
    "[rank#]:[E ProcessGroupNCCL.cpp:#] [Rank #] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=#, "
    "OpType=ALLREDUCE, NumelIn=#, NumelOut=#, Timeout(ms)=#) ran for # milliseconds before timing out.",
    "srun: error: gpu#: tasks #-#,#: Exited with exit code #",
    "size mismatch for fc.weight: copying a param with shape torch.Size([#, #]) from checkpoint, the shape in current "
    "model is torch.Size([#]).",
    '  File "a.py", line #, in f',
    "Attached GPUs                             : #",
    "| #   N/A  N/A      #      C   python       #MiB |",
    "Epoch # step #/# loss # gpu_mem # MiB lr #",
    "RuntimeError: CUDA error #: sm_# is not compatible; torch #.#.#+cu#",
    "OSError: [Errno #] x: version `GLIBCXX_#.#.#' not found",
    "[#]:\n  rank      : # (local_rank: #)\n  exitcode  : # (pid: #)",
    "RuntimeError: The size of tensor a (#) must match the size of tensor b (#) at non-singleton dimension #",
    "IndexError: Target # is out of bounds.",
)
JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(CHARACTERS, max_size=8), NUMBERS),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(
                ("message", "level", "exc_info", "entries", "pg_config", "pg_status", "frames", "state", "thread_id",
                 "process_group", "cells", "outputs", "source", "text", "traceback", "data", "facts", "gpu.count",
                 "schema", "torch.version", "profiling_name", "input_sizes", "collective_seq_id", "output_type")
            ),
            inner, max_size=4,
        ),
    ),
    max_leaves=12,
)  # fmt: skip
FEW = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))


@FEW
@given(value=LISTS, other=NUMBERS)
def test_no_variable_is_a_fault(value: str, other: str) -> None:
    assert len(listed(value)) <= 1_024
    assert 0 <= visible(value, 8, ()) <= 8
    assert hides_all(value, 8) in (None, True, False)
    assert covers([f"sm_{other}", f"compute_{value}"], 9.0) in (True, False)
    assert looks_elsewhere({"LOCAL_RANK": other, "SLURM_LOCALID": value}) == ""
    found = number(other), count(value), amount(other)
    assert all(one is None or abs(one) <= 1e30 for one in found)
    assert 0 <= elements(value) < 1 << 62
    with contextlib.suppress(HostListError):  # told to who called
        assert len(hosts_of(f"gpu[{value}]")) <= 100_000


@FEW
@given(data=st.data())
def test_no_number_in_a_log_is_a_fault(data: st.DataObject, rules: RuleSet) -> None:
    messages = data.draw(st.lists(st.sampled_from(MESSAGES), min_size=1, max_size=4))
    lines = "\n".join(re.sub("#", lambda _: data.draw(NUMBERS), message) for message in messages)
    reported(f"{LOG}{lines}\n", rules)


@FEW
@given(value=JSON, kind=st.sampled_from(("record", "notebook", "flight", "spy", "facts")))
def test_no_shape_of_json_is_a_fault(value: object, kind: str, rules: RuleSet) -> None:
    text = {
        "record": json.dumps(value) + "\n" + LOG,
        "notebook": json.dumps({"cells": [value, {"cell_type": "code", "outputs": value}]}),
        "flight": json.dumps({"pg_config": value, "pg_status": value, "entries": [value, {"frames": value}]}),
        "spy": json.dumps([{"pid": 1, "thread_id": value, "frames": value}, value]),
        "facts": json.dumps(value),
    }[kind]
    folder = tempfile.mkdtemp()
    path = Path(folder) / {"notebook": "a.ipynb", "facts": "facts.json"}.get(kind, "rank_0.json")
    path.write_text(text, encoding="utf-8")
    try:
        if kind == "facts":
            source = load_facts(str(path))
            reported(LOG, rules, source)
        else:
            report = diagnose(read([str(path)]), FactBook(None), rules)
            assert report.faults == ()
    except (IntakeError, FactsFileError):
        pass  # told to who called
    finally:
        shutil.rmtree(folder)
