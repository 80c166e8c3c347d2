"""Notebook tracebacks of all ages, rich's boxes, pytest."""

from __future__ import annotations

import pytest

from torchdoctor.intake import read_text
from torchdoctor.intake.notebook import cell_frame
from torchdoctor.model import Event, EventKind


def only(text: str) -> Event:
    (event,) = [event for event in read_text(text).events if event.kind is EventKind.EXCEPTION]
    return event


@pytest.mark.parametrize(
    ("line", "file", "number", "function", "package"),
    [
        (
            "<ipython-input-11-5b0f> in <cell "
            "line: 3>()", "<ipython-input-11-5b0f>", None, "<cell line: 3>", ""),
        ("<ipython-input-6-7d21> in <module>", "<ipython-input-6-7d21>", None, "<module>", ""),
        ("<ipython-input-13-f7e4> in run_epoch(a, b)", "<ipython-input-13-f7e4>", None, "run_epoch", ""),
        (
            "[<ipython-input-21-5d0b>](https://localhost:"
            "8080/#) in <module>()", "<ipython-input-21-5d0b>", None, "<module>", ""),
        (
            "[/usr/local/lib/python3.7/dist-packages/torch/jit/_script.py](https://localhost:8080/#) in "
            "script(obj)",
         "/usr/local/lib/python3.7/dist-packages/torch/jit/_script.py", None, "script", "torch"),
        ("~/c/lib/python3.8/site-packages/torch/_tensor.py in backward(self)",
         "~/c/lib/python3.8/site-packages/torch/_tensor.py", None, "backward", "torch"),
        (
            "/tmp/ipykernel_36/773422404.py "
            "in <cell line: 1>()", "/tmp/ipykernel_36/773422404.py", None, "<cell line: 1>", ""),
        (
            "numpy/random/mtrand.pyx"
            " in init numpy.random.m"
            "trand()", "numpy/random/mtrand.pyx", None, "init numpy.random.mtrand", "numpy"),
        ("File ~/x/dpt.py:57, in ConvModule.forward(self, x)", "~/x/dpt.py", 57, "ConvModule.forward", ""),
        ("File c:\\A\\lib\\site-packages\\torch\\nn\\rnn.py:206, in RNNBase.f(a)",
         "c:\\A\\lib\\site-packages\\torch\\nn\\rnn.py", 206, "RNNBase.f", "torch"),
        ("Cell In[35], line 1", "Cell In[35]", 1, "<module>", ""),
        ("Cell In[12], line 19, in fit(net, dl)", "Cell In[12]", 19, "fit", ""),
        ("Input In [3], in <cell line: 5>()", "Input In [3]", None, "<cell line: 5>", ""),
        (
            "セル14 を c:\\work\\sec4.ipynb in <cell "
            "line: 8>()", "c:\\work\\sec4.ipynb", None, "<cell line: 8>", ""),
    ],
)  # fmt: skip
def test_heads_of_frames(line: str, file: str, number: int | None, function: str, package: str) -> None:
    frame = cell_frame(line, 5)
    assert frame is not None
    assert (frame.file, frame.line, frame.function, frame.package, frame.at) == (
        file,
        number,
        function,
        package,
        5,
    )


@pytest.mark.parametrize(
    "line", ["    5 x in y(a)", "it is in f(x)", "see a.py in the folder", 'File "a.py", line 1, in f', ""]
)
def test_what_is_no_head_of_a_frame(line: str) -> None:
    assert cell_frame(line, 1) is None


def test_ipython_7() -> None:
    event = only(
        "x\n---------------------------------------------------------------------------\n"
        "RuntimeError                              Traceback (most recent call last)\n"
        "<ipython-input-14-0a5e> in <module>()\n      6     epoch += 1\n----> 8     run_epoch()\n      9 \n\n"
        "~/n/lib/python3.6/site-packages/torch/tensor.py in backward(self, gradient)\n     92         "
        '"""\n'
        "---> 93         torch.autograd.backward(self)\n     94 \n\n"
        "RuntimeError: element 0 of tensors does not require grad and does not have a grad_fn\n"
    )
    assert (event.type, event.headed, event.line) == ("RuntimeError", True, 3)
    assert event.text == "element 0 of tensors does not require grad and does not have a grad_fn"
    assert [(f.line, f.function, f.code, f.package) for f in event.frames] == [
        (8, "<module>", "run_epoch()", ""), (93, "backward", "torch.autograd.backward(self)", "torch"),
    ]  # fmt: skip


def test_ipython_8_with_colours_lost() -> None:
    event = only(
        "[0;31mRuntimeError[0m                              Traceback (most recent call last)\n"
        "Cell [0;32mIn[35], line 1[0m\n[0;32m----> 1[0m net(x)\n\n"
        "File [0;32m~/m/torch/nn/modules/module.py:1501[0m, in [0;36mModule._call_impl[0;34m(self)[0m\n"
        "[1;32m   1499[0m # comment\n[0;32m-> 1501[0m     return forward_call(x)\n\n[0;31mRuntimeError[0m: "
        "Inference tensors\n"
    )
    assert (event.type, event.text) == ("RuntimeError", "Inference tensors")
    assert [(f.file, f.line, f.package) for f in event.frames] == [
        ("Cell In[35]", 1, ""), ("~/m/torch/nn/modules/module.py", 1501, "torch"),
    ]  # fmt: skip


def test_a_notebook_traceback_without_its_head() -> None:
    event = only(
        "~/n/lib/python3.6/site-packages/torch/utils/data/_utils/pin_memory.py in pin_memory(data)\n"
        "     41     if isinstance(data, torch.Tensor):\n---> 42         return data.pin_memory()\n\n"
        "RuntimeError: cannot pin 'torch.cuda.LongTensor'\n"
    )
    assert (event.type, event.text, event.frames[0].line) == (
        "RuntimeError",
        "cannot pin 'torch.cuda.LongTensor'",
        42,
    )


def test_chained_cells() -> None:
    text = (
        "CalledProcessError                        Traceback (most recent call last)\n/x/y.py in run(a)\n-> "
        "12     go()\n\n"
        "CalledProcessError: Command failed\n\nThe above exception was the direct cause of the following "
        "exception:\n\n"
        "RuntimeError                              Traceback (most recent call last)\n<ipython-input-1-a> "
        "in <module>\n"
        "----> 3 f()\n\nRuntimeError: Error building extension\n"
    )
    first, second = read_text(text).events
    assert (first.type, second.type) == ("CalledProcessError", "RuntimeError")
    assert second.relations[0].event == first.id


BOX = """\
╭──────────── Traceback (most recent call last) ────────────╮
│ /home/user/quant/run.py:41 in <module>                    │
│                                                           │
│   40 │     m = load(path, cfg)                            │
│ ❱ 41 │     m.quantize(samples)                            │
│                                                           │
│ /opt/lib/python3.10/site-packages/to                      │
│ rch/hub.py:115 in                                         │
│ decorate_context                                          │
│ ❱  115 │             return func(*args)                    │
│ ╭──────────────── locals ────────────────╮                │
│ │ x = 'RuntimeError: no'                  │               │
│ ╰─────────────────────────────────────────╯               │
╰───────────────────────────────────────────────────────────╯
LinAlgError: The factorization could not be completed because the input is not
positive-definite.
next line
epoch 3 loss 0.1
"""


def test_a_box_of_rich() -> None:
    event = only(BOX)
    assert event.type == "LinAlgError"
    assert event.text.startswith(
        "The factorization could not be completed because the input is not\npositive-definite."
    )
    assert [(f.line, f.function, f.code) for f in event.frames] == [
        (41, "<module>", "m.quantize(samples)"), (115, "decorate_context", "return func(*args)"),
    ]  # fmt: skip
    assert event.frames[1].package == "torch"


def test_pytest_lines() -> None:
    text = (
        "________________ test_x ________________\n\n    def test_x():\n>       f()\n\ntests/test_a.py:5: \n"
        '_ _ _ _ _ _ _ _ _ _ _ _\n\n    def f():\n>       raise RuntimeError("CUDA error: x")\n'
        "E       RuntimeError: CUDA error: x\nE       second line\n\nsrc/a.py:2: RuntimeError\n"
        "FAILED tests/test_a.py::test_x - RuntimeError: CUDA error: x\n"
    )
    event = only(text)
    assert (event.type, event.text, event.headed) == ("RuntimeError", "CUDA error: x\nsecond line", True)
    assert [(f.file, f.line) for f in event.frames] == [("tests/test_a.py", 5), ("src/a.py", 2)]
    source = next(e for e in read_text(text).events if "raise RuntimeError" in e.text)
    assert source.quoted


@pytest.mark.parametrize("blanks", ["", " ", "  ", "\t", " " * 31])
@pytest.mark.parametrize("name", ["RuntimeError", "torch.OutOfMemoryError"])
def test_a_head_of_any_width(name: str, blanks: str) -> None:
    head = f"{name}{blanks}Traceback (most recent call last)\nCell In[4], line 2\n      1 w = 1\n"
    event = only(f"{head}----> 2 y = a @ w\n\n{name.rpartition('.')[2]}: shapes\n")
    assert [(frame.file, frame.line) for frame in event.frames] == [("Cell In[4]", 2)]


WORKER = (
    "Original Traceback (most recent call last):\n"
    '  File "/opt/torch/utils/data/_utils/worker.py", line 308, in _worker_loop\n'
    '  File "/home/u/data/vimeo.py", line 71, in __getitem__\n    return self.frames[k]\n'
    "IndexError: list index out of range\n"
)


def test_the_traceback_of_a_worker_below_a_box() -> None:
    box = (
        "\u256d\u2500\u2500 Traceback (most recent call last) \u2500\u2500\u256e\n"
        "\u2502 /home/u/main.py:54 in main \u2502\n\u2570\u2500\u2500\u2500\u2500\u256f\n"
        "IndexError: Caught IndexError in DataLoader worker process 3.\n"
    )
    outer, inner = (e for e in read_text(box + WORKER).events if e.kind is EventKind.EXCEPTION)
    assert [(f.file, f.line) for f in outer.frames] == [("/home/u/main.py", 54)]
    assert [(f.file[-8:], f.line, f.function) for f in inner.frames] == [
        ("orker.py", 308, "_worker_loop"), ("vimeo.py", 71, "__getitem__"),
    ]  # fmt: skip
    assert inner.text == "list index out of range"


def test_an_exception_whose_name_is_a_small_word() -> None:
    cell = (
        "error                                     Traceback (most recent call last)\n"
        "/tmp/ipykernel_27/33.py in <module>\n---> 13     train(loader)\n\n"
        "error: Caught error in DataLoader worker process 0.\n"
    )
    text = cell + WORKER.replace("IndexError: list index out of range", "cv2.error: OpenCV(4.5.4) empty()")
    outer, inner = (e for e in read_text(text).events if e.kind is EventKind.EXCEPTION)
    assert (outer.type, outer.text) == ("error", "Caught error in DataLoader worker process 0.")
    assert (inner.type, inner.frames[-1].function) == ("cv2.error", "__getitem__")
