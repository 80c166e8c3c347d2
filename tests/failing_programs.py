"""Ten programs that fail as people's do, on the CPU: ``failing_programs.py NAME``, or a call of one."""

from __future__ import annotations

import sys

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader


class Net(nn.Module):
    def __init__(self, width: int = 20) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(width, 5))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.body(images)


def matmul_shape() -> None:
    net = Net()
    batch = torch.randn(4, 8)
    net(batch)


def dtype_mismatch() -> None:
    features = torch.from_numpy(np.zeros((4, 8)))
    nn.Linear(8, 2)(features)


def label_range() -> None:
    logits, labels = torch.randn(3, 5), torch.tensor([0, 5, 2])
    nn.functional.cross_entropy(logits, labels)


def index_range() -> None:
    tokens = torch.tensor([[1, 99]])
    nn.Embedding(50, 4)(tokens)


def backward_twice() -> None:
    weight = torch.ones(3, requires_grad=True)
    loss = (weight**2).sum()
    loss.backward()
    loss.backward()


def grad_non_scalar() -> None:
    losses = torch.ones(3, requires_grad=True) * 2
    losses.backward()


def collate_unequal_size() -> None:
    sentences = [torch.zeros(3), torch.zeros(5)]
    for _ in DataLoader(sentences, batch_size=2):  # type: ignore[arg-type, var-annotated]
        pass


def checkpoint_size_mismatch() -> None:
    saved = Net(16).state_dict()
    Net(20).load_state_dict(saved)


def inplace_modified() -> None:
    weight = torch.ones(3, requires_grad=True)
    hidden = weight.sigmoid()
    hidden += 1
    hidden.sum().backward()


def own_code_error() -> None:
    batch = {"image": torch.zeros(2), "label": torch.zeros(1)}
    print(batch["labels"])


PROGRAMS = {
    "matmul_shape": "matmul-shape",
    "dtype_mismatch": "dtype-mismatch",
    "label_range": "cuda-assert-label-range",
    "index_range": "cuda-assert-index-range",
    "backward_twice": "backward-twice",
    "grad_non_scalar": "grad-non-scalar",
    "collate_unequal_size": "collate-unequal-size",
    "checkpoint_size_mismatch": "checkpoint-size-mismatch",
    "inplace_modified": "inplace-modified",
    "own_code_error": "own-code-error",
}

if __name__ == "__main__":
    import torchdoctor

    torchdoctor.install()
    globals()[sys.argv[1]]()
