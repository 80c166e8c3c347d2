"""A report that may leave the machine: the same names stand for the same things in all its parts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import sample_reports
from printed import Printed
from share.planted_kinds import KINDS

from torchdoctor import catalog
from torchdoctor.engine.factbook import FactBook
from torchdoctor.engine.incident import explain
from torchdoctor.intake import read_text
from torchdoctor.model import Evidence, Frame
from torchdoctor.share.publish import published

LOG = """\
USER=bkowalski HF_TOKEN=hf_abcdefghijABCDEFGHIJ0123456789
gpu-node-17:2211:2290 [0] NCCL INFO Bootstrap : Using eth0:131.5.6.7<0>
[rank0]: Traceback (most recent call last):
[rank0]:   File "/gpfs/home/bkowalski/proj/train.py", line 12, in main
[rank0]:     loss = loss_fn(model(x), y)  # bkowalski: on gpu-node-17
[rank0]:   File "/usr/lib/python3.11/site-packages/torch/nn/modules/module.py", line 1511, in _call_impl
[rank0]:     return forward_call(*args, **kwargs)
[rank0]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a to\
tal capacity of 79.10 GiB of which 1.00 GiB is free. Including non-PyTorch memory, this process\
 has 78.00 GiB memory in use. Of the allocated memory 77.00 GiB is allocated by PyTorch, and 10\
0.00 MiB is reserved by PyTorch but unallocated.
"""


def test_one_name_has_one_stand_in_in_evidence_frame_source_and_notes() -> None:
    first = replace(
        sample_reports.DIAGNOSED.diagnoses[0],
        frame=Frame("/home/alice/p/train.py", 3, "main", "x = load('/home/alice/d')"),
        evidence=(Evidence("alice@gpu-17:~$ python train.py", "/home/alice/run.log", 1),),
    )
    report = replace(
        sample_reports.DIAGNOSED,
        diagnoses=(first,),
        source=("/home/alice/run.log",),
        notes=("seen on gpu-17",),
    )
    shown = published(report)
    assert shown.source == ("/home/user1/run.log",)
    assert shown.diagnoses[0].frame == Frame("/home/user1/p/train.py", 3, "main", "x = load('/home/user1/d')")
    assert shown.diagnoses[0].evidence[0].text == "user1@node1:~$ python train.py"
    assert shown.notes[0] == "seen on node1"
    assert shown.notes[-1].startswith("Replaced before publishing: users (")
    assert shown.notes[-1].endswith("; placeholders: user1, node1") or shown.notes[-1].endswith(
        "; placeholders: node1, user1"
    )


def test_what_the_catalog_says_stays() -> None:
    shown = published(sample_reports.DIAGNOSED)
    first, before = shown.diagnoses[0], sample_reports.DIAGNOSED.diagnoses[0]
    assert (first.rule, first.family, first.title, first.fixes, first.references) == (
        before.rule, before.family, before.title, before.fixes, before.references,
    )  # fmt: skip


def test_nothing_to_replace_adds_no_note() -> None:
    report = explain_text("RuntimeError: mat1 and mat2 shapes cannot be multiplied (4x3 and 5x2)\n")
    assert published(report) == report


def explain_text(text: str):  # type: ignore[no-untyped-def]
    from torchdoctor.engine import diagnose

    return diagnose(read_text(text), FactBook(None), catalog.load())


def test_the_diagnosis_is_the_same_with_and_without(tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    log.write_text(LOG, encoding="utf-8")
    plain = explain([str(log)], FactBook(None), catalog.load()).report
    hidden = explain([str(log)], FactBook(None), catalog.load(), publish=published).report
    assert [item.rule for item in hidden.diagnoses] == [item.rule for item in plain.diagnoses]
    assert hidden.diagnoses[0].frame.file == "/gpfs/home/user1/proj/train.py"
    assert hidden.diagnoses[0].frame.code == "loss = loss_fn(model(x), y)  # user1: on node1"


@pytest.mark.parametrize(
    ("options", "redacted"),
    [
        (["--format", "markdown"], True),
        (["--format", "html"], True),
        (["--format", "json", "--redact"], True),
        (["--redact"], True),
        (["--format", "markdown", "--no-redact"], False),
        ([], False),
    ],
)
def test_markdown_and_html_hide_names_unless_told_not_to(
    options: list[str], redacted: bool, tmp_path: Path, printed: Printed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("run.log").write_text(LOG, encoding="utf-8")
    out = printed(["explain", "run.log", "--offline", *options])
    assert ("bkowalski" not in out) is redacted
    assert "cuda-oom" in out
    if redacted:
        assert "hf_abc" not in out
        assert "user1" in out


@pytest.mark.parametrize("form", ["markdown", "html", "json", "text"])
def test_no_kind_of_secret_is_in_any_form_of_a_report(form: str, tmp_path: Path, printed: Printed) -> None:
    """Each line is the message of an exception of its own, so that the report has to quote it."""
    files = []
    for number, (_, line, _) in enumerate(KINDS):
        path = tmp_path / f"job{number}.log"
        message = line.replace("\n", "\n  ")
        path.write_text(
            f'Traceback (most recent call last):\n  File "/w/train.py", line 9, in step\n    run()\n'
            f"proj.Failed: cannot go on: {message}\n",
            encoding="utf-8",
        )
        files.append(str(path))
    shown = printed(["explain", "--offline", "--each", "--redact", "--format", form, *files], None).replace(
        "\\\\", "\\"
    )
    assert "cannot go on" in shown
    assert [(name, piece) for name, _, pieces in KINDS for piece in pieces if piece in shown] == []
