"""Nothing here is left changed, and nothing is told of it."""

import os
import random
import signal
import warnings

import numpy
import torch

GENERATOR = torch.Generator().manual_seed(3)
PRIVATE = random.Random(3)
OTHER = numpy.random.default_rng(3)
LEGACY = numpy.random.RandomState(3)
LAYER = torch.nn.Linear(2, 2)
LAYER.forward = lambda x: x
LAYER.eval()
os.environ["A_NAME_OF_NO_CONCERN"] = "1"
READ = os.environ.get("OMP_NUM_THREADS"), signal.getsignal(signal.SIGINT), torch.is_grad_enabled()
DRAWN = torch.rand(3), random.random(), numpy.random.rand(4)


class Layer(torch.nn.Linear):
    def forward(self, x):
        return super().forward(x)


class Pass(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x


if __name__ == "__main__":
    torch.set_grad_enabled(False)
warnings.filterwarnings("default", category=ResourceWarning)
