"""Each is changed and set back: told as changes, no finding."""

import os
from unittest import mock

import torch

with torch.no_grad():
    A = torch.ones(2)
with torch.inference_mode():
    B = torch.ones(2)
with torch.device("meta"):
    C = torch.ones(2)
with torch.autocast("cpu", dtype=torch.bfloat16):
    D = torch.ones(2)
with torch.backends.cudnn.flags(benchmark=True):
    E = torch.ones(2)
with mock.patch.object(torch, "add", None):
    F = torch.ones(2)
with mock.patch.dict(os.environ, {"NCCL_DEBUG": "INFO"}):
    G = torch.ones(2)
torch.set_grad_enabled(False)
torch.set_grad_enabled(True)
for _ in range(100):
    with torch.no_grad():
        H = 1


class Layer(torch.nn.Linear):
    def forward(self, x):
        return super().forward(x)


@torch.no_grad()
def evaluate(x):
    return Layer(2, 2)(x)


RESULT = evaluate(torch.ones(1, 2))
