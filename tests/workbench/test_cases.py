"""Trees of cases: finding one, adding one, what is stored how, and the command for it."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path

import pytest
from case_files import put as add
from printed import Printed

from torchdoctor.catalog import RuleSet
from torchdoctor.cli.main import main
from torchdoctor.workbench.case import Case, CaseError, transcript
from torchdoctor.workbench.cases import find, put, read_all, stow, unpack
from torchdoctor.workbench.evaluate import judge
from torchdoctor.workbench.golden import answers
from torchdoctor.workbench.shape import repeated, shape

LOG = (
    'Traceback (most recent call last):\n  File "/home/alice/proj/train.py", line 41, in <module>\n'
    "    loss = criterion(out, y)\nIndexError: Target 12 is out of bounds.\n"
)

RULE = "cuda-assert-label-range"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    root = tmp_path / "fixtures"
    add(root, f"{RULE}/label-12", RULE, LOG, origin="captured", frame="train.py:41", note="one process")
    add(root, f"{RULE}/quiet", "none", "epoch 1\n")
    return root


CASE = ["rules", "case", "--fixtures", "fixtures"]


def command(*arguments: str) -> int:
    return main([*CASE, *arguments])


def test_one_is_found(root: Path) -> None:
    assert find(str(root), f"{RULE}/quiet").input() == b"epoch 1\n"


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("cuda-assert-label-rang/quiet", 'no such file; did you mean "cuda-assert-label-range"?'),
        (f"{RULE}/gone", 'no case "gone"; a case is called ID/NAME, here are label-12, quiet'),
    ],
)
def test_one_that_is_not_there(root: Path, name: str, complaint: str) -> None:
    with pytest.raises(CaseError) as error:
        find(str(root), name)
    assert complaint in str(error.value)


@pytest.mark.parametrize("data", [b"step 1\n" * 9_000, b"step\0 1\n", "größer\n".encode("latin-1")])
def test_what_is_no_short_text_lies_gzipped_beside_the_file(root: Path, data: bytes) -> None:
    put(str(root), Case("odd", "none", of="clean", origin="captured", data=data))
    assert (root / "clean.cases").read_bytes() == (
        b"=== odd bytes=0 origin=captured rule=none big=clean.odd.gz\n\n"
    )
    case = find(str(root), "clean/odd")
    assert case.input() == data
    assert transcript(case).bytes_read == len(data)
    before = (root / "big" / "clean.odd.gz").read_bytes()
    stow(str(root), case)
    assert (root / "big" / "clean.odd.gz").read_bytes() == before


def test_a_notebook_is_read_as_one(root: Path) -> None:
    raised = "IndexError: Target 12 is out of bounds."
    output = {"output_type": "error", "ename": "IndexError", "evalue": raised[12:], "traceback": [raised]}
    cell = {"cell_type": "code", "execution_count": 1, "metadata": {}, "source": [], "outputs": [output]}
    held = json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5})
    add(root, f"{RULE}/cell", RULE, held)
    (event,) = transcript(find(str(root), f"{RULE}/cell")).events
    assert (event.type, event.text) == ("IndexError", "Target 12 is out of bounds.")


def test_only_an_unfinished_case_is_replaced(root: Path) -> None:
    add(root, f"{RULE}/stub", "none", "TODO", note="TODO: why")
    put(str(root), Case("stub", "none", of=RULE, origin="reported", data=b"a log\n"))
    assert find(str(root), f"{RULE}/stub").input() == b"a log\n"
    with pytest.raises(CaseError, match="has a case stub; take another name"):
        put(str(root), Case("stub", "none", of=RULE, origin="reported", data=b"another\n"))


def test_nothing_is_added_to_a_faulty_file(root: Path) -> None:
    path = root / f"{RULE}.cases"
    faulty = path.read_bytes().replace(b"bytes=8", b"bytes=7")
    path.write_bytes(faulty)
    with pytest.raises(CaseError, match="quiet: bytes=7, but the file ends after 8 bytes"):
        put(str(root), Case("more", RULE, of=RULE, origin="captured", data=b"x"))
    assert path.read_bytes() == faulty


def archive(**files: str) -> bytes:
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w:gz") as tar:
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(text)
            tar.addfile(member, io.BytesIO(text.encode()))
    return held.getvalue()


def test_an_input_of_several_files(root: Path, tmp_path: Path) -> None:
    ranks = archive(**{"logs/rank0.log": "step 1\n", "logs/rank1.log": LOG})
    (tmp_path / "ranks.tar.gz").write_bytes(ranks)
    case = Case("ranks", RULE, of=RULE, origin="captured", path=str(tmp_path / "ranks.tar.gz"))
    put(str(root), case)
    stored = find(str(root), f"{RULE}/ranks")
    assert stored.input() == ranks
    assert [name[-9:] for name in transcript(stored).sources] == ["rank0.log", "rank1.log"]
    assert command(f"{RULE}/ranks", "-o", "out") == 0
    assert (tmp_path / "out" / "logs" / "rank1.log").read_text() == LOG


def test_no_file_of_an_archive_leaves_the_folder(tmp_path: Path) -> None:
    (tmp_path / "bad.tar.gz").write_bytes(archive(**{"../bad.log": "x"}))
    case = Case("bad", "none", of="clean", path=str(tmp_path / "bad.tar.gz"))
    with pytest.raises(CaseError, match="leads out of the folder"):
        unpack(case, str(tmp_path / "out"))
    assert not (tmp_path.parent / "bad.log").exists()


def test_a_fault_in_one_file_leaves_the_others(root: Path) -> None:
    (root / "clean.cases").write_text("nonsense\n")
    cases, problems = read_all(str(root))
    assert [case.id for case in cases] == [f"{RULE}/label-12", f"{RULE}/quiet"]
    assert problems == [f"{root}/clean.cases:1: neither a note nor the head of a case: 'nonsense'"]


@pytest.mark.usefixtures("root")
class TestCommand:
    def test_it_prints_the_very_bytes(self, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
        assert command(f"{RULE}/label-12") == 0
        assert capfdbinary.readouterr().out == LOG.encode()

    def test_a_terminal_gets_no_escape_sequences(
        self, root: Path, monkeypatch: pytest.MonkeyPatch, printed: Printed
    ) -> None:
        add(root, "clean/red", "none", "\x1b]0;title\x07\x1b[31mred\n")
        monkeypatch.setattr("sys.stdout.isatty", lambda: True)
        assert "\x1b" not in printed([*CASE, "clean/red"])

    def test_it_writes_a_file(self, tmp_path: Path) -> None:
        assert command(f"{RULE}/quiet", "-o", "quiet.log") == 0
        assert (tmp_path / "quiet.log").read_bytes() == b"epoch 1\n"

    def test_it_lists_those_of_a_rule(self, printed: Printed) -> None:
        assert [line.split() for line in printed([*CASE, RULE]).splitlines()] == [
            ["label-12", "captured", RULE, "one", "process"],
            ["quiet", "reconstructed", "none"],
        ]

    def test_it_explains_one_and_compares(
        self, root: Path, printed: Printed, capsys: pytest.CaptureFixture[str]
    ) -> None:
        out = printed([*CASE, f"{RULE}/label-12", "--explain"])
        assert out.startswith("✗ A class label lies outside")
        assert out.endswith(f"✓ {RULE}/label-12: as its label says\n")
        add(root, f"{RULE}/moved", RULE, LOG, frame="train.py:40")
        add(root, f"{RULE}/wrong", "none", LOG)
        assert command(f"{RULE}/moved", "--explain") == 0
        told = f"✗ {RULE}/moved: user frame train.py:41, expected train.py:40\n"
        assert capsys.readouterr().out.endswith(told)
        assert f"\n✗ {RULE}/wrong: expected none\n    got   {RULE} (confirmed)\n" in printed(
            [*CASE, f"{RULE}/wrong", "--explain"]
        )

    def test_it_adds_one_without_names(self, root: Path, printed: Printed) -> None:
        Path("run.log").write_text(LOG)
        arguments = (f"{RULE}/added", "--from", "run.log", "--origin", "reported", "--note", "as sent")
        assert printed([*CASE, *arguments]).startswith(f"wrote {RULE}/added, of which {RULE} is expected")
        case = find(str(root), f"{RULE}/added")
        assert (case.origin, case.rule, case.note) == ("reported", RULE, "as sent")
        assert b"alice" not in case.input()
        assert b"Target 12 is out of bounds" in case.input()

    @pytest.mark.parametrize(("of", "rule"), [("clean", "none"), ("unknown", "unrecognised")])
    def test_what_is_expected_goes_with_the_file(self, root: Path, of: str, rule: str) -> None:
        Path("run.log").write_text("epoch 1\n")
        assert command(f"{of}/added", "--from", "run.log", "--origin", "captured") == 0
        assert find(str(root), f"{of}/added").rule == rule

    @pytest.mark.parametrize(
        ("arguments", "complaint"),
        [
            ((f"{RULE}/quiet", "--rule", "none"), "label a case that is added with --from"),
            ((f"{RULE}/new", "--from", "x.log"), "--from needs --origin"),
            ((f"{RULE}/new", "--from", "gone.log", "--origin", "captured"), "gone.log: no such file"),
            ((RULE, "--from", "x.log", "--origin", "captured"), "a case is called ID/NAME"),
            ((RULE, "-o", "all"), f"--output writes one case: name it as {RULE}/NAME"),
            (("gone",), "gone.cases"),
        ],
    )
    def test_mistakes(self, arguments: tuple[str, ...], complaint: str, printed: Printed) -> None:
        Path("x.log").write_text("x\n")
        assert complaint in printed.errors([*CASE, *arguments], 2)


def test_the_label_is_judged_like_all_others(root: Path) -> None:
    from torchdoctor.catalog import load

    assert judge(find(str(root), f"{RULE}/label-12"), load()).right_within(1)


# Shapes of messages, and the lint that lets in no second case of one
LOG_SHAPE = (
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
def shape_root(tmp_path: Path) -> Path:
    add(tmp_path, f"{RULE}/one", RULE, LOG_SHAPE.format(line=41, label=12))
    add(tmp_path, f"{RULE}/two", RULE, LOG_SHAPE.format(line=7, label=100))
    add(tmp_path, f"{RULE}/kernel", RULE, ASSERT.format(thread=3))
    add(tmp_path, f"{RULE}/sent", RULE, ASSERT.format(thread=17), origin="reported")
    add(tmp_path, "clean/one", "none", "epoch 1\nTraining finished.\n")
    add(tmp_path, "clean/two", "none", "epoch 7\nTraining finished.\n")
    add(tmp_path, "clean/three", "none", "epoch 7\nTraining finished, best 0.9.\n")
    add(tmp_path, "texts/one", "none", "How do I choose labels?\n")
    add(tmp_path, "texts/two", "none", "How do I choose labels?\n")
    return tmp_path


def test_a_second_case_of_a_shape_is_found(shape_root: Path, rules: RuleSet) -> None:
    found = answers(read_all(str(shape_root))[0], rules)
    assert repeated(found, ()) == {
        f"{RULE}/two": f"{RULE}/one",
        f"{RULE}/kernel": f"{RULE}/sent",  # the real one stays
        "clean/two": "clean/one",
    }
    known = {f"{RULE}/two", f"{RULE}/kernel"}
    assert repeated(found, known) == {f"{RULE}/one": f"{RULE}/two", "clean/two": "clean/one"}


def test_another_label_shows_something_else(shape_root: Path, rules: RuleSet) -> None:
    add(shape_root, f"{RULE}/near", "none", LOG_SHAPE.format(line=1, label=1))
    add(shape_root, f"{RULE}/certain", RULE, LOG_SHAPE.format(line=1, label=1), standing="confirmed")
    found = repeated(answers(read_all(str(shape_root))[0], rules), ())
    assert not {f"{RULE}/near", f"{RULE}/certain"} & {*found}


def test_the_lint_neither_records_nor_forgets_it(
    shape_root: Path, monkeypatch: pytest.MonkeyPatch, printed: Printed, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("torchdoctor.workbench.lint_patterns.problems", lambda *_: ())
    monkeypatch.setenv("XDG_CACHE_HOME", str(shape_root / "cache"))
    monkeypatch.chdir(shape_root)
    for name in ("clean", "texts"):
        (shape_root / f"{name}.cases").unlink()
    command = ["rules", "lint", "--fixtures", ".", "--golden", "golden.tsv"]
    main([*command, "--update-golden"])
    told = f"{RULE}/two shows what {RULE}/one shows; a new case is real, or its decisive line is new"
    assert told in capsys.readouterr().out
    out = printed(command, None)
    assert told in out
    assert f"golden.tsv: {RULE}/two is not recorded" in out
