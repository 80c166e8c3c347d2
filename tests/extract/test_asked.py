"""What a message asks its reader to do, in its own words; what is no such sentence."""

from __future__ import annotations

import pytest

from torchdoctor.extract.asked import asked, choice, setting


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
        (
            "Turning needs knobs (`pip install 'knobs>=2'`). It does.",
            "Turning needs knobs (`pip install 'knobs>=2'`)",
        ),
        ("Loose. You can use tight=True to turn it.", "You can use tight=True to turn it"),
        ("You can see the knob.", None),
        ("If it is loose, set tight=True. Bye.", "If it is loose, set tight=True"),
        ("You need to have knobs installed to turn.", "You need to have knobs installed to turn"),
        ("No knob here.\nRestart with --knob on.", "Restart with --knob on"),
        # what points back comes with what it points to
        ("No turns. Knobs are missing. Please install them.", "Knobs are missing. Please install them"),
        ("Please report this issue to the makers. Please update knobs.", "Please update knobs"),
        ("Call to the knob failed. Start request repeated too quickly.", None),
        # code under it, between fences, at a prompt, or set in
        (
            "Loose.\nAssuming _n_ is the value in k.json, you can run this:\n"
            "  ```python\n  import k\n\n  k.turn(_n_)\n  ```\n",
            "Assuming _n_ is the value in k.json, you can run this: import k; k.turn(_n_)",
        ),
        (
            "Please use the turner:\n\n  >>> import k\n  >>> k.turn()\n\nMore is elsewhere.",
            "Please use the turner: import k; k.turn()",
        ),
        ("Please run this command:\n\n    knob --turn\n", "Please run this command: knob --turn"),
        (
            "Please use a knob of:\n  if there is one\n  else none",
            "Please use a knob of: if there is one else none",
        ),
        (
            "You cannot turn a painted knob with `turn()` make sure to pass a bare knob when turning.",
            "make sure to pass a bare knob when turning",
        ),
        ("It is turned to make sure that nothing is loose.", None),
        ("Please report this bug.", None),
        ("The knob is set. It was used.", None),
        ("", None),
    ],
)
def test_a_message_says_what_to_do(text: str, words: str | None) -> None:
    assert asked(text) == words


def test_a_line_that_hands_an_option_on_names_what_its_message_is_about() -> None:
    lines = ["main()", "check_knob_map(args.knob_map)", "raise ValueError("]
    assert setting("The supplied knob map (left_hand) does not exist", lines) == "--knob-map left_hand"
    assert setting("The supplied knob map is empty", lines) == "--knob-map"
    assert setting("The map (left_hand) does not exist", lines) is None


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("--knob-size must be at least 1", "--knob-size"),
        ("The server refused: start it with --knob-size 3", "--knob-size"),
        ("KNOB_SIZE=7 is no size of a knob", "KNOB_SIZE"),
        ("`turns` must be positive, but is -1", "turns"),
        ("Expected argument `turns` to be one of 1, 2", "turns"),
        ("knob_size must be divisible by 2", "knob_size"),
        ("Turner: knob_size has to be even", "knob_size"),
        ("The knob must be turned", None),
        ("CUDNN_STATUS_BAD_PARAM", None),
        ("Could not turn `turns`, which is late", None),
    ],
)
def test_a_message_names_what_it_is_about(text: str, name: str | None) -> None:
    assert setting(text) == name


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (
            "Turner expects turn_mode to be one of ['left', 'right'], but got half",
            ("turn_mode", ("left", "right"), "half"),
        ),
        (
            "Expected argument `turn` to be one of ('a', 'b', None), but got x.",
            ("turn", ("a", "b", "None"), "x"),
        ),
        ("The 'turn' parameter of Knob must be a str among {'a', 'b'}.", ("turn", ("a", "b"), None)),
        ("turn_mode should be one of 'a', 'b' or 'c'", ("turn_mode", ("a", "b", "c"), None)),
        ("--turn must be one of [left, right]", ("--turn", ("left", "right"), None)),
        ("turn_share must be in [0, 1]", None),  # a range
        ("turn_mode must be one of left, right", None),  # where the list ends is not shown
        ("It should be one of ('a', 'b')", None),
    ],
)
def test_a_message_lists_the_values_of_a_setting(
    text: str, found: tuple[str, tuple[str, ...], str | None] | None
) -> None:
    assert choice(text) == found
