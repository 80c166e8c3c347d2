"""Lightning, transformers and torchrun with programs of two lines too many, as processes of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import torchdoctor

pytest.importorskip("lightning")
pytest.importorskip("transformers")

HEAD = """
import torch, sys
from torch import nn
from torch.utils.data import Dataset, DataLoader

class Data(Dataset):
    def __len__(self): return 8
    def __getitem__(self, index): return {"x": torch.ones(6), "labels": torch.tensor(7 if index > 3 else 0)}
"""
LIGHTNING = """
import lightning as L
from torchdoctor.hooks.lightning_callback import TorchdoctorCallback

class Net(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(6, 3)
    def training_step(self, batch, number):
        logits = self.layer(batch["x"])
        return nn.functional.cross_entropy(logits, batch["labels"])
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)

import torchdoctor
torchdoctor.install()
L.Trainer(accelerator="cpu", max_epochs=1, logger=False, enable_checkpointing=False,
    enable_progress_bar=False, enable_model_summary=False, callbacks=[TorchdoctorCallback()],
).fit(Net(), DataLoader(Data(), 2))
"""
TRANSFORMERS = """
from transformers import Trainer, TrainingArguments
from torchdoctor.hooks.trainer_callback import TorchdoctorCallback

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(6, 3)
    def forward(self, x, labels):
        logits = self.layer(x)
        return {"loss": nn.functional.cross_entropy(logits, labels)}

Trainer(Net(), TrainingArguments("out", use_cpu=True, report_to=[], disable_tqdm=True,
    per_device_train_batch_size=2, save_strategy="no"), train_dataset=Data(),
    callbacks=[TorchdoctorCallback()]).train()
"""
ELASTIC = """
import torch, torchdoctor, sys
import torch.distributed as dist
from torch.distributed.elastic.multiprocessing.errors import record

@torchdoctor.record
@record
def main():
    dist.init_process_group("gloo")
    hidden = torch.zeros(4, 16)
    dist.all_reduce(hidden)
    if dist.get_rank() == 1:
        hidden @ torch.zeros(20, 5)
    dist.barrier()

main()
"""

RANKS = "2"


def run(folder: Path, code: str, *before: str) -> subprocess.CompletedProcess[str]:
    program = folder / "train.py"
    program.write_text(code, encoding="utf-8")
    return subprocess.run(
        [sys.executable, *before, str(program)],
        cwd=folder, capture_output=True, text=True, timeout=120, env={**os.environ, "HF_HUB_OFFLINE": "1"},
    )  # fmt: skip


@pytest.mark.parametrize("code", [LIGHTNING, TRANSFORMERS], ids=["lightning", "transformers"])
def test_trainers(tmp_path: Path, code: str) -> None:
    ended = run(tmp_path, HEAD + code)
    assert ended.returncode == 1, ended.stderr
    assert ended.stderr.count("✗ torchdoctor: ") == 1
    note = " ".join(ended.stderr.partition("✗ torchdoctor: ")[2].split())
    assert "[cuda-assert-label-range, confirmed]" in note
    assert "train.py:" in note
    assert "nn.functional.cross_entropy(logits," in note
    assert "logits is float32 [2, 3] on cpu" in note


def test_torchrun(tmp_path: Path) -> None:
    launcher = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", RANKS)
    ended = run(tmp_path, ELASTIC, *launcher, "--log-dir", str(tmp_path / "logs"))
    assert ended.returncode == 1
    (file,) = (path for path in tmp_path.rglob("error.json") if "/1/" in str(path))
    told = json.loads(file.read_text("utf-8"))["message"]
    assert told["message"].startswith("RuntimeError: mat1 and mat2")
    diagnosis = told["extraInfo"]["torchdoctor"]
    assert (diagnosis["rule"], diagnosis["frame"]["line"]) == ("matmul-shape", 13)
    assert "hidden is float32 [4, 16] on cpu" in diagnosis["evidence"][-1]["text"]
    report = torchdoctor.explain(ended.stderr)
    assert (report.diagnoses[0].rule, report.first_failure.rank) == ("matmul-shape", 1)
    box = ended.stderr.partition("Root Cause (first observed failure)")[2]
    assert "✗ torchdoctor: Matrix sizes do not fit" in box
