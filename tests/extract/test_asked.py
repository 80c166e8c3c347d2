"""What a message asks its reader to do, in its own words; what is no such sentence."""

from __future__ import annotations

import pytest

from torchdoctor.extract.asked import asked


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "Can't turn the knob. Please provide a `turn` or use a different knob.",
            "Please provide a `turn` or use a different knob",
        ),
        ("no knob: Set turns=1, i.e. one turn, first. It may help.", "Set turns=1, i.e. one turn, first"),
        ("Knob is loose\nUse knob.tighten()", "Use knob.tighten()"),
        ("you need to install knobs>=2 to turn it", "you need to install knobs>=2 to turn it"),
        ("It turned. To fix this issue, use one knob. Bye.", "To fix this issue, use one knob"),
        ("To fix this, somebody turned it.", None),
        ("Please report this issue to the makers. Please update knobs.", "Please update knobs"),
        ("Call to the knob failed. Start request repeated too quickly.", None),
        ("Please report this bug.", None),
        ("The knob is set. It was used.", None),
        ("", None),
    ],
)
def test_a_message_says_what_to_do(text: str, words: str | None) -> None:
    assert asked(text) == words
