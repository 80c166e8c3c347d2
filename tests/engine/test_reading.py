"""What a failure that no rule knows says by itself."""

from __future__ import annotations

import pytest

from torchdoctor.catalog import RuleSet
from torchdoctor.engine import FactBook, diagnose
from torchdoctor.intake import read_text
from torchdoctor.model import Outcome
from torchdoctor.render import words

SITE = "/v/lib/python3.11/site-packages"


def raised(error: str, *frames: tuple[str, str, str]) -> str:
    lines = (f'  File "{file}", line 9, in {function}\n    {code}\n' for file, function, code in frames)
    return f"Traceback (most recent call last):\n{''.join(lines)}{error}\n"


MINE = ("/w/train.py", "<module>", "net(x)")
CALL = (f"{SITE}/torch/nn/modules/module.py", "_wrapped_call_impl", "return self._call_impl(*args, **kwargs)")
LINEAR = (f"{SITE}/torch/nn/functional.py", "linear", "return torch._C._nn.linear(a, b)")
WRAPPER = (f"{SITE}/widgets/core.py", "inner", "return func(*args, **kwargs)")
MADE = ("/w/net.py", "__init__", 'self.conv = nn.Conv2d(4, 8, 3, padding_mode="x")')
WIDGET = (f"{SITE}/widgets/core.py", "turn", 'raise ValueError("no")')


@pytest.mark.parametrize(
    ("text", "reading", "sentence"),
    [
        (
            raised("RuntimeError: weight should be 3-D, but got 2-D. Do not.", MINE, CALL, LINEAR),
            ("library-refused", "torch", "torch.nn.functional.linear", "3-D", "2-D"),
            "torch refused the call of torch.nn.functional.linear; it wants: 3-D; it got: 2-D.",
        ),
        (
            raised("ValueError: Got 3 widgets, expected 4 widgets", MINE, WRAPPER, WIDGET),
            ("library-refused", "widgets", "widgets.core.turn", "4 widgets", "3 widgets"),
            "widgets refused the call of widgets.core.turn; it wants: 4 widgets; it got: 3 widgets.",
        ),
        (
            raised("widgets.BrokenError: it broke", MINE, WIDGET),
            ("library-refused", "widgets", "widgets.core.turn", None, None),
            "widgets refused the call of widgets.core.turn.",
        ),
        (
            raised("ValueError: no mode", MADE, (f"{SITE}/torch/nn/modules/conv.py", "__init__", "raise")),
            ("library-refused", "torch", "nn.Conv2d", None, None),
            "torch refused the call of nn.Conv2d.",
        ),
        (
            raised(
                "ValueError: no rank",
                ("/w/net.py", "<module>", "conf = widgets.Config(2)"),
                ("<string>", "__init__", ""),
                (f"{SITE}/widgets/core.py", "__post_init__", "raise"),
            ),
            ("library-refused", "widgets", "widgets.Config", None, None),
            "widgets refused the call of widgets.Config.",
        ),
        (
            raised("ValueError: no mode", MINE, (f"{SITE}/widgets/_impl.py", "stretch", "raise")),
            ("library-refused", "widgets", "stretch", None, None),
            "widgets refused the call of stretch.",
        ),
        (
            raised("RuntimeError: no frob", ("/w/net.py", "forward", "y = torch.frob(x.sum(1))")),
            ("library-refused", "torch", "torch.frob", None, None),
            "torch refused the call of torch.frob.",
        ),
        (
            raised("RuntimeError: frob(): no frob", CALL, ("/w/net.py", "forward", "y = self.a(x)")),
            ("library-refused", "torch", "frob", None, None),
            "torch refused the call of frob.",
        ),
        (raised("proj.Spent: no units left", MINE), None, ""),  # its own exception, of no library
        (
            "terminate called after throwing an instance of 'widget'\n  what():  frob\n"
            "/lib/libwidget.so.3(_Z4frobv+0x12) [0x7f]\n",
            ("native-crash", "libwidget.so.3", None, None, None),
            "The process crashed in native code of libwidget.so.3.",
        ),
        (
            "[2023-05-29 07:07:25 +0000] [1] [ERROR] Worker (pid:10) was sent SIGTERM!\n",
            ("ended-outside", None, None, None, None),
            "The process was ended from outside; this text does not say why.",
        ),
    ],
)  # fmt: skip
def test_a_reading(text: str, reading: tuple[str | None, ...] | None, sentence: str, rules: RuleSet) -> None:
    report = diagnose(read_text(text), FactBook(), rules)
    assert report.outcome is Outcome.UNRECOGNISED
    assert report.suspect is not None
    found = report.suspect.reading
    told = (found.kind.value, found.owner, found.function, found.wants, found.got) if found else None
    assert told == reading
    assert words.reading(found) == sentence
