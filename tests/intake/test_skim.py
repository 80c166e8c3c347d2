"""Big inputs: what the prefilter passes over changes nothing in the answer."""

from __future__ import annotations

import io
import random
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from case_files import catalogued

from torchdoctor.engine import FactBook
from torchdoctor.engine.diagnose import diagnose
from torchdoctor.intake import parallel, read, scan, skim
from torchdoctor.intake.router import Router
from torchdoctor.intake.scan import Scanner, stripped
from torchdoctor.intake.shares import Measure, measure_for
from torchdoctor.intake.skim import Skim
from torchdoctor.intake.window import thinned

if TYPE_CHECKING:
    from torchdoctor.catalog import RuleSet
    from torchdoctor.model import Diagnosis, Report
    from torchdoctor.workbench.case import Case

FULL = Measure(whole=1 << 40)
# nothing is read for being new, so that literals and signs alone must find what counts
TIGHT = Measure(whole=1 << 14, head=40, tail=60, novel=0)


def noise(seed: int, lines: int, ranks: int = 0) -> bytes:
    """Training steps with other numbers in each line."""
    rng = random.Random(seed)
    rows = []
    for step in range(lines):
        head = f"[rank{step % ranks}]: " if ranks else ""
        rows.append(
            f"{head}2026-01-02 03:{step // 60 % 60:02d}:{step % 60:02d},{rng.randrange(1000):03d} - INFO - "
            f"step {step} | loss {rng.random():.4f} | lr 3.00e-04 | tokens/s {rng.randrange(50_000, 60_000)}"
        )
    return ("\n".join(rows) + "\n").encode()


def lines_of(item: Diagnosis) -> list[tuple[str, int | None]]:
    return [(one.text, one.line) for one in item.evidence if not one.fact]


def told(report: Report) -> object:
    """All of a report that a person acts on."""
    return (
        report.outcome,
        [
            (
                item.rule,
                item.standing,
                item.rank,
                item.frame,
                [(one.text, one.line) for one in item.evidence if not one.fact],
            )
            for item in report.diagnoses
        ],
        report.suspect,
        report.first_failure,
    )


def report(data: bytes, measure: Measure, rules: RuleSet, monkeypatch: pytest.MonkeyPatch) -> Report:
    monkeypatch.setattr(skim, "measure_for", lambda files: measure)
    return diagnose(read(["-"], io.BytesIO(data), rules.literals), FactBook(), rules)


@pytest.mark.parametrize("ranks", [0, 8])
def test_the_answer_is_the_same_with_and_without_the_prefilter(
    ranks: int, rules: RuleSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, after = noise(1, 120, ranks), noise(2, 120, ranks)
    different = []
    first: dict[str, Case] = {}
    for case in catalogued().values():
        if not case.near:
            first.setdefault(case.of, case)
    sampled = list(first.values())
    for case in sampled[ranks % 5 :: 5]:
        data = before + case.input().rstrip(b"\n") + b"\n" + after
        whole, part = (report(data, measure, rules, monkeypatch) for measure in (FULL, TIGHT))
        if told(whole) != told(part):
            different.append(case.id)
    assert different == []


def test_much_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(skim, "measure_for", lambda files: TIGHT)
    transcript = read(["-"], io.BytesIO(noise(1, 5_000)))
    assert transcript.lines_read == 5_000
    kept = len(transcript.events)
    assert kept == TIGHT.head + TIGHT.tail
    lost = f"<stdin>: {5_000 - kept:,} plain lines in the middle were read and not kept"
    assert transcript.notes == (lost,)


def test_lines_keep_their_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(skim, "measure_for", lambda files: TIGHT)
    lines = noise(1, 9_000).decode().splitlines()
    lines[4_321] = "RuntimeError: CUDA error: out of memory"
    transcript = read(["-"], io.BytesIO("\n".join(lines).encode()))
    assert [event.line for event in transcript.events if event.type] == [4_322]
    assert transcript.events[-1].line == 9_000
    assert transcript.lines_read == 9_000


def test_a_traceback_between_the_lines_of_other_ranks(monkeypatch: pytest.MonkeyPatch) -> None:
    """One line of the traceback after every 63 lines of the others, as when all ranks write at once."""
    monkeypatch.setattr(skim, "measure_for", lambda files: TIGHT)
    trace = ["Traceback (most recent call last):"]
    for depth in range(5):
        trace += [f'  File "/job/part{depth}.py", line {depth}, in f', f"    call_{depth}()"]
    trace += ["my.Trouble: first", "and the second line of the message"]
    others = noise(1, 9_000, 64).decode().splitlines()
    lines = others[:5_000]
    for number, line in enumerate(trace):
        lines += [f"[rank77]: {line}", *others[5_000 + 63 * number : 5_063 + 63 * number]]
    lines += others[6_000:]
    transcript = read(["-"], io.BytesIO("\n".join(lines).encode()))
    (error,) = [event for event in transcript.events if event.type]
    assert (error.type, error.rank, len(error.frames)) == ("my.Trouble", 77, 5)
    assert [frame.code for frame in error.frames] == [f"call_{depth}()" for depth in range(5)]


def test_what_is_new_is_read_within_a_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(skim, "measure_for", lambda files: replace(TIGHT, novel=50))
    lines = noise(1, 5_000).decode().splitlines()
    lines[2_500] = "the vocabulary has been enlarged"
    events = read(["-"], io.BytesIO("\n".join(lines).encode())).events
    assert "the vocabulary has been enlarged" in [event.text for event in events]


def test_a_big_file_of_utf_16(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(skim, "measure_for", lambda files: TIGHT)
    text = noise(1, 3_000).decode() + "RuntimeError: CUDA error: out of memory\n" + noise(2, 3_000).decode()
    transcript = read(["-"], io.BytesIO(text.encode("utf-16")))
    assert [(event.type, event.line) for event in transcript.events if event.type] == [
        ("RuntimeError", 3_001)
    ]


def test_many_inputs_share_the_measure() -> None:
    assert measure_for(1) == measure_for(8) == Measure()
    many = measure_for(1_024)
    assert 1_024 * (many.head + many.tail) < 100_000
    assert all(value > 0 for value in asdict(many).values())


class TestScanner:
    def hot(self, text: bytes, literals: list[bytes], novel: int = 0) -> list[int]:
        return Scanner(literals, novel).look(text)[1]

    def test_a_literal_is_found_whatever_its_numbers_and_spaces(self) -> None:
        literals = [b"Tried to allocate 2.00 GiB", b"NVRM: Xid"]
        assert self.hot(
            b"x\nTried  to\tallocate 31.50 GiB.\ny\nNVRM: Xid (PCI:0000:3b:00): 79\n", literals
        ) == [1, 3]
        assert self.hot(b"Tried to read\nXid\n", literals) == []

    @pytest.mark.parametrize(
        "literal", [b"rror", b"Killed", b"ld:", b"free()", b"is not divisible by", "错误".encode()]
    )
    def test_parts_of_words(self, literal: bytes) -> None:
        assert self.hot(b"nothing here\nabc" + literal + b"xyz\n", [literal]) == [1]

    def test_every_literal_of_the_catalog_is_found(self, rules: RuleSet) -> None:
        literals = [text.encode() for text in rules.literals()]
        hot = set(self.hot(b"".join(b": " + literal + b" \n" for literal in literals), literals))
        lost = [
            literal
            for number, literal in enumerate(literals)
            if number not in hot and sum(chr(char).isalpha() for char in literal) >= 4
        ]
        assert lost == []

    def test_equal_lines_wear_out(self) -> None:
        scanner = Scanner([b"Error"], 0)
        block = b"".join(b"Error %d\n" % number for number in range(1_000))
        assert len(scanner.look(block)[1]) == scan.EQUAL
        assert scanner.look(block) == (1_000, [])
        scanner.restart()
        assert len(scanner.look(block)[1]) == scan.EQUAL

    def test_lines_that_differ_in_hexadecimal_numbers_are_alike(self) -> None:
        rng = random.Random(1)
        lines = [b"request %x of %x" % (rng.getrandbits(128), rng.getrandbits(64)) for _ in range(4_000)]
        scanner = Scanner([b"Error"], 100)
        assert len(scanner.look(b"\n".join(lines) + b"\nError\n")[1]) <= 101
        assert scanner.look(b"\n".join(lines) + b"\nrequest Error\n")[1] == [4_000]

    def test_states_of_a_bar_are_looked_at_one_by_one(self) -> None:
        scanner = Scanner([b"Error"], 0)
        bar = b"\r".join(b"%d%%|##| %d/100" % (number, number) for number in range(100))
        assert scanner.look(bar + b"\n") == (1, [])
        assert scanner.look(bar + b"\rError\n") == (1, [0])

    def test_a_new_state_of_a_bar_before_a_known_line_makes_no_new_line(self) -> None:
        scanner = Scanner([b"UserWarning"], 0)
        line = b"a.py:1: UserWarning: old"
        assert scanner.look(line + b"\n") == (1, [0])
        assert scanner.look(b"5%|#| 1/9 [1it/s]\r" + line + b"\n") == (1, [])
        assert scanner.look(b"5%|#| 1/9 [1it/s]\ra.py:1: UserWarning: new\n") == (1, [0])

    def test_states_seen_before_cost_nothing_in_another_order(self) -> None:
        scanner = Scanner([b"Error"], 100)
        states = [b"Epoch %d: %d%%|%s| 1/9" % (number, number, b"#" * number) for number in range(9)]
        assert scanner.look(b"\r" + b"\r".join(states) + b"\n") == (1, [])
        assert scanner.look(b"\n".join(states) + b"\n") == (9, [])
        left = scanner.credit
        assert scanner.look(b"\r" + b"\r".join(states[::-1]) + b"\n") == (1, [])
        assert scanner.credit == left

    def test_a_known_line_with_the_line_end_of_windows_is_hot_again(self) -> None:
        scanner = Scanner([b"Error"], 0)
        assert scanner.look(b"Error\nfine\n") == (2, [0])
        assert scanner.look(b"Error\r\nfine\r\n") == (2, [0])

    def test_lines_of_one_kind_are_hot_a_limited_number_of_times(self) -> None:
        scanner = Scanner([b"NCCL INFO"], 0)
        lines = [b"NCCL INFO comm 0x%012x rank %d" % (0xA0000000000 + n, n % 64) for n in range(4_000)]
        assert (
            sum(len(scanner.look(b"\n".join(lines[at : at + 8]) + b"\n")[1]) for at in range(0, 4_000, 8))
            <= 260
        )

    def test_nothing_grows_without_bound(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(scan, "_SHAPES", 500)
        monkeypatch.setattr(scan, "_WORDS", 500)
        rng = random.Random(2)
        letters = "ghijklmnopqrstuvwxyz"
        scanner = Scanner([b"Error"], 10)
        for _ in range(10):
            words = ("".join(rng.choices(letters, k=12)) for _ in range(2_000))
            scanner.look("".join(f"{word} Error\n{word}\n" for word in words).encode())
        sizes = (scanner.seen, scanner.hot, scanner.kinds, scanner.alike, scanner.counts)
        assert max(len(one) for one in sizes) <= 501
        assert len(scanner.words) < 5_000

    def test_the_last_line_may_have_no_end(self) -> None:
        assert Scanner([b"Error"], 0).look(b"a\nError") == (1, [1])
        assert stripped(b" GPU 12  has ") == b"GPU has"


def test_what_says_the_same_again_is_counted_and_what_fails_among_it_is_read(
    rules: RuleSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(3)
    lines = noise(5, 12_000, 64).decode().splitlines()
    for at in range(60, 11_000, 2):  # each with another address
        lines[at] = (
            f"[rank{at % 64}]: /env/a.py:62: UserWarning: buffer 0x{rng.getrandbits(40):x} is deprecated"
        )
    failed = ("Traceback (most recent call last):", '  File "/job/t.py", line 3, in <module>', "    main()")
    message = (
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 5 has a total capacity"
    )
    trace = [f"[rank13]: {line}" for line in (*failed, f"{message} of 79.15 GiB")]
    lines[9_001:] = trace + [line for line in lines[9_001:] if not line.startswith("[rank13]")]
    read_lines: list[int] = []
    physical = Router.physical
    monkeypatch.setattr(
        Router,
        "physical",
        lambda self, number, *rest: read_lines.append(number) or physical(self, number, *rest),
    )
    found = report(("\n".join(lines) + "\n").encode(), TIGHT, rules, monkeypatch)
    assert [(item.rule, item.rank) for item in found.diagnoses[:1]] == [("cuda-oom-too-big", 13)]
    assert len(read_lines) < 4_000, "of 5,470 warnings with the lines around each"


def test_a_bar_that_was_redrawn_is_thinned() -> None:
    raw = b"\r".join(b"%d/1000 done" % number for number in range(1_000))
    assert thinned(raw).split(b"\r") == [b"0/1000 done", b"998/1000 done", b"999/1000 done"]
    assert thinned(b"a\rb") == b"a\rb"


class TestParts:
    """A file scanned in parts gives what one scanned as a whole gives."""

    @pytest.fixture
    def path(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        monkeypatch.setattr(parallel, "PART_BYTES", 300_000)
        monkeypatch.setattr(parallel, "processors", lambda: 3)
        monkeypatch.setattr(skim, "SPLIT_BYTES", 1)
        monkeypatch.setattr(skim, "measure_for", lambda files: TIGHT)
        lines = noise(1, 20_000).decode().splitlines()
        for number in (200, 5_555, 11_111, 17_777):
            frame = f'  File "a.py", line {number}, in f'
            lines[number : number + 3] = [
                "Traceback (most recent call last):",
                frame,
                f"KeyError: 'k{number}'",
            ]
        path = tmp_path / "big.log"
        path.write_text("\n".join(lines) + "\n")
        return path

    def errors(self, path: Path) -> list[int]:
        return [event.line for event in read([str(path)]).events if event.type]

    def test_the_same_as_in_one_part(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        parts = read([str(path)])
        monkeypatch.setattr(skim, "SPLIT_BYTES", 1 << 40)
        whole = read([str(path)])
        errors = [event for event in whole.events if event.type]
        assert [event.line for event in errors] == [201, 5_556, 11_112, 17_778]
        assert [(event.text, event.line, event.frames) for event in parts.events if event.type] == [
            (event.text, event.line, event.frames) for event in errors
        ]
        assert (parts.lines_read, parts.bytes_read) == (whole.lines_read, whole.bytes_read)

    def test_children_that_die(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys, "executable", "/bin/false")
        assert self.errors(path) == [201, 5_556, 11_112, 17_778]

    def test_no_children_can_be_started(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys, "executable", "/no/such/python")
        assert self.errors(path) == [201, 5_556, 11_112, 17_778]

    def test_without_line_ends_there_is_one_part(self, tmp_path: Path, path: Path) -> None:
        long = tmp_path / "long.log"
        long.write_bytes(b"word " * 2_500_000 + b"\nKeyError: 'x'\n")
        assert self.errors(long) == [2]


def test_skim_knows_the_triggers_it_was_given() -> None:
    assert b"a phrase of a rule" in Skim(lambda: ["a phrase of a rule"]).literals()
