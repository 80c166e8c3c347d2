"""On a machine with a GPU: who initialises CUDA at import, and a CUDA_VISIBLE_DEVICES that comes too late."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from torchdoctor.model import CheckResult, Verdict
from torchdoctor.watch.report import report_of
from torchdoctor.watch.target import Target, run

pytestmark = pytest.mark.skipif(
    not Path("/proc/driver/nvidia").exists() and not Path("/dev/nvidiactl").exists(),
    reason="needs an NVIDIA GPU",
)


def watch(folder: Path, code: str) -> list[CheckResult]:
    path = folder / "train.py"
    path.write_text(code, encoding="utf-8")
    os.environ.pop("CUDA_VISIBLE_DEVICES", None)
    ran = run(Target("script", str(path)), sys.executable)
    assert (ran.ended, ran.message) == ("ok", "")
    return [one for one in report_of([ran]).checks if one.verdict is Verdict.WARN]


@pytest.mark.parametrize(
    "statement",
    [
        "torch.cuda.init()",
        "x = torch.ones(2, device='cuda')",
        "x = torch.ones(2).cuda()",
        "torch.cuda.current_device()",
    ],
)
def test_cuda_initialised_at_import(tmp_path: Path, statement: str) -> None:
    (found,) = watch(tmp_path, f"import torch\n\ndef f():\n    global x\n    {statement}\n\nf()\n")
    assert found.id == "cuda-initialized-at-import"
    assert [item.line for item in found.evidence if item.file] == [5, 7]


def test_a_device_count_without_initialising_is_no_warning(tmp_path: Path) -> None:
    assert (
        watch(tmp_path, "import torch\nn = torch.cuda.device_count()\nok = torch.cuda.is_available()\n") == []
    )


def test_visible_devices_after_the_first_question(tmp_path: Path) -> None:
    found = watch(
        tmp_path,
        "import os\nimport torch\nok = torch.cuda.is_available()\nos.environ['CUDA_VISIBLE_DEVICES'] = ''\n"
        "assert ok and torch.cuda.is_available(), 'the variable had no effect'\n",
    )
    assert [one.id for one in found] == ["cuda-visible-set-late"]
    assert [item.line for item in found[0].evidence if item.file] == [4, 3]


def test_visible_devices_before_it(tmp_path: Path) -> None:
    code = (
        "import os\nimport torch\nos.environ['CUDA_VISIBLE_DEVICES'] = ''\n"
        "assert not torch.cuda.is_available()\nos.environ.pop('CUDA_VISIBLE_DEVICES')\n"
    )
    assert "environment-changed" not in [one.id for one in watch(tmp_path, code)]
