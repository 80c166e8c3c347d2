"""Texts that talk about a failure are quoted; the same words of a run are not."""

from __future__ import annotations

import pytest

from torchdoctor.intake import read_text
from torchdoctor.model import EventKind, Form

MESSAGE = "mat1 and mat2 shapes cannot be multiplied (6x512 and 800x120)"
FULL = f"RuntimeError: {MESSAGE}"


def _live(text: str) -> list[str]:
    """The events that hold the message and are not quoted."""
    return [e.text for e in read_text(text).events if MESSAGE[:30] in e.text and not e.quoted]


QUOTED = {
    "expected failure": f"XFAIL tests/test_a.py::test_mm - {FULL}\n",
    "unexpected pass": f"XPASS tests/test_a.py::test_mm - {FULL}\n",
    "skipped": f"SKIPPED [1] tests/test_gpu.py:9: {FULL}\n",
    "verbose outcome": f"tests/test_a.py::test_mm XFAIL ({FULL})   [ 33%]\n",
    "unittest": f"test_mm (tests.T.test_mm) ... skipped '{FULL}'\n",
    "section of expected failures": (
        f"== XFAILURES ==\n__ test_mm __\nE   {FULL}\n\ntests/a.py:12: RuntimeError\n"
    ),
    "section of passed tests": f"== PASSES ==\n--- Captured stderr call ---\nERROR trainer: {FULL}\n",
    "comment": f"import torch\n# {FULL}\nx = torch.rand(6, 512)\n",
    "comment behind a statement": f"loss 0.1\ny = layer(x)  # {FULL}\nloss 0.2\n",
    "handler": f"try:\n    y = layer(x)\nexcept RuntimeError:  # {FULL}\n    raise\n",
    "docstring": f'def f(a, b):\n    """Raises:\n        {FULL}\n    """\n    return a @ b\n',
    "key of a dictionary": f'HINTS = {{\n    "{MESSAGE}": "check in_features",\n}}\n',
    "item of a list": f'PATTERNS = (\n    r"{MESSAGE}",\n)\n',
    "assignment between fences": (
        f'# Notes\n\nI keep my rules so:\n\n```toml\ntext = "{MESSAGE}"\n```\n\nIt is read once.\n'
    ),
    "sentence": f'The message "{MESSAGE}" means that the last dimension differs from in_features.\n',
    "questions and answers": (
        f"# FAQ\n\n**Q: I get `{FULL}`, what now?**\nA: Look at in_features of my example.\n\n"
        f"**Q: `{MESSAGE}`?**\nA: The same.\n\n**Q: Does it run on a Mac?**\nA: It does, as I tried.\n"
    ),
    "questions without a mark for the answers": (
        f"# FAQ\n\n**Q: `{FULL}`?**\nSee my notes on in_features.\n\n**Q: `{MESSAGE}`?**\nThe same.\n\n"
        "**Q: Does it run on a Mac?**\nIt does.\n"
    ),
    "reStructuredText": (
        f"f(a, b)\n\n    a (Tensor): the first\n\n.. warning::\n   {FULL}\n\n   is what it raises.\n"
    ),
    "list of changes": (
        f"Changelog\n=====\n\n1.4.2\n-----\n* Fixed {FULL} in eval.\n"
        f"* A clear message.\n\n1.4.1\n-----\n* New.\n"
    ),
    "history": f"commit 0d3c1b2a\nAuthor: A <a@example.org>\n\n    Fix {FULL}\n",
    "short history": f"0d3c1b2 Fix {FULL}\n9a8b7c6 Bump\n1122334 Docs\n",
    "table": f'id,pattern,action\n1,"{MESSAGE}",restart\n',
    "statement of SQL": f"INSERT INTO p VALUES (1, '{MESSAGE}');\n",
    "page": f"<h2>Errors</h2>\n<pre>{FULL}</pre>\n",
    "echo of a shell": f"+ echo 'no {FULL} found'\nno {FULL} found\n+ exit 0\n",
    "recited in Python": f">>> msg\n'{MESSAGE}'\n>>> print(msg)\n{MESSAGE}\n",
    "found in a document": f"$ grep -rn mat1 docs\ndocs/faq.md:88:{FULL}\n",
    "doctest": (
        f"Text of a page.\n\n    >>> a @ b\n    Traceback (most recent call last):\n        ...\n    {FULL}\n"
    ),
    "list of tickets": f"#1203  open    {FULL} in eval   bug\n#1190  closed  Docs   docs\n",
}

LIVE = {
    "only a short summary": f"FAILED tests/test_a.py::test_mm - {FULL}\n1 failed in 0.9s\n",
    "bare message": f"{MESSAGE}\n",
    "bare exception at a prompt": f">>> a @ b\n{FULL}\n",
    "failure that shows generated code": (
        f"torch._inductor.exc.InductorError: {FULL}\n"
        "def triton_poi_0(in_ptr0, out_ptr0, XBLOCK : tl.constexpr):\n    xnumel = 419\n"
        "    xoffset = tl.program_id(0) * XBLOCK\n    x0 = xindex\n    tmp0 = tl.load(in_ptr0 + (x0), None)\n"
        "    tmp1 = tmp0.to(tl.float32)\n    tmp2 = tmp1.to(tl.float8e4nv)\n"
    ),
    "margin of hashes": (
        f'# Traceback (most recent call last):\n#   File "a.py", line 1, in f\n#     a @ b\n# {FULL}\n'
    ),
    "root's prompt": (
        f'# python a.py\nTraceback (most recent call last):\n  File "a.py", line 1, in f\n    a @ b\n{FULL}\n'
    ),
    "field of a record": f'{{\n  "level": "error",\n  "message": "{FULL}"\n}}\n',
    "column of a log": f'time,level,message\n2025-03-02T10:11:12Z,ERROR,"{FULL}"\n',
    "log found by grep": f"$ grep -n Error run.log\nrun.log:88:{FULL}\n",
    "code, then its failure": f"import torch\na @ b\n{FULL}\n",
    "captured output of a failed test": (
        f"== FAILURES ==\n__ test_a __\n--- Captured stderr call ---\n{FULL}\n"
    ),
}


@pytest.mark.parametrize("name", QUOTED)
def test_quoted(name: str) -> None:
    assert _live(QUOTED[name]) == []


@pytest.mark.parametrize("name", LIVE)
def test_not_quoted(name: str) -> None:
    assert _live(LIVE[name])


def test_the_short_summary_does_not_repeat_a_traceback() -> None:
    text = (
        "== FAILURES ==\n__ test_mm __\ntests/a.py:5: in test_mm\n    a @ b\n"
        f"E   {FULL}\n== short test summary info ==\n"
        "FAILED tests/a.py::test_mm - RuntimeError: mat1 and mat2 shapes cannot be mul...\n"
        "FAILED tests/a.py::test_other - KeyError: 'x'\n"
    )
    events = read_text(text).events
    assert [e.kind for e in events if "mat1" in e.text and not e.quoted] == [EventKind.EXCEPTION]
    assert [e.quoted for e in events if "test_other" in e.text] == [False]


def test_sentences_with_other_numbers_are_a_programs() -> None:
    lines = [
        f"\tsize mismatch for layer{i}.weight: copying a param with shape torch.Size([1000, 512]) from "
        f"checkpoint, the shape in current model is torch.Size([10, 512]).\n"
        for i in range(4)
    ]
    assert read_text("".join(lines)).form is Form.LOG


@pytest.mark.parametrize(
    "text",
    [
        (
            '"Traceback (most recent call last):\\n'
            '  File \\"/a/b.py\\", line 9, in f\\n    x\\nKeyError: \'text\'"'
        ),
        (
            '{"exc": "Traceback (most recent call last):\\n'
            '  File \\"/a/b.py\\", line 9, in f\\nKeyError: \'text\'\\n"}'
        ),
        '{"m": {"py": "Traceback (most recent call last):\\n  File \\"/a/b.py\\", line 9, in f\\nKeyError: '
        '\'text\'\\n", "timestamp": "17"}}',
        "b'Traceback (most recent call last):\\n  File \"/a/b.py\", line 9, in f\\nKeyError: \\'text\\'\\n'",
    ],
)
def test_a_message_keeps_its_own_quotation_mark(text: str) -> None:
    (event,) = (e for e in read_text(text).events if e.kind is EventKind.EXCEPTION)
    assert (event.type, event.text) == ("KeyError", "'text'")


def test_a_time_that_is_none_is_left_out() -> None:
    text = '{"log":"KeyError: \'text\'\\n","stream":"stderr","time":"\\u0000"}'
    assert [(e.type, e.text) for e in read_text(text).events] == [("KeyError", "'text'")]


CRASHED = (
    'Fatal Python error: Aborted\n\nStack (most recent call first):\n  File "/a/ops.py", line 9 in forward\n'
)


def test_output_before_a_crash_in_a_question_is_of_the_same_run() -> None:
    said = "The card is an old one.\nIt may not be used at all.\nIt fails in the same way after a restart.\n"
    line = "rocBLAS error: Could not initialize Tensile host:"
    lines = f"VAE device: cuda:0\n\n{line}\nthe path was not found\n{CRASHED}"

    def live(text: str) -> bool:
        whole = read_text(text)
        assert whole.form is Form.PROSE
        return any(event.text == line and not event.quoted for event in whole.events)

    assert live(f"{said}\n{lines}")
    # a sentence ends the output: what stands above it may be about anything
    assert not live(f"{line}\n{said}\n{CRASHED}")


def test_the_report_of_a_program_is_a_log() -> None:
    text = (
        f"# Some-UI Error Report\n## Error Details\n- **Node ID:** 7\n- **Exception Message:** {MESSAGE}\n\n"
        '## Stack Trace\n```\n  File "/a/b.py", line 9, in f\n    a @ b\n```\n'
    )
    assert _live(text)
    assert read_text(text).form is Form.LOG


@pytest.mark.parametrize(
    "sentence",
    [
        f"The error message {FULL} indicates that the last dimension differs.\n",
        f"This warning text: {FULL} usually means a wrong in_features.\n",
        "RuntimeError: This indicates that the shapes of mat1 and mat2 shapes cannot be multiplied (6x5).\n",
    ],
)
def test_a_sentence_that_explains_a_message_is_no_failure(sentence: str) -> None:
    assert _live(sentence + "Look at both shapes.\n") == []


SETTINGS = [f"key{i} = {i}" for i in range(8)]


def test_records_of_a_log_are_no_settings() -> None:
    records = [f"2026-03-07 13:11:{i:02d} rank=0 step={i} ppl=3.1{i} mem=24.5" for i in range(20)]
    end = "slurmstepd: error: *** JOB 5 ON n1 CANCELLED AT 2026-03-07T14:00:17 DUE TO TIME LIMIT ***"
    whole = read_text("\n".join([*records, end]))
    assert whole.form is Form.LOG
    assert not whole.events[-1].quoted
    # a key and its value are, one a line, also where the value has keys of its own
    assert read_text("\n".join([*SETTINGS, 'command = "python x.py lr=0.1 wd=0.2"'])).form is Form.SOURCE_CODE


def test_a_program_that_prints_its_settings_and_fails() -> None:
    failed = f'Traceback (most recent call last):\n  File "a.py", line 1, in f\n    a @ b\n{FULL}\n'
    assert _live("\n".join([*SETTINGS * 4, failed]))


CUT = 'Traceback (most recent call last):\n  File "a.py", line 9, in <module>\n    f()\n  File "a.py", li\n'


def test_the_title_tells_the_message_that_the_traceback_lost() -> None:
    title = read_text(f"# {FULL}\n\n{CUT}").events[0]
    assert (title.told, title.type, title.text) == (True, "RuntimeError", MESSAGE)


def test_the_title_is_a_title_where_the_failure_itself_is_there() -> None:
    title = read_text(f"# {FULL}\n\n{CUT}ValueError: no data\n").events[0]
    assert title.quoted
    assert not title.told


def test_a_patch_below_shows_what_a_message_was_quoted_for() -> None:
    patch = f"```diff\n@@ -3,2 +3,4 @@ Questions\n+- `{FULL}`\n+    1. Compare the sizes.\n```\n"
    assert _live(f"new answer for `{FULL}`\n\n")
    assert not _live(f"new answer for `{FULL}`\n\n{patch}")


def test_what_strings_finds_in_a_library_happened_to_nobody() -> None:
    assert not _live(f"$ strings -n 8 libtorch_cuda.so | head\n_ZN3c10\n{FULL}\nindex out of bounds\n")
    assert _live(f"$ strings lib.so\n_ZN3c10\n$ python train.py\n{FULL}\n")


def test_a_handbook_that_remarks_on_each_message() -> None:
    entries = [
        f' * "{FULL}" \u2013 compare the sizes.',
        ' * "CANCELLED AT ... DUE TO TIME LIMIT" \u2013 the limit of the partition is 4 hours.',
        ' * "RuntimeError: NCCL error ... unhandled system error" \u2013 set the interface.',
    ]
    head = "My job died, what now? Before you ask me, look at the end of the output:"
    assert not _live("\n".join([head, "", *entries]))
    assert _live(f"My job died, what now?\n\n{FULL}\n")


def test_settings_that_a_command_prints() -> None:
    dump = (
        "$ python -m lab.train --print-config\namp:\n  enabled: true\n  min_scale_action: error\n"
        'callbacks:\n  on_nan: skip   # skip | stop ("Loss is nan, stopping training")\nlog:\n'
        "  level: ERROR\n(config only, nothing started)\n"
    )
    assert read_text(dump).form is Form.SOURCE_CODE
    assert read_text(dump + "ValueError: bad value\n").form is not Form.SOURCE_CODE


TALK = {
    "a study": (
        f"[W 2025-03-14 09:13:21,748] Trial 3 failed because of the following error: {FULL}\n"
        "[I 2025-03-14 09:20:14,033] Trial 4 finished with value: 0.84.\n  Number of failed trials: 1\n"
        "refit done, test AUC 0.84\n"
    ),
    "an assistant": (
        "You asked: what does this error mean?\n\nGreat question! Let's break it down.\n\n"
        f"> {FULL}\n\nWould you like a few practice questions?\n"
    ),
    "a prompt": (
        "<role>\nYou are a bot.\n</role>\n<rules>\n- thank you\n</rules>\n<example>\n"
        f"USER: {FULL}\nBOT: help me with the sizes.\n</example>\n"
    ),
    "a list of issues": f"#733  {FULL}        bug, info    today\n#731  Docs    docs    today\n",
    "results of a search": f"About 48,300 results\n\n{FULL}\n12 answers\n\nPeople also ask\n  Why?\n",
    "a blog": f"---\ntitle: how to fix it\n---\n\n## Cause\n\n> {FULL}\n\n## Fix\n\npad.\n",
}


@pytest.mark.parametrize("text", TALK.values(), ids=TALK)
def test_what_is_said_about_failures(text: str) -> None:
    read = read_text(text)
    assert not [e for e in read.events if MESSAGE[:30] in e.text and not (e.quoted or e.recovered)] or (
        read.ending.value == "good"
    )
