"""Whose code a frame is."""

from __future__ import annotations

import pytest

from torchdoctor.intake.frames import as_one_stack, package_of
from torchdoctor.model import Frame


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
