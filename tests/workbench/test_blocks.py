"""The form of ``.cases`` files: what is written is read back byte for byte, and what is wrong is told."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from torchdoctor.workbench.blocks import MAX_INLINE, block, is_inline, parse, written
from torchdoctor.workbench.case import Case

HEAD = "=== {name} bytes={size} origin=captured rule=some-rule{more}\n"


def held(*inputs: bytes, more: str = "") -> bytes:
    names = (f"case-{number}" for number in range(len(inputs)))
    return b"".join(
        HEAD.format(name=name, size=len(data), more=more).encode() + data + b"\n"
        for name, data in zip(names, inputs, strict=False)
    )


def test_a_file_is_read() -> None:
    text = (
        b"# seen on two nodes\n# the host is replaced\n"
        b"=== two-ranks bytes=4 origin=reported rule=nccl-timeout also=nccl-remote-error,gloo-peer-lost "
        b'standing=possible rank=3 suspect=DistError frame="Cell In[4]:1" torch=2.3\n'
        b"a\r\nb\n"
        b"=== near bytes=0 origin=reconstructed rule=none\n"
        b"\n"
    )
    cases, problems = parse(text, "fixtures/nccl-timeout.cases")
    assert problems == []
    assert cases == [
        Case(
            "two-ranks",
            "nccl-timeout",
            of="nccl-timeout",
            origin="reported",
            also=("nccl-remote-error", "gloo-peer-lost"),
            standing="possible",
            rank=3,
            suspect="DistError",
            frame="Cell In[4]:1",
            torch="2.3",
            note="seen on two nodes\nthe host is replaced",
            data=b"a\r\nb",
            place="fixtures/nccl-timeout.cases:3",
        ),
        Case(
            "near", "none", of="nccl-timeout", origin="reconstructed", place="fixtures/nccl-timeout.cases:6"
        ),
    ]
    assert [case.near for case in cases] == [False, True]
    assert written(cases) == text


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # on a busy machine the first draw is
@given(
    st.lists(st.binary(max_size=60) | st.sampled_from([b"=== a bytes=3 x\n", b"# no note\n", b"\n\n"])),
    st.text(st.characters(blacklist_categories=["C"]), min_size=1, max_size=12),
)
def test_any_bytes_and_any_value_come_back(inputs: list[bytes], value: str) -> None:
    cases = [
        Case(f"c{number}", "some-rule", of="x", origin="captured", frame=value, note="a\n\nb", data=data)
        for number, data in enumerate(inputs)
    ]
    found, problems = parse(written(cases), "x.cases")
    assert problems == []
    assert [(case.data, case.frame, case.note) for case in found] == [
        (data, value, "a\n\nb") for data in inputs
    ]


@pytest.mark.parametrize("wrong", [*range(15), 17, 18, 40, 200, 999_999])
def test_a_wrong_count_is_told_with_its_line_and_the_right_one(wrong: int) -> None:
    data = b"one\n# two\n\n\nsix\n"
    text = held(b"before", data, b"after").replace(b"bytes=16 ", b"bytes=%d " % wrong)
    assert len(data) == 16
    cases, problems = parse(text, "x.cases")
    assert problems == [f"x.cases:3: case-1: bytes={wrong}, but the case on line 10 begins after 16 bytes"]
    assert [case.name for case in cases] == ["case-0", "case-2"]


@pytest.mark.parametrize("wrong", [0, 3, 5, 6, 70])
def test_a_wrong_count_at_the_end_of_the_file(wrong: int) -> None:
    text = held(b"six\n").replace(b"bytes=4 ", b"bytes=%d " % wrong)
    _, problems = parse(text, "x.cases")
    assert problems == [f"x.cases:1: case-0: bytes={wrong}, but the file ends after 4 bytes"]


@pytest.mark.parametrize(
    ("head", "complaint"),
    [
        ("=== a b bytes=1 origin=captured rule=r", "a: not understood from 'b bytes=1 origin=captured"),
        ("=== a bytes=1 origin=captured rule=r frame=In [1]:2", "a: not understood from '[1]:2' on"),
        ("=== ! bytes=1 origin=captured rule=r", '"!" is no name of a case'),
        ("=== a bytes=1 origin=dreamt rule=r", "a: origin is one of captured, reported, reconstructed"),
        ("=== a bytes=1 origin=captured rule=r rang=2", 'a: unknown key "rang"; did you mean "rank"?'),
        ("=== a bytes=1 origin=captured rule=r rank=x", "a: rank=x is no number"),
        ("=== a bytes=one origin=captured rule=r", "a: bytes=one is no number"),
        ("=== a bytes=1 rule=r", 'a: key "origin" is missing'),
        ("=== a bytes=1 origin=captured", 'a: key "rule" is missing'),
        ("=== a origin=captured rule=r", 'a: key "bytes" is missing'),
        ("=== a bytes=1 bytes=1 origin=captured rule=r", "a: bytes stands twice"),
        ("=== a bytes=1 origin=captured rule=r standing=sure", "a: standing is one of confirmed, possible"),
        ("=== case-0 bytes=1 origin=captured rule=r", "case-0: there is another case of this name above"),
        ("=== a bytes=1 origin=captured rule=r big=x.gz", "a: big=x.gz wants bytes=0"),
        ("=== a bytes=1 origin=captured rule=r machine=h999", "machines/h999.json: no such file"),
    ],
)
def test_a_faulty_head_is_told_and_the_others_are_read(head: str, complaint: str) -> None:
    text = held(b"before") + head.encode() + b"\nx\n" + held(b"", b"after").partition(b"\n\n")[2]
    cases, problems = parse(text, "x.cases")
    assert len(problems) == 1
    assert problems[0].startswith("x.cases:3: ")
    assert complaint in problems[0]
    assert [case.name for case in cases] == ["case-0", "case-1"]


def test_text_between_the_cases_is_told() -> None:
    _, problems = parse(b"stray\n" + held(b"one"), "x.cases")
    assert problems == ["x.cases:1: neither a note nor the head of a case: 'stray'"]
    for stray in (b"stray\n", b"# no case below\n", b"\n"):
        _, problems = parse(held(b"one") + stray, "x.cases")
        assert problems == [f"x.cases:1: case-0: bytes=3, but the file ends after {3 + len(stray)} bytes"]
    _, problems = parse(held(b"one")[:-1], "x.cases")
    assert problems == ["x.cases:1: case-0: no line break stands behind its input"]
    _, problems = parse(b"# no case below\n", "x.cases")
    assert problems == ["x.cases: a note stands at its end, without a case below it"]


def test_what_lies_in_the_folder_of_big_inputs(tmp_path: Path) -> None:
    (tmp_path / "big").mkdir()
    (tmp_path / "big" / "x.long.gz").write_bytes(gzip.compress(b"y" * 100_000))
    text = b"=== long bytes=0 origin=captured rule=x big=x.long.gz\n\n"
    (case,), problems = parse(text, str(tmp_path / "x.cases"))
    assert problems == []
    assert case.input() == b"y" * 100_000
    assert block(case) == text
    _, problems = parse(text.replace(b"x.long", b"x.gone"), str(tmp_path / "x.cases"))
    assert "x.gone.gz: no such file" in problems[0]


@pytest.mark.parametrize(
    ("data", "inline"),
    [
        (b"", True),
        ("größer\x1b[0m\r\n".encode(), True),
        (b"x" * MAX_INLINE, True),
        (b"x" * (MAX_INLINE + 1), False),
        (b"a\0b", False),
        ("größer".encode("latin-1"), False),
    ],
)
def test_what_stands_in_the_file_itself(data: bytes, inline: bool) -> None:
    assert is_inline(data) is inline
