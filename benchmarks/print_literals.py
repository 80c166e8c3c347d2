"""Literals that no file of a program holds whole, because it joins them as it prints: found by running it.

    python benchmarks/print_literals.py [--check]

Runs CALLS, looks for the literals of the catalog in what each raises and warns of, and records in
rules/literals.tsv those that nothing else accounts for, as ``printed: NAME VERSION: the call``. ``--check``
writes nothing. Exit code 1 when a literal recorded so is printed no more.
"""

from __future__ import annotations

import argparse
import sys
import traceback
import warnings
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from torchdoctor import catalog
from torchdoctor.engine.literals import (
    PLACE,
    PRINTED,
    every_literal,
    read_recorded,
    recorded_text,
)

# one call after each empty line
CALLS = r"""
import torch
torch.ones(2)+torch.ones(3)

import torch
torch.nn.functional.conv1d({},torch.ones(1,1,1))

import torch
torch.nn.functional.conv2d({},torch.ones(1,1,1,1))

import torch
torch.nn.functional.conv3d({},torch.ones(1,1,1,1,1))

import torch
m=torch.nn.AvgPool2d(2)
del m.divisor_override
m(torch.ones(1,1,4,4))

import torch
m=torch.nn.BatchNorm2d(2)
del m.track_running_stats
m(torch.ones(1,2,4,4))

import torch
m=torch.nn.Conv2d(1,1,1)
del m.padding_mode
m(torch.ones(1,1,4,4))

import torch
m=torch.nn.Conv2d(1,1,1,padding_mode="circular")
del m._reversed_padding_repeated_twice
m(torch.ones(1,1,4,4))

import torch
m=torch.nn.MultiheadAttention(4,1)
del m._qkv_same_embed_dim
m(*[torch.ones(1,1,4)]*3)

import torch
m=torch.nn.MultiheadAttention(4,1)
del m.batch_first
m(*[torch.ones(1,1,4)]*3)

import torch
m=torch.nn.Upsample(scale_factor=2)
del m.recompute_scale_factor
m(torch.ones(1,1,4,4))

import torch
m=torch.nn.Linear(1,1)
del m._backward_pre_hooks
m(torch.ones(1,1))

import torch
m=torch.nn.Linear(2,2)
m.weight.data=torch.empty(0)
m.load_state_dict(torch.nn.Linear(2,2).state_dict())

import torch
m=torch.nn.Linear(1,1)
del m._load_state_dict_post_hooks
m.load_state_dict(m.state_dict())

import torch
m=torch.nn.Linear(1,1)
del m._state_dict_pre_hooks
m.state_dict()

b"\xff".decode("utf-8")

import os
os.environ.pop("RANK",None)
os.environ["RANK"]

open("/dev/full","w").write("x"*100000)

import os
raise OSError(122, os.strerror(122))

import os
raise OSError(12, os.strerror(12))

import os
raise OSError(22, os.strerror(22))

import os
raise OSError(24, os.strerror(24))

import os
raise OSError(30, os.strerror(30))

import os
raise OSError(5, os.strerror(5))

import os
raise OSError(116, os.strerror(116))

import os
raise OSError(116, os.strerror(116), 'x')

import os
raise OSError(5, os.strerror(5), 'x')

import os
raise OSError(107, os.strerror(107), 'x')

import os
raise OSError(108, os.strerror(108))

import os
raise OSError(112, os.strerror(112))

import os
raise OSError(121, os.strerror(121))

from torch._utils import ExceptionWrapper
error = TypeError("x")
ExceptionWrapper((TypeError, error, None), "in replica 1 on device 1").reraise()

import torch
torch.zeros(1,dtype=torch.half).masked_fill_(torch.tensor([True]), 1e10)

import torch
torch.var(torch.ones(1))

import torch
torch.std(torch.ones(1))

import torch
x=torch.zeros(3)
x[torch.tensor([0,1])]=torch.ones(3)

import torch
torch.nn.functional.batch_norm(torch.ones(2,3),None,None,weight=torch.ones(2),training=True)

import torch
torch.nn.functional.batch_norm(torch.ones(2,3),None,None,bias=torch.ones(2),training=True)

import torch
torch.nn.GRU(2,3)(torch.ones(1,1,2),torch.ones(1,1,4))

import torch
torch._C._cuda_setDevice(0)

import torch
x=torch.ones(3,requires_grad=True)+0
with torch.no_grad(): y=x[0:1]
y.add_(1)

import torch
x=torch.ones(3,requires_grad=True)+0
with torch.no_grad(): y=x[0:1]
x.add_(1)
y.grad_fn

import torch
x=torch.ones(3)
with torch.inference_mode(): y=x.view(3)
y.add_(torch.ones(3,requires_grad=True))

import torch
from torch.autograd.function import once_differentiable
class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x): return x * 2
    @staticmethod
    @once_differentiable
    def backward(ctx, grad): return grad * 2
x = torch.ones(1, requires_grad=True)
first, = torch.autograd.grad(Double.apply(x).pow(2).sum(), x, create_graph=True)
first.sum().backward()

import torch
torch.distributions.MultivariateNormal(torch.zeros(2), covariance_matrix=-torch.eye(2))

import torch
import torch.utils.ffi

import subprocess
subprocess.run(["sh","-c","kill -SEGV $$"],check=True)

import io
import zipfile
import torch
with zipfile.ZipFile(file := io.BytesIO(), "w"): pass
torch._C.PyTorchFileReader(io.BytesIO(file.getvalue()))

import torch
x = torch.ones(1, requires_grad=True)
torch.heaviside(x, torch.ones(1)).sum().backward()

import torch
torch.optim.SGD([{"params":{torch.ones(1)}}], lr=1)

import torch
torch.jit.trace(lambda x: 1, torch.ones(1))

import torch
from torch import distributed as dist
dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
try: torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1,1)).fc
finally: dist.destroy_process_group()

import torch
from torch import distributed as dist
dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
try: torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1,1))[0]
finally: dist.destroy_process_group()

import torch
def bad(graph, inputs): raise ValueError("x")
torch.compile(lambda x: x+1, backend=bad)(torch.ones(1))

import torch._inductor.exc
raise torch._inductor.exc.LoweringException(ValueError("x"), "aten.x", (), {})

import torch._inductor.exc
raise torch._inductor.exc.InductorError(ValueError("x"), None)

import torch
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError, ProcessFailure
raise ChildFailedError("train.py", {0: ProcessFailure(local_rank=0, pid=1, exitcode=-9, error_file="none")})

import torch
torch.onnx.export(torch.nn.Linear(1,1), (torch.ones(1,1),), "/dev/null", dynamo=True)

import sys, types
sys.modules["torchvision"] = types.ModuleType("torchvision")
sys.modules["torchvision"].__path__ = []
try: import torchvision.gone
finally: del sys.modules["torchvision"]

import sys, types
sys.modules["torchtext"] = types.ModuleType("torchtext")
sys.modules["torchtext"].__path__ = []
try: import torchtext.gone
finally: del sys.modules["torchtext"]

import subprocess, sys
raise RuntimeError(subprocess.run(
    [sys.executable,"-S","-c","import torch"], capture_output=True, text=True).stderr)

import pathlib, subprocess, sys, tempfile
with tempfile.TemporaryDirectory() as folder:
    pathlib.Path(folder, "torch").mkdir()
    raise RuntimeError(subprocess.run(
        [sys.executable,"-S","-c","from torch import nn"],
        cwd=folder, capture_output=True, text=True).stderr)

import pathlib, subprocess, sys, tempfile
with tempfile.TemporaryDirectory() as folder:
    pathlib.Path(folder, "torch").mkdir()
    pathlib.Path(folder, "torch", "__init__.py").write_text("from torch._C import *")
    raise RuntimeError(subprocess.run(
        [sys.executable,"-S","-c","import torch"],
        cwd=folder, capture_output=True, text=True).stderr)

import torch
class Wrong(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x): return x * 2
    @staticmethod
    def backward(ctx, grad): return grad * 2
    @staticmethod
    def jvp(ctx, tangent): return tangent * 3
torch.autograd.gradcheck(
    Wrong.apply, torch.ones(2, dtype=torch.double, requires_grad=True), check_forward_ad=True)

from torch.distributed.flight_recorder.components.types import MatchInfo, MatchState
raise RuntimeError(MatchInfo(MatchState.SIZE_OR_SYNTAX_MISMATCH))

from torch.distributed.flight_recorder.components.types import MatchInfo, MatchState
raise RuntimeError(MatchInfo(MatchState.COLLECTIVE_TYPE_MISMATCH))

from torch.distributed.flight_recorder.components.types import MatchInfo, MatchState
raise RuntimeError(MatchInfo(MatchState.COLLECTIVE_DTYPE_MISMATCH))

import torch
m=torch.nn.BatchNorm1d(1)
del m._non_persistent_buffers_set
m.state_dict()

import torch._dynamo.exc
raise torch._dynamo.exc.InternalTorchDynamoError("x")

import torch._dynamo.exc
raise torch._dynamo.exc.UncapturedHigherOrderOpError("x")

import torch
torch.Stream(device="cuda")

import torch
torch.Stream(device="xpu")

import torch
torch.library.register_fake("torchvision::nms")(lambda x: x)

import torch
m=torch.nn.Linear(1,1)
del m._non_persistent_buffers_set
m.register_buffer("b",torch.zeros(1))

import torch
torch.zeros(1).item().backward()

import torch
torch.nn.functional.binary_cross_entropy(torch.rand(3),torch.rand(3),weight=torch.ones(3,requires_grad=True))

import torch
torch.zeros(2,3,4).expand(2,3)

import torch._inductor.exc
raise torch._inductor.exc.InvalidCxxCompiler

import torch
import torch
import torch._inductor.exc as errors
raise errors.InvalidCxxCompiler

import torch
torch.nn.functional.grid_sample(torch.zeros(1,1,4,4),torch.zeros(2,3,3,2))

import torch
torch.nn.LSTM(4,8)(torch.zeros(3,2,4),torch.zeros(1,2,8))

import torch
torch.zeros(2,3).permute(0,1,2)

import torch


import torch
torch.rand("a","b")

import torch
torch.func.vmap(lambda x: x if x > 0 else -x)(torch.zeros(3))

import torch
torch.func.vmap(lambda x: x.item())(torch.zeros(3))
"""


def printed(call: str) -> str:
    """What a call raises or warns of, without the frames, in which source code is quoted."""
    texts: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            exec(call, {"__name__": "call"})
        except Exception as error:
            texts = traceback.format_exception_only(error)
    texts.extend(str(item.message) for item in caught)
    return " ".join(" ".join(texts).split())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--check", action="store_true", help="only compare")
    check = parser.parse_args().check
    directory = catalog.rules_directory()
    literals = every_literal(catalog.load())
    recorded = read_recorded(directory)
    kept = {literal: where for literal, where in recorded.items() if literal in literals}
    open_ones = [literal for literal in literals if literal not in kept or kept[literal].startswith(PRINTED)]
    found: dict[str, str] = {}
    calls = CALLS.strip().split("\n\n")
    for call in calls:
        text = printed(call)
        program = (
            f"torch {torch.__version__}"
            if "torch" in call
            else f"python {sys.version_info.major}.{sys.version_info.minor}"
        )
        for literal in open_ones:
            if " ".join(literal.split()) in text:
                found.setdefault(literal, f"{PRINTED}{program}: {'; '.join(call.splitlines())}")
    gone = [literal for literal, where in kept.items() if where.startswith(PRINTED) and literal not in found]
    for literal in gone:
        print(f"printed no more: {literal!r}, {kept[literal]}")
    if not check:
        kept.update(found)
        Path(directory, PLACE).write_text(recorded_text(kept), encoding="utf-8")
    print(f"{len(found)} literals printed by {len(calls)} calls")
    return 1 if gone else 0


if __name__ == "__main__":
    sys.exit(main())
