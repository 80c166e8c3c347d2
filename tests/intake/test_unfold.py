"""Tracebacks in one line, and the errors of cells as an editor copies them."""

from __future__ import annotations

import pytest

from torchdoctor.intake.unfold import FrameMender, Unfolder

FOLDED = (
    'it died: Traceback (most recent call last): File "/srv/a.py", line 8, in <module> main() '
    'File "/srv/a.py", line 4, in main out = head(x) RuntimeError: sizes differ: 3 and 4'
)


def test_a_folded_traceback_gets_its_lines_back() -> None:
    assert Unfolder().take(FOLDED) == [
        "it died:",
        "Traceback (most recent call last):",
        '  File "/srv/a.py", line 8, in <module>',
        "    main()",
        '  File "/srv/a.py", line 4, in main',
        "    out = head(x)",
        "RuntimeError: sizes differ: 3 and 4",
    ]


def test_one_that_was_broken_inside_is_put_together() -> None:
    unfolder = Unfolder()
    first, second = FOLDED.split(" File ", 1)[0], 'File "/srv/a.py", line 4, in main out = head(x)'
    head = f'{first} File "/srv/a.py", line 8, in <module> main() {second}'
    assert unfolder.take(head) == []
    lines = unfolder.take("RuntimeError: sizes differ: 3 and 4")
    assert lines is not None
    assert lines[-1] == "RuntimeError: sizes differ: 3 and 4"
    assert unfolder.take("next line") is None


def test_one_that_never_ends_is_given_back_at_a_blank_line_and_at_the_end() -> None:
    head = FOLDED.partition(" RuntimeError")[0]
    unfolder = Unfolder()
    assert unfolder.take(head) == []
    given = unfolder.take("")
    assert given is not None
    assert given[-1] == ""
    assert '  File "/srv/a.py", line 4, in main' in given
    assert unfolder.take(head) == []
    assert unfolder.rest()[-1] == "    out = head(x)"
    assert unfolder.rest() == []


def test_other_lines_are_left_alone() -> None:
    unfolder = Unfolder()
    for line in (
        "Traceback (most recent call last):",
        '  File "/srv/a.py", line 8, in <module>',
        "{",
        '{"a": 1}',
        "",
    ):
        assert unfolder.take(line) is None


def test_a_cell_of_vs_code_loses_its_escapes() -> None:
    unfolder = Unfolder()
    assert unfolder.take('{"name": "OSError",') == ['OSError",']
    assert unfolder.take('\t"message": "cannot load \\"d:\\\\x.dll\\"",') == ['cannot load "d:\\x.dll"",']
    assert unfolder.take("----> 1 import torch") == ["----> 1 import torch"]
    unfolder.take("}")
    assert unfolder.take("after it") is None


def test_a_frame_broken_in_its_path_is_joined_at_its_first_line() -> None:
    mender = FrameMender()
    assert mender.take(3, '  File "D:\\course\\solution\\runner.p') == []
    assert mender.take(4, 'y", line 88, in run') == [
        (3, '  File "D:\\course\\solution\\runner.py", line 88, in run')
    ]
    assert mender.take(5, "    loss.backward()") is None


def test_a_frame_that_ends_for_good_is_given_back_with_its_own_number() -> None:
    mender = FrameMender()
    assert mender.take(3, '  File "/opt/net') == []
    assert mender.take(4, "Killed") == [(3, '  File "/opt/net'), (4, "Killed")]
    assert mender.take(5, '  File "/opt/la') == []
    assert mender.rest() == [(5, '  File "/opt/la')]
    assert mender.rest() == []


def test_a_frame_without_its_front_is_one_again() -> None:
    mender = FrameMender()
    assert mender.take(1, 'models/vit.py", line 77, in forward') == [
        (1, '  File "models/vit.py", line 77, in forward')
    ]
    assert mender.take(2, 'see "net.py", line 77, in forward') is None
    assert mender.take(3, 'print("a.py", line 3)') is None


@pytest.mark.parametrize(
    "lines",
    [
        ["  File ", '"/opt/net/data.py", line ', "308, in _loop"],
        ['  File "/opt/net/data.py", ', "line 308, in _loop"],
        ['  File "/opt/net/data.py", line', "308, in _loop"],
    ],
)
def test_a_frame_that_a_console_broke_at_blanks_is_joined(lines: list[str]) -> None:
    mender = FrameMender()
    for number, line in enumerate(lines[:-1]):
        assert mender.take(number + 5, line) == []
    assert mender.take(9, lines[-1]) == [(5, '  File "/opt/net/data.py", line 308, in _loop')]


def test_what_only_begins_like_one_is_given_back() -> None:
    mender = FrameMender()
    assert mender.take(3, "File ") == []
    assert mender.take(4, "not found") == [(3, "File "), (4, "not found")]
