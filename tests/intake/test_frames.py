"""Frames: whose code they are, how they are written, and what wrapped or folded them."""

from __future__ import annotations

import pytest

from torchdoctor.intake import read_text
from torchdoctor.intake.frames import as_one_stack, cloned, package_of
from torchdoctor.intake.notebook import cell_frame
from torchdoctor.intake.traceback import parse_frame
from torchdoctor.intake.unfold import FrameMender, Unfolder
from torchdoctor.model import Event, EventKind, Frame


@pytest.mark.parametrize(
    ("file", "package"),
    [
        ("train.py", ""),
        ("./tools/train.py", ""),
        ("/home/user/proj/net.py", ""),
        ("~/proj/heads/dpt.py", ""),
        ("D:\\crack\\trainer.py", ""),
        ("<stdin>", ""),
        ("<string>", ""),
        ("<ipython-input-5-ab>", ""),
        ("Cell In[3]", ""),
        ("/home/user/mmdetection/mmdet/apis/train.py", ""),
        ("/home/user/conf/vllm/vllm/_custom_ops.py", ""),
        ("/databricks/spark/python/pyspark/sql/connect/client.py", "pyspark"),
        ("/mnt/yarn/deps.zip/mylib/udf.py", ""),
        ("/home/me/spark/python/etl.py", ""),
        ("/vllm-workspace/vllm/v1/engine/core.py", "vllm"),
        ("/sgl-workspace/sglang/python/sglang/srt/managers/scheduler.py", "sglang"),
        ("/workspace/vllm_bench/run.py", ""),
        ("datasets/coco.py", ""),
        ("transformers.py", ""),
        ("<home>/train.py", ""),
        ("<command-3412>", ""),
        ("/opt/conda/lib/python3.8/site-packages/torch/nn/modules/module.py", "torch"),
        ("/usr/local/lib/python3.6/dist-packages/torch/cuda/__init__.py", "torch"),
        ("C:\\Users\\u\\envs\\t\\Lib\\site-packages\\torch\\nn\\rnn.py", "torch"),
        ("/w/.tox/x/lib/python3.9/site-packages/six.py", "six"),
        ("/home/user/anaconda3/pkgs/pytorch-1.7/lib/python3.8/site-packages/torch/hub.py", "torch"),
        ("/home/user/src/pytorch/torch/multiprocessing/spawn.py", "torch"),
        ("/workspace/site/torch/cuda/__init__.py", "torch"),
        ("/tmp/torchinductor_user/ab/cab.py", "torch"),
        ("<eval_with_key>.12", "torch"),
        ("/opt/conda/lib/python3.8/runpy.py", "python"),
        ("/usr/lib/python3.10/multiprocessing/queues.py", "python"),
        ("/usr/lib64/python3.9/ctypes/__init__.py", "python"),
        ("F:\\python\\lib\\runpy.py", "python"),
        ("D:\\anaconda3\\Lib\\multiprocessing\\spawn.py", "python"),
        ("D:\\work\\lib\\mymodels\\net.py", ""),
        ("<frozen importlib._bootstrap>", "python"),
        ("<__array_function__ internals>", "numpy"),
        ("pandas/_libs/lib.pyx", "pandas"),
        ("/opt/venv/bin/torchrun", "torch"),
        ("/usr/local/bin/accelerate", "accelerate"),
        (
            "/home/user/.cache/huggingface/modules/transformers_modules/glm/modeli"
            "ng.py", "transformers_modules"),
        ("", ""),
        # what torch.jit.save wrote into an archive, and what builds torch in a clone
        ("code/__torch__/seg/net.py", "torch"),
        ("/home/user/src/pytorch/tools/setup_helpers/cmake.py", "torch"),
        ("/home/user/src/seg/tools/train.py", ""),
        # a person left a part of the path out
        ("…/site-packages/torch/nn/modules/linear.py", "torch"),
        (".../torch/nn/modules/module.py", "torch"),
        (".../lib/python3.11/multiprocessing/process.py", "python"),
        ("/home/…/model.py", ""),
        (".../seg/utils.py", ""),
    ],
)  # fmt: skip
def test_package_of(file: str, package: str) -> None:
    assert package_of(file) == package


@pytest.mark.parametrize(
    ("file", "package"),
    [("threading.py", "python"), ("multiprocessing/queues.py", "python"), (
        "torch/utils/data/dataloader.py", "torch"),
     ("app/antenna/datasets.py", ""), ("serve_worker.py", ""), ("/w/queue.py", "")],
)  # fmt: skip
def test_short_paths_of_py_spy(file: str, package: str) -> None:
    assert package_of(file, short=True) == package


def _packages(*files: str, short: bool = False) -> list[str]:
    frames = [Frame(file, 1, "f", "", package_of(file, short)) for file in files]
    return [frame.package for frame in as_one_stack(frames, short)]


@pytest.mark.parametrize(
    ("files", "short", "packages"),
    [
        # a frozen program: the paths of packages begin at their roots, as those of the own folders do
        (
            ("start.py", "PyInstaller\\loader\\pyimod02_importers.py", "net\\unet.py", "torch\\__init__.py"),
            False,
            ["", "PyInstaller", "", "torch"],
        ),
        (("gui.py", "easyocr/easyocr.py", "torch/serialization.py"), False, ["", "easyocr", "torch"]),
        (("profile.py", "models/head.py", "torch/nn/modules/linear.py"), False, ["", "", "torch"]),
        # a start script is of the package whose function it calls
        (
            ("/opt/venv/bin/yolo", "/opt/venv/lib/python3.11/site-packages/ultralytics/cfg/__init__.py"),
            False,
            ["ultralytics", "ultralytics"],
        ),
        # … and not of what reads the command line for it
        (
            (
                "/opt/conda/bin/text-generation-server",
                "/opt/conda/lib/python3.9/site-packages/typer/main.py",
                "/opt/conda/lib/python3.9/site-packages/click/core.py",
                "/opt/conda/lib/python3.9/site-packages/text_generation_server/cli.py",
            ),
            False,
            ["text_generation_server", "typer", "click", "text_generation_server"],
        ),
        # pip --target: torch lies in a folder of packages
        (
            (
                "/w/vlm/sft.py",
                "/w/site/accelerate/state.py",
                "/w/site/torch/cuda/__init__.py",
                "/w/site/a.py",
            ),
            False,
            ["", "accelerate", "torch", ""],
        ),
        # without such a sign the folder may be of the user
        (("gui.py", "easyocr/easyocr.py"), False, ["", ""]),
        # py-spy: a package that nobody knows has private modules
        (("fit.py", "splat/render.py", "splat/cuda/_backend.py"), True, ["", "splat", "splat"]),
        (("fit.py", "splat/__init__.py", "splat/render.py"), True, ["", "", ""]),
        (("fit.py", "_ops.py"), True, ["", ""]),
        (
            ("<string>", "/usr/lib/python3.12/multiprocessing/spawn.py", "a.py"),
            False,
            ["python", "python", ""],
        ),
    ],
)
def test_the_other_frames_of_a_stack_tell_whose_code_a_frame_is(
    files: tuple[str, ...], short: bool, packages: list[str]
) -> None:
    assert _packages(*files, short=short) == packages


@pytest.mark.parametrize(
    ("file", "package"),
    [
        ("/w/LLaMA-Factory/src/llamafactory/train/tuner.py", "llamafactory"),
        ("detectron2/detectron2/engine/train_loop.py", "detectron2"),
        ("/w/mmdetection/mmdet/apis/train.py", ""),  # people edit it
        ("/w/exp1/exp2/train.py", ""),
        ("/w/src/train.py", ""),
    ],
)
def test_a_clone_of_a_package_that_many_use(file: str, package: str) -> None:
    assert cloned(file) == package


# Tracebacks of CPython: frames, messages, chains, doubled and cut ones


TRACE = """\
epoch 1
Traceback (most recent call last):
  File "/home/u/train.py", line 62, in <module>
    main()
    ~~~~^^
  File "/opt/venv/lib/python3.13/site-packages/torch/nn/modules/linear.py", line 134, in forward
    return F.linear(input, self.weight, self.bias)
           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
RuntimeError: mat1 and mat2 shapes cannot be multiplied (4x5 and 2x3)
"""


def exceptions(text: str) -> list[Event]:
    return [event for event in read_text(text).events if event.kind is EventKind.EXCEPTION]


@pytest.mark.parametrize(
    ("line", "frame"),
    [
        ('  File "a.py", line 3, in f', Frame("a.py", 3, "f", at=9)),
        ('  File "<string>", line 1, in <module>', Frame("<string>", 1, "<module>", at=9)),
        ('  File "C:\\x y\\a.py", line 3, in A.f', Frame("C:\\x y\\a.py", 3, "A.f", at=9)),
        ('  File "a.py", line 3 in f', Frame("a.py", 3, "f", at=9)),
        ('  File "a.py", line 3', Frame("a.py", 3, "", at=9)),
        ('  File "a.py", line 3, in', Frame("a.py", 3, "", at=9)),
        (
            '  File "cupy/core/core.pyx",'
            ' line 1, in init cupy.core', Frame("cupy/core/core.pyx", 1, "init cupy.core", "", "cupy", 9)),
        ('  File "a.py", line x, in f', None),
        ('  File "a.py", in f', None),
        ('  File "a.py", line 3 f', None),
        ("  File a.py, line 3, in f", None),
        ('  File "a.py", line 12345678901234567890, in f', Frame("a.py", None, "f", at=9)),
        ('  File "a.py", line 12², in f', None),
    ],
)  # fmt: skip
def test_parse_frame(line: str, frame: Frame | None) -> None:
    assert parse_frame(line, 9) == frame


def test_a_message_of_one_huge_line_is_joined_and_bounded() -> None:
    keys = ", ".join(f'"layer.{n}.weight"' for n in range(4_000))
    (event,) = exceptions(TRACE.rpartition("RuntimeError")[0] + f"RuntimeError: Missing key(s): {keys}\n")
    assert "\n" not in event.text
    assert event.text.startswith('Missing key(s): "layer.0.weight", "layer.1.weight"')
    assert 30_000 < len(event.text) <= 32_768


def test_repeated_lines_and_recursion_are_bounded() -> None:
    frames = '  File "a.py", line 1, in f\n    f()\n' * 3_000
    text = (
        f"Traceback (most recent call last):\n{frames}  [Previous line repeated 995 more "
        f"times]\nRecursionError: deep\n"
    )
    (event,) = exceptions(text)
    assert (event.type, len(event.frames)) == ("RecursionError", 400)


# Notebook tracebacks of all ages, rich's boxes, pytest


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


# Tracebacks that are wrapped at a width, or stand in one line


# Tracebacks in one line, and the errors of cells as an editor copies them
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
    assert lines[-1] == "RuntimeError: sizes differ: 3 and 4"
    assert unfolder.take("next line") is None


def test_an_error_that_comfyui_copies_is_the_traceback_that_it_holds() -> None:
    lines = [
        "{",
        '  "node_id": "27",',
        '  "exception_message": "no \\"knob\\" here\\n",',
        '  "exception_type": "net.KnobError",',
        '  "traceback": [',
        '    "  File \\"C:\\\\net\\\\knob.py\\", line 7, in turn\\n    raise KnobError(name)\\n"',
        "  ],",
        '  "current_inputs": {}',
    ]
    unfolder = Unfolder()
    read: list[str] = []
    for line in lines:
        told = unfolder.take(line)
        read += [line] if told is None else told
    assert read[2:-1] == [
        "Traceback (most recent call last):",
        '  File "C:\\net\\knob.py", line 7, in turn',
        "    raise KnobError(name)",
        'net.KnobError: no "knob" here',
    ]
    assert read[-1] == lines[-1]


def test_an_error_object_that_is_cut_ends_with_its_exception() -> None:
    unfolder = Unfolder()
    for line in ('"exception_message": "none",', '"exception_type": "E",'):
        assert unfolder.take(line) == []
    assert unfolder.take('"node": 3') == [
        '"exception_message": "none",',
        '"exception_type": "E",',
        '"node": 3',
    ]
    for line in ('"exception_message": "none",', '"exception_type": "E",', '"traceback": ['):
        unfolder.take(line)
    assert unfolder.take('  "  File \\"a.py\\", line 1, in f\\n    g(') == [
        '  File "a.py", line 1, in f',
        "    g(",
    ]
    assert unfolder.rest() == ["E: none"]


def test_one_that_never_ends_is_given_back_at_a_blank_line_and_at_the_end() -> None:
    head = FOLDED.partition(" RuntimeError")[0]
    unfolder = Unfolder()
    assert unfolder.take(head) == []
    given = unfolder.take("")
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
        # a terminal breaks at its width, a page indents what it broke
        ['  File "/opt/net/data.py", lin', "e 308, in _loop"],
        ['  File "/opt/net/data.py", line 3', "08, in _loop"],
        ['  File "/opt/net/data.py', '", line 308, in _loop'],
        ['  File "/opt/ne', '     t/data.py", line 308, in _loop'],
        ['  File "/op', "t/net/dat", 'a.py", li', "ne 308, in _loop"],
    ],
)
def test_a_frame_that_was_broken_is_joined(lines: list[str]) -> None:
    mender = FrameMender()
    for number, line in enumerate(lines[:-1]):
        assert mender.take(number + 5, line) == []
    assert mender.take(9, lines[-1]) == [(5, '  File "/opt/net/data.py", line 308, in _loop')]


def test_behind_the_tag_of_a_rank_a_broken_frame_is_joined_too() -> None:
    mender = FrameMender()
    assert mender.take(3, '[rank1]:   File "/opt/lib/python3.12/site-pack') == []
    assert mender.take(4, 'ages/net/data.py", line 308, in _loop') == [
        (3, '[rank1]:   File "/opt/lib/python3.12/site-packages/net/data.py", line 308, in _loop')
    ]


def test_a_narrow_console_breaks_the_name_of_the_function_too() -> None:
    mender = FrameMender()
    lines = ['  File "C:\\net\\modu', 'les\\mod.py", line 9', ", in wrapped_call_i"]
    assert len({len(line) for line in lines}) == 1
    whole = "".join(lines)
    assert [mender.take(number, line) for number, line in enumerate(lines)] == [[], [], []]
    assert mender.take(3, "mpl") == [(0, whole + "mpl")]
    assert [mender.take(number, line) for number, line in enumerate(lines)] == [[], [], []]
    assert mender.take(3, "    x = net(x)") == [(0, whole), (3, "    x = net(x)")]
    assert [mender.take(number, line) for number, line in enumerate(lines)] == [[], [], []]
    assert mender.rest() == [(0, whole)]


def test_what_only_begins_like_one_is_given_back() -> None:
    mender = FrameMender()
    assert mender.take(3, "File ") == []
    assert mender.take(4, "not found") == [(3, "File "), (4, "not found")]
