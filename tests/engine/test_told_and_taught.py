"""One message, told by somebody whom it befell, and shown in a text that teaches: the first is a failure.

The messages are those of the fixtures that consist of a single line of an exception, or end in one.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from torchdoctor.catalog import load
from torchdoctor.engine.diagnose import diagnose
from torchdoctor.engine.factbook import FactBook
from torchdoctor.intake.transcript import read_text

FIXTURES = Path(__file__).parents[2] / "fixtures"
EVERY = 9  # of nearly 600 messages; all of them take half a minute

TOLD = {
    "question": "Hi, my training fails with this error:\n\n{}\n\nAny ideas what I can do?\n",
    "form": "### What happened?\n\nTraining stops.\n\n```\n{}\n```\n\n### Versions\n\ntorch 2.3.1\n",
    "chinese": "请问这个报错怎么解决？\n\n```\n{}\n```\n\ntorch 2.1，Ubuntu\n",
    "chinese-inline": "训练时报错 {} ，怎么办？\n",
    "german": "Beim Training bekomme ich folgende Meldung:\n\n{}\n\nWas mache ich falsch?\n",
    "japanese": "学習を始めると次のエラーが出ます。\n\n{}\n\nどうすればよいでしょうか。\n",
    "korean": "학습을 시작하면 다음 에러가 납니다.\n\n{}\n\n어떻게 해결하나요?\n",
    "russian": "У меня при запуске обучения вылетает ошибка:\n\n{}\n\nЧто делать?\n",
    "inline": 'I get "{}" when I start training. How do I fix this?\n',
    "quoted": "I get this when I start my script:\n\n> {}\n\nWhat does it want from me?\n",
    "one-line": "my run died with: {}\n",
}
TAUGHT = {
    "article": "How to fix common errors\n\nWhy it happens\nIt reads\n\n{}\n\nSolution\nCheck it.\n",
    "chinese": "报错解决汇总\n\n经常会遇到：\n\n{}\n\n原因\n输入不对。\n\n解决方法\n检查输入。\n",
    "japanese": "この記事では、よく出るエラーを紹介します。\n\n{}\n\n入力を確認しましょう。\n",
    "sentence": 'The message "{}" means that the input is not what the layer expects.\n',
    "changes": "## 1.2.0\n\n- Fixed `{}` with empty batches\n- New option `--fast`\n- Docs\n",
    "commit": "commit 9f1c2ab04e7d\nAuthor: L <l@x.org>\nDate:   Tue Mar 4 2025\n\n    Avoid {}\n",
    "answers": "FAQ\n\nQ: {}\nA: Check the input.\n\nQ: Is there a GUI?\nA: No.\n",
    "developer": "Raise `{}` only in strict mode; otherwise go on as before.\n",
    "search": "docs/errors.md:12:{0}\nsrc/x.py:8:    # {0}\n",
}


def _answer(text: str) -> str | None:
    diagnoses = diagnose(read_text(text), FactBook(), load()).diagnoses
    return diagnoses[0].rule if diagnoses else None


@cache
def _messages() -> tuple[tuple[str, str], ...]:
    found: dict[str, str] = {}
    for path in sorted(FIXTURES.glob("*/*/input.txt")):
        lines = path.read_text(errors="replace").strip("\n").split("\n")
        group = path.parent.parent.name
        if re.match(r"[A-Z]\w*(?:Error|Exception): [^{}\\]+$", lines[-1]):
            found.setdefault(lines[-1], group)
    chosen = list(found.items())[::EVERY]
    return tuple((rule, line) for line, rule in chosen if _answer(line) == rule)


def test_there_are_messages() -> None:
    assert len(_messages()) > 30


@pytest.mark.parametrize("form", TOLD)
def test_what_befell_somebody_is_a_failure(form: str) -> None:
    assert [(rule, line) for rule, line in _messages() if _answer(TOLD[form].format(line)) != rule] == []


@pytest.mark.parametrize("form", TAUGHT)
def test_what_a_text_teaches_is_none(form: str) -> None:
    told = [(line, _answer(TAUGHT[form].format(line))) for _, line in _messages()]
    assert [item for item in told if item[1] is not None] == []
