"""Values that texts show of expressions, tables that people paste, and what is read out of both."""

from __future__ import annotations

from importlib import import_module

import pytest

from tests.extract.test_readings import transcript
from torchdoctor.extract.readings.cured import cured
from torchdoctor.extract.readings.passage import Passage, Voice
from torchdoctor.extract.readings.pasted_tables import number, tables
from torchdoctor.extract.readings.shown import shown
from torchdoctor.extract.readings.snippets import snippets
from torchdoctor.extract.readings.values import arguments
from torchdoctor.model import FactValue


def passage(text: str) -> Passage:
    return Passage(transcript(text))


def values(text: str) -> set[tuple[str, str]]:
    return {(one.expression, one.value) for one in shown(passage(text))}


def facts(namespace: str, text: str) -> dict[str, FactValue]:
    module = import_module(f"torchdoctor.extract.readings.{namespace}")
    return {fact.name.partition(".")[2]: fact.value for fact in module.read(passage(text))}


@pytest.mark.parametrize(
    ("text", "expression", "value"),
    [
        (">>> x.grad\nNone", "x.grad", "None"),
        (">>> x.grad, x.is_leaf\n(None, False)", "x.is_leaf", "False"),
        ("print(k, v.grad_fn)\n0 None", "v.grad_fn", "None"),
        (
            "print(k, v.grad_fn)\n0 <AddBackward0 object at 0x7f>",
            "v.grad_fn",
            "<AddBackward0 object at 0x7f>",
        ),
        (
            'print("rank", r.rank, "max", m.max())\nrank tensor([], dtype=torch.int64) max 4.1',
            "m.max()",
            "4.1",
        ),
        ('print(f"{d}: rank {a.rank} of {a.n}")\ncuda: rank 60 of 64', "a.rank", "60"),
        ("  torch.linalg.cond(X)      tensor(6.1e+16)", "torch.linalg.cond(X)", "tensor(6.1e+16)"),
        ("I see that `w.is_leaf` is False here, why?", "w.is_leaf", "False"),
        ("x.std()  # -> nan", "x.std()", "nan"),
        (
            "img.isnan().mean()\ntensor(1., device='cuda:0')",
            "img.isnan().mean()",
            "tensor(1., device='cuda:0')",
        ),
        ('It says `python -c "import a; print(a.on())"` → True', "a.on()", "True"),
    ],
)
def test_a_value_that_is_shown(text: str, expression: str, value: str) -> None:
    assert (expression, value) in values(text)


@pytest.mark.parametrize(
    "text",
    ["print(k, v.grad_fn)\nWhy is it so?", "print(k, v)\n1 2 3", "print('a', b)\nb 3", "x = f(y)\n3"],
)
def test_a_line_of_another_form_shows_nothing(text: str) -> None:
    assert values(text) == set()


def test_arguments_are_parted_at_their_own_commas() -> None:
    assert arguments("a, f(b, c), 'x, y', [1, 2]") == ["a", "f(b, c)", "'x, y'", "[1, 2]"]


@pytest.mark.parametrize(
    "text",
    [
        "| torch | ms |\n|---|---|\n| 1.11 | 9.0 |\n| 2.0 | 60.1 |",
        "torch      ms\n1.11       9.0\n2.0        60.1",
        "torch\tms\n-----\t----\n1.11\t9.0\n2.0\t60.1",
        "torch,ms,n\n1.11,9.0,1\n2.0,60.1,1",
        "           ms\n  1.11     9.0\n  2.0      60.1".replace("           ms", "torch      ms"),
    ],
)
def test_tables_of_every_form(text: str) -> None:
    (table,) = tables(passage(text))
    assert table.heads[:2] == ("torch", "ms")
    assert [row.cells[1] for row in table.rows] == [("ms", "9.0"), ("ms", "60.1")]


def test_heads_without_one_over_the_labels() -> None:
    (table,) = tables(passage("              without    with ckpt\nblock.grad    0.3        None"))
    assert table.rows[0].label == "block.grad"
    assert table.rows[0].cells[-1] == ("with ckpt", "None")


@pytest.mark.parametrize(
    ("cell", "value"), [("4,51 ms", 4.51), ("norm 0.3", 0.3), ("-1e-3", -0.001), ("None", None)]
)
def test_the_number_of_a_cell(cell: str, value: float | None) -> None:
    assert number(cell) == value


def test_code_between_back_quotes_and_in_numbered_listings() -> None:
    found = passage("hm, `h = net(x); print(h.grad)` gives None\n 14  def f(x):\n 15      return x.grad")
    assert [one.text for one in snippets(found)] == [
        "h = net(x)",
        "print(h.grad)",
        " def f(x):",
        "     return x.grad",
    ]
    assert found.lines[1].voice is Voice.CODE


@pytest.mark.parametrize(
    "line", ["12 images in the first batch", "1 loss = 0.31", "3 of 8", "50  0.31  0.22"]
)
def test_a_line_that_begins_with_a_number_is_no_listing(line: str) -> None:
    assert passage(line).lines[0].voice is not Voice.CODE


def test_a_list_of_changes_and_a_solved_thread_are_over() -> None:
    assert cured(passage("tool 1.8\n### Fixed\n- black images\n### Added\n- x"))
    assert cured(passage("My loss was nan.\nEdit: solved, it was the data."))
    assert not cured(passage("My loss is nan. How can it be solved?"))


HELD = """Why is there no graph?
def stream():
    with torch.no_grad():
        while True:
            yield step()
for x in stream():
    print(net(x).requires_grad, torch.is_grad_enabled())
False False"""


def test_a_generator_that_holds_no_grad() -> None:
    assert set(facts("grad_mode", HELD)) == {"left_off", "effect"}
    moved = HELD.replace("            yield step()", "            x = step()\n    yield x")
    assert facts("grad_mode", moved) == {}


LEAF = """Why does my patch not change?
patch = torch.rand(3, requires_grad=True){}
loss(patch).backward()
print(patch.grad)
None"""


def test_a_leaf_that_was_moved() -> None:
    assert set(facts("leaf", LEAF.format(".cuda()"))) == {"not_leaf", "no_grad"}
    assert facts("leaf", LEAF.format("")) == {}
    assert facts("leaf", LEAF.format(".cuda()\npatch.retain_grad()")) == {}


HALF = """Why is it empty? I call model.half().
dtype      max
float32    11.2
float16    {}"""


def test_a_column_of_formats() -> None:
    assert set(facts("half_nan", HALF.format("nan"))) == {"output", "sound_otherwise"}
    assert facts("half_nan", HALF.format("11.1")) == {}


SPREAD = """Why do I get this?
adv = (adv - adv.mean()) / (adv.std() + 1e-8)
size 64 mean 0.1 std 0.9
size {0} mean 0.5 std {1}"""


def test_a_spread_of_one_value() -> None:
    assert set(facts("spread", SPREAD.format(1, "nan"))) == {"code", "nan", "single"}
    assert facts("spread", SPREAD.format(64, "0.8")) == {}


SPEED = """Why are my Linear layers (float32, A100) slower?
| torch | ms |
|---|---|
| 1.11.0 | 9.0 |
| 1.13.1 | {} |"""


def test_products_that_lost_tensor_cores() -> None:
    assert facts("tensor_speed", SPEED.format("60.1"))["slower"] is True
    assert "slower" not in facts("tensor_speed", SPEED.format("9.1"))
    assert facts("tensor_speed", SPEED.format("60.1").replace("A100", "V100")) == {}


LOSS = """Mein Verlust geht kaputt, warum?
d = torch.sqrt(x)
schritt 1 verlust 0.2
schritt 2 verlust {}"""


def test_a_loss_of_another_name() -> None:
    assert facts("loss_words", LOSS.format("nan")) == {"shown": True}
    assert facts("loss_words", LOSS.format("0.1")) == {}
    told = "My loss becomes NaN, why? `d = torch.sqrt(x)`"
    assert facts("loss_words", told) == {"told": True, "code": "d = torch.sqrt(x)"}
    assert facts("loss_words", told.replace("becomes", "would be")) == {}


CHECKPOINT = """My blocks get no gradient, why? The stem is frozen.
x = checkpoint(block, x{})

              without    with ckpt
block.grad    0.3        {}"""


def test_a_checkpoint_that_nothing_flows_through() -> None:
    assert set(facts("no_gradient", CHECKPOINT.format("", "None"))) == {"reentrant", "input", "stuck"}
    assert facts("no_gradient", CHECKPOINT.format(", use_reentrant=False", "None")) == {}
