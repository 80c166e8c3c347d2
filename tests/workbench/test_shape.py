"""Shapes of messages, and the lint that lets in no second case of one."""

from __future__ import annotations

from pathlib import Path

import pytest
from case_files import put

from torchdoctor.catalog import RuleSet
from torchdoctor.cli.main import main
from torchdoctor.workbench.cases import read_all
from torchdoctor.workbench.golden import answers
from torchdoctor.workbench.shape import repeated, shape

RULE = "cuda-assert-label-range"
LOG = (
    'Traceback (most recent call last):\n  File "/home/u/train.py", line {line}, in <module>\n'
    "    loss = criterion(out, y)\nIndexError: Target {label} is out of bounds.\n"
)
ASSERT = (
    "../aten/src/ATen/native/cuda/Loss.cu:250: nll_loss_forward_reduce_cuda_kernel_2d: block: [0,0,0], "
    "thread: [{thread},0,0] Assertion `t >= 0 && t < n_classes` failed.\n"
)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("IndexError: Target 12 is out of bounds.", "IndexError: Target -100 is out of bounds."),
        ("KeyError: 'labels'", "KeyError: 'pixel_values'"),
        ("cannot open /data/a b/x.pt: gone", "cannot open /scratch/a y/z.bin: gone"),
        (
            "OSError: [Errno 28] No space left on device: '/tmp/x'",
            "OSError: [Errno 5] No space left on device: 'y'",
        ),
        (
            "size mismatch for head.weight: [10, 768] and [1000, 768]",
            "size mismatch for fc.bias: [3] and [4, 2]",
        ),
        ("Tried to allocate 2.00 GiB. GPU 0 has 1.02 GiB", "Tried to allocate 20.00 GiB. GPU 3 has 0.5 GiB"),
        ("error 0x7f001122 in libtorch_cpu.so", "error 0x1 in libc10_cuda.so"),
    ],
)
def test_numbers_names_and_quotations_are_no_part_of_it(one: str, other: str) -> None:
    assert shape(one) == shape(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("IndexError: Target 12 is out of bounds.", "ValueError: Target 12 is out of bounds."),
        ("CUDA out of memory. Tried to allocate 2 GiB", "HIP out of memory. Tried to allocate 2 GiB"),
        ("RuntimeError: CUDA error: unknown error", "RuntimeError: CUDA error: misaligned address"),
    ],
)
def test_words_are(one: str, other: str) -> None:
    assert shape(one) != shape(other)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    put(tmp_path, f"{RULE}/one", RULE, LOG.format(line=41, label=12))
    put(tmp_path, f"{RULE}/two", RULE, LOG.format(line=7, label=100))
    put(tmp_path, f"{RULE}/kernel", RULE, ASSERT.format(thread=3))
    put(tmp_path, f"{RULE}/sent", RULE, ASSERT.format(thread=17), origin="reported")
    put(tmp_path, "clean/one", "none", "epoch 1\nTraining finished.\n")
    put(tmp_path, "clean/two", "none", "epoch 7\nTraining finished.\n")
    put(tmp_path, "clean/three", "none", "epoch 7\nTraining finished, best 0.9.\n")
    put(tmp_path, "texts/one", "none", "How do I choose labels?\n")
    put(tmp_path, "texts/two", "none", "How do I choose labels?\n")
    return tmp_path


def test_a_second_case_of_a_shape_is_found(root: Path, rules: RuleSet) -> None:
    found = answers(read_all(str(root))[0], rules)
    assert repeated(found, ()) == {
        f"{RULE}/two": f"{RULE}/one",
        f"{RULE}/kernel": f"{RULE}/sent",  # the real one stays
        "clean/two": "clean/one",
    }
    known = {f"{RULE}/two", f"{RULE}/kernel"}
    assert repeated(found, known) == {f"{RULE}/one": f"{RULE}/two", "clean/two": "clean/one"}


def test_another_label_shows_something_else(root: Path, rules: RuleSet) -> None:
    put(root, f"{RULE}/near", "none", LOG.format(line=1, label=1))
    put(root, f"{RULE}/certain", RULE, LOG.format(line=1, label=1), standing="confirmed")
    found = repeated(answers(read_all(str(root))[0], rules), ())
    assert not {f"{RULE}/near", f"{RULE}/certain"} & {*found}


def test_the_lint_neither_records_nor_forgets_it(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("torchdoctor.workbench.lint_patterns.problems", lambda *_: ())
    monkeypatch.setenv("XDG_CACHE_HOME", str(root / "cache"))
    monkeypatch.chdir(root)
    for name in ("clean", "texts"):
        (root / f"{name}.cases").unlink()
    command = ["rules", "lint", "--fixtures", ".", "--golden", "golden.tsv"]
    main([*command, "--update-golden"])
    told = f"{RULE}/two shows what {RULE}/one shows; a new case is real, or its decisive line is new"
    assert told in capsys.readouterr().out
    main(command)
    out = capsys.readouterr().out
    assert told in out
    assert f"golden.tsv: {RULE}/two is not recorded" in out
