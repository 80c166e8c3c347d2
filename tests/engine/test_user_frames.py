"""The user's frame: through wrappers, chains, helper threads, printed stacks and lines without frames."""

from __future__ import annotations

from pathlib import Path

import pytest
from case_files import catalogued

from torchdoctor.catalog import RuleSet
from torchdoctor.engine.diagnose import diagnose
from torchdoctor.engine.factbook import FactBook
from torchdoctor.engine.textfacts import event_value
from torchdoctor.intake import read_text
from torchdoctor.model import EventKind, Frame, Transcript
from torchdoctor.workbench.case import transcript
from torchdoctor.workbench.evaluate import Evaluation, Result
from torchdoctor.workbench.labelled import cases

FIXTURES = Path(__file__).parents[2] / "fixtures"

PACKAGES = "/opt/venv/lib/python3.11/site-packages"

OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of "
    "15.77 GiB of which 1.02 GiB is free."
)


def _frame(text: str, rules: RuleSet) -> Frame | None:
    report = diagnose(read_text(text), FactBook(None), rules)
    assert report.diagnoses, report.outcome
    return report.diagnoses[0].frame


def _place(text: str, rules: RuleSet) -> str | None:
    frame = _frame(text, rules)
    return f"{frame.file}:{frame.line}" if frame else None


def test_nearly_all_labelled_fixtures_show_the_labelled_frame(rules: RuleSet) -> None:
    results = [
        Result(case, diagnose(transcript(case), FactBook(None), rules), "", False)
        for case in cases(str(FIXTURES))
        if case.frame and case.machine is None
    ]
    share = Evaluation(tuple(results)).user_frames
    assert share.of >= 800
    wrong = [f"{item.case.name}: {item.differences}" for item in results if not item.user_frame_right]
    assert share.right >= 0.99 * share.of, "\n".join(wrong)


def test_a_worker_without_own_frames_points_at_the_loop_that_started_it(rules: RuleSet) -> None:
    text = f"""\
Traceback (most recent call last):
  File "/srv/p/train.py", line 15, in main
    for x in loader:
  File "{PACKAGES}/torch/_utils.py", line 733, in reraise
    raise exception
RuntimeError: Caught RuntimeError in DataLoader worker process 0.
Original Traceback (most recent call last):
  File "{PACKAGES}/torch/utils/data/_utils/collate.py", line 273, in collate_tensor_fn
    return torch.stack(batch, 0, out=out)
RuntimeError: stack expects each tensor to be equal size, but got [3, 8] at entry 0 and [3, 9] at entry 1
"""
    assert _place(text, rules) == "/srv/p/train.py:15"


def test_own_code_under_a_worker_comes_before_the_loop(rules: RuleSet) -> None:
    text = f"""\
Traceback (most recent call last):
  File "/srv/p/train.py", line 15, in main
    for x in loader:
  File "{PACKAGES}/torch/_utils.py", line 733, in reraise
    raise exception
RuntimeError: Caught RuntimeError in DataLoader worker process 0.
Original Traceback (most recent call last):
  File "{PACKAGES}/torch/utils/data/_utils/fetch.py", line 54, in fetch
    return self.collate_fn(data)
  File "/srv/p/data.py", line 40, in collate
    return torch.stack(batch)
RuntimeError: stack expects each tensor to be equal size, but got [3, 8] at entry 0 and [3, 9] at entry 1
"""
    assert _place(text, rules) == "/srv/p/data.py:40"


def test_a_line_without_frames_takes_those_of_the_exception_before_it(rules: RuleSet) -> None:
    text = f"""\
Traceback (most recent call last):
  File "/srv/p/loop.py", line 74, in step
    opt.step()
  File "{PACKAGES}/torch/optim/adam.py", line 20, in step
    loss = None
RuntimeError: CUDA error: unknown error
nvidia-smi: Unable to determine the device handle for GPU 0000:0A:00.0: GPU is lost.  Reboot the system to \
recover this GPU
"""
    assert _place(text, rules) == "/srv/p/loop.py:74"




def test_short_tracebacks_of_pytest(rules: RuleSet) -> None:
    text = f"""\
___ test_size ___
tests/test_eval.py:9: in test_size
    run(net)
src/head.py:8: in forward
    return self.fc(x)
{PACKAGES}/torch/nn/modules/linear.py:134: in forward
    return F.linear(input, self.weight, self.bias)
E   RuntimeError: mat1 and mat2 shapes cannot be multiplied (6x512 and 800x120)
"""
    frame = _frame(text, rules)
    assert frame is not None
    assert (frame.file, frame.line, frame.function, frame.package) == ("src/head.py", 8, "forward", "")


def test_without_own_frames_the_outermost_package_is_named(rules: RuleSet) -> None:
    text = f"""\
Traceback (most recent call last):
  File "{PACKAGES}/typing_extensions.py", line 3004, in wrapper
    return arg(*args, **kwargs)
  File "{PACKAGES}/axo/train.py", line 20, in main
    trainer.train()
  File "{PACKAGES}/transformers/trainer.py", line 2245, in train
    return inner_training_loop(
  File "{PACKAGES}/torch/nn/modules/linear.py", line 125, in forward
    return F.linear(input, self.weight, self.bias)
{OOM}
"""
    frame = _frame(text, rules)
    assert frame is not None
    assert (frame.package, frame.line) == ("axo", 20)


def test_a_stack_printed_under_a_record_belongs_to_it(rules: RuleSet) -> None:
    head = "W1128 00:50:25.732000 13020 torch/_dynamo/convert_frame.py:1994] [0/8]"
    text = "\n".join(
        (
            f"{head} torch._dynamo hit config.recompile_limit (8)",
            f"{head}    function: 'run' (/srv/p/net.py:14)",
            f"{head} User stack trace:",
            f'{head}   File "/srv/p/net.py", line 16, in run',
            f"{head}     return block(x)",
            f'{head}   File "/srv/p/net.py", line 10, in forward',
            f"{head}     return self.fc(x)",
            "",
        )
    )
    assert _place(text, rules) == "/srv/p/net.py:10"


def test_the_frame_of_a_pool_is_that_of_its_worker(rules: RuleSet) -> None:
    report = diagnose(transcript(catalogued()["own-code-error/neg-018"]), FactBook(None), rules)
    frame = report.diagnoses[0].frame
    assert frame is not None
    assert (frame.file, frame.line) == ("tally.py", 7)


SHAPES = "RuntimeError: mat1 and mat2 shapes cannot be multiplied (6x512 and 800x120)"

LINEAR = (
    f'  File "{PACKAGES}/torch/nn/modules/linear.py", line 134, in forward\n'
    "    return F.linear(input, self.weight, self.bias)\n"
)

NO_OWN = f"Traceback (most recent call last):\n{LINEAR}{SHAPES}\n\n"


def test_a_told_place_does_not_replace_a_frame(rules: RuleSet) -> None:
    own = NO_OWN.replace(LINEAR, f'  File "/srv/a.py", line 5, in f\n    y = g(x)\n{LINEAR}')
    assert _place(f"{own}\nit crashes in main.py line 33\n", rules) == "/srv/a.py:5"


QUOTED = "".join(
    f"> {line}\n"
    for line in (
        "Traceback (most recent call last):",
        '  File "m.py", line 5, in <module>',
        "    y = net(x)",
        *LINEAR.splitlines(),
        SHAPES,
    )
)


@pytest.mark.parametrize("above", ["What is this?\n\n", "- torch 2.1\n\n> $ python m.py\n", ""])
def test_output_that_its_author_quoted(above: str, rules: RuleSet) -> None:
    assert _place(f"{above}{QUOTED}\nthanks in advance\n", rules) == "m.py:5"


LINE = "\u2500" * 22

BOX = f"""\
{LINE} Traceback (most recent call last) {LINE}
  /home/adminuser/venv/lib/python3.11/site-packages/streamlit/runtime/scriptrunn
  er/script_runner.py:590 in code_to_exec

  /mount/src/demo/app.py:41 in <module>

    40
  \u2771 41 \u2502 y = net(x)
    42 st.write(y)

  /home/adminuser/venv/lib/python3.11/site-packages/torch/nn/modules/linear.py:1
  25 in forward

{LINE * 3}
{SHAPES}
"""




def test_a_box_without_sides_ends_where_the_log_goes_on() -> None:
    text = BOX.rpartition(LINE * 3)[0] + "INFO: ready\n" * 12
    assert sum(event.text.startswith("INFO") for event in read_text(text).events) >= 1




DYNAMO = f"""\
Traceback (most recent call last):
  File "/h/bench.py", line 40, in <module>
    out = f(x)
  File "{PACKAGES}/torch/_dynamo/eval_frame.py", line 574, in _fn
    return fn(*args, **kwargs)
torch._dynamo.exc.UserError: Could not guard on data-dependent expression u0 > 0 (unhinted: u0 > 0).

"""

USER_CODE = '  File "/h/post.py", line 57, in nms\n    if keep.numel() > 0:\n'


@pytest.mark.parametrize(
    "between",
    [
        "For C++ stack trace, run with TORCHDYNAMO_EXTENDED_DEBUG_CPP=1\n\nfrom user code:\n",
        "A paragraph of a later release.\n\nAnother one.\n\nfrom user code:\n",
        "User Stack (most recent call last):\n  (snipped, see stack below for prefix)\n",
    ],
)
def test_the_users_code_below_paragraphs_of_dynamo(between: str, rules: RuleSet) -> None:
    assert _place(DYNAMO + between + USER_CODE, rules) == "/h/post.py:57"


def test_words_of_dynamo_far_below_belong_to_nothing(rules: RuleSet) -> None:
    text = DYNAMO + "host a: up\nhost b: away\n" * 10 + "from user code:\n" + USER_CODE
    assert _place(text, rules) == "/h/bench.py:40"


BNB = (
    f"{PACKAGES}/bitsandbytes/cextension.py:34: UserWarning: The installed version of bitsandbytes was "
    "compiled without GPU support. 8-bit optimizers, 8-bit multiplication, and GPU quantization are "
    'unavailable.\n  warn("The installed version")\n'
    "Traceback (most recent call last):\n"
    '  File "/h/load.py", line 9, in <module>\n    m = load(x)\n'
)


def test_a_warning_shows_the_line_of_the_exception_it_foretold(rules: RuleSet) -> None:
    behind = f'  File "{PACKAGES}/bitsandbytes/functional.py", line 1698, in double_quant\n    n = a.item()\n'
    text = f"{BNB}{behind}AttributeError: 'NoneType' object has no attribute 'cget_col_row_stats'\n"
    assert _place(text, rules) == "/h/load.py:9"


def test_code_that_was_run_as_a_text_counts_only_where_no_file_does(rules: RuleSet) -> None:
    tail = f'  File "{PACKAGES}/torch/nn/functional.py", line 9, in f\n    g()\n{OOM}\n'
    text = f'Traceback (most recent call last):\n  File "<string>", line 4, in <module>\n{tail}'
    assert _place(text, rules) == "<string>:4"
    own = (
        '  File "/w/launch.py", line 8, in <module>\n    exec(body)\n  File "<string>", line 4, in <module>\n'
    )
    assert _place(f"Traceback (most recent call last):\n{own}{tail}", rules) == "/w/launch.py:8"


def _dump(*frames: str) -> str:
    lines = "".join(f"    {frame}\n" for frame in frames)
    return f'Thread 70 (idle): "MainThread"\n{lines}\n'


def test_a_parent_that_waits_points_at_its_child_and_at_no_other_process(rules: RuleSet) -> None:
    main = _dump(
        "select (selectors.py:416)",
        "get (multiprocessing/queues.py:113)",
        "_try_get_data (torch/utils/data/dataloader.py:1133)",
        "__next__ (torch/utils/data/dataloader.py:631)",
        "main (train.py:97)",
    )
    child = _dump(
        "acquire (logging/__init__.py:917)",
        "read (tiles.py:58)",
        "_worker_loop (torch/utils/data/_utils/worker.py:308)",
        "run (multiprocessing/process.py:108)",
    )
    idle = _dump(
        "get (multiprocessing/queues.py:113)",
        "_worker_loop (torch/utils/data/_utils/worker.py:308)",
        "run (multiprocessing/process.py:108)",
    )
    assert _place(main + idle + child, rules) == "tiles.py:58"
    assert _place(main + idle, rules) == "train.py:97"


def test_the_frame_that_raised_stands_before_that_of_what_was_handled(rules: RuleSet) -> None:
    text = (
        'Traceback (most recent call last):\n  File "/w/loader.py", line 47, in f\n    n = len(ds)\n'
        "TypeError: object of type 'Shards' has no len()\n\n"
        "During handling of the above exception, another exception occurred:\n\n"
        'Traceback (most recent call last):\n  File "/w/loader.py", line 55, in f\n    DataLoader(ds)\n'
        f'  File "{PACKAGES}/torch/utils/data/dataloader.py", line 313, in __init__\n    raise ValueError(\n'
        "ValueError: DataLoader with IterableDataset: expected unspecified batch_sampler option, but got "
        "batch_sampler=<a.B object at 0x7f>\n"
    )
    assert _place(text, rules) == "/w/loader.py:55"
    # what another exception wraps is where it began
    caused = text.replace("During handling of the above exception, another exception occurred", CAUSED)
    assert _place(caused, rules) == "/w/loader.py:47"


CAUSED = "The above exception was the direct cause of the following exception"

# A report that gives the message and the frames in blocks of their own
MESSAGE = "AttributeError: Can't pickle local object 'build.<locals>.collate'\n"

STACK = (
    "Traceback (most recent call last):\n"
    '  File "/home/u/train.py", line 22, in fit\n    for batch in loader:\n'
    '  File "/usr/lib/python3.10/multiprocessing/reduction.py", line 60, in dump\n'
    "    ForkingPickler(file, protocol).dump(obj)\n"
)


def frames(transcript: Transcript, of: str) -> object:
    (event,) = (one for one in transcript.events if one.kind is EventKind.EXCEPTION and one.type == of)
    return event_value("event.frames", event, transcript)


def test_the_only_message_has_the_only_stack() -> None:
    told = frames(read_text(f"{MESSAGE}\nThe stack:\n{STACK}"), "AttributeError")
    assert told == "/home/u/train.py:fit | /usr/lib/python3.10/multiprocessing/reduction.py:dump"


def test_of_two_messages_nobody_knows_whose_it_is() -> None:
    assert frames(read_text(f"{MESSAGE}ValueError: too late\n\n{STACK}"), "ValueError") == ""


def test_of_two_stacks_neither_is_taken() -> None:
    other = STACK.replace("train.py", "eval.py").replace("22", "7")
    assert frames(read_text(f"{MESSAGE}\n{STACK}\nand\n{other}"), "AttributeError") == ""


def test_a_message_with_frames_keeps_its_own() -> None:
    whole = 'Traceback (most recent call last):\n  File "a.py", line 1, in <module>\n    f()\nKeyError: 1\n'
    assert frames(read_text(f"{whole}\nlater\n{STACK}"), "KeyError") == "a.py:<module>"
