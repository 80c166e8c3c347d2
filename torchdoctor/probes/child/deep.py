"""Small things that a run does, each done once in the examined interpreter. A program of its own there.

Called as ``python deep.py LIMIT_S FILE``: FILE gets one JSON object a line, once it is known. Each thing is
done in a fork of the process that imported torch, so that one that crashes or hangs takes no other along;
all that is written goes to the working folder, which is the caller's and temporary. Standard library only,
syntax of Python 3.6.
"""

import json
import os
import signal
import sys
import time

MYPY = False
if MYPY:
    from typing import Any

REPORT = sys.argv[2] if len(sys.argv) > 2 else ""
FOLDERS = ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "TORCH_EXTENSIONS_DIR", "CUDA_CACHE_PATH", "TMPDIR")


class Skip(Exception):
    """There is nothing to do here; the text says why."""


def write(record: "dict[str, object]") -> None:
    stream = os.open(REPORT, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(stream, (json.dumps(record) + "\n").encode("ascii"))
    finally:
        os.close(stream)


def part(module: str, name: str) -> "Any":
    from importlib import import_module

    return getattr(import_module(module), name)


def gpu(torch: "Any") -> "Any":
    if not torch.cuda.is_available():
        raise Skip("no GPU that torch can use")
    return torch.device("cuda")


def device(torch: "Any") -> "Any":
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def expect(right: bool, what: str) -> None:
    if not right:
        raise ArithmeticError(what)


def kernel(torch: "Any") -> None:
    values = torch.arange(64, dtype=torch.float32, device=device(torch))
    expect(float((values * 2).sum()) == 4032.0, "the sum of 64 doubled numbers is not 4032")


def cublas(torch: "Any") -> None:
    where = gpu(torch)
    ones = torch.ones(64, 64, device=where)
    expect(float((ones @ ones).sum()) == 64.0**3, "a product of ones is wrong")


def cudnn(torch: "Any") -> None:
    where = gpu(torch)
    if not torch.backends.cudnn.is_available():
        raise Skip("this torch has no cuDNN")
    image, weight = torch.ones(1, 8, 16, 16, device=where), torch.ones(8, 8, 3, 3, device=where)
    expect(float(torch.conv2d(image, weight)[0, 0, 0, 0]) == 72.0, "a convolution of ones is wrong")


def inductor(torch: "Any") -> None:
    if not hasattr(torch, "compile"):
        raise Skip("torch before 2.0 has no torch.compile")
    values = torch.linspace(0, 1, 64, device=device(torch))

    def three_lines(x: "Any") -> "Any":
        y = torch.sin(x)
        z = y * 2
        return z + x

    expect(bool(torch.allclose(torch.compile(three_lines)(values), three_lines(values))), "results differ")


def loader(torch: "Any") -> None:
    from torch.utils.data import DataLoader, TensorDataset

    batches = DataLoader(TensorDataset(torch.arange(8)), batch_size=2, num_workers=2)
    found = sorted(int(one) for batch in batches for one in batch[0])
    expect(found == list(range(8)), "two workers gave other items")


def collective(torch: "Any") -> None:
    import torch.distributed as dist

    if not dist.is_available():
        raise Skip("this torch has no torch.distributed")
    where = device(torch)
    backend = "nccl" if where.type == "cuda" and dist.is_nccl_available() else "gloo"
    place = "file://" + os.path.abspath("rendezvous")
    dist.init_process_group(backend, init_method=place, rank=0, world_size=1)
    value = torch.ones(1, device=where)
    dist.all_reduce(value)
    expect(float(value) == 1.0, "all_reduce of one process changed the value")
    dist.destroy_process_group()


def torchvision(torch: "Any") -> None:
    nms = part("torchvision.ops", "nms")
    boxes = torch.tensor([[0.0, 0.0, 1.0, 1.0], [0.0, 0.0, 1.0, 1.0]], device=device(torch))
    expect(nms(boxes, torch.tensor([0.9, 0.8], device=boxes.device), 0.5).tolist() == [0], "nms is wrong")


def torchaudio(torch: "Any") -> None:
    lfilter = part("torchaudio.functional", "lfilter")
    lfilter(torch.ones(1, 8), torch.tensor([1.0, 0.0]), torch.tensor([1.0, 0.0]))


def xformers(torch: "Any") -> None:
    memory_efficient_attention = part("xformers.ops", "memory_efficient_attention")
    values = torch.ones(1, 16, 1, 32, device=gpu(torch), dtype=torch.float16)
    memory_efficient_attention(values, values, values)


def flash_attn(torch: "Any") -> None:
    flash_attn_func = part("flash_attn", "flash_attn_func")
    values = torch.ones(1, 16, 1, 32, device=gpu(torch), dtype=torch.float16)
    flash_attn_func(values, values, values)


def bitsandbytes(torch: "Any") -> None:
    quantize_blockwise = part("bitsandbytes.functional", "quantize_blockwise")
    quantize_blockwise(torch.ones(4096, device=gpu(torch)))


STEPS = (kernel, cublas, cudnn, inductor, loader, collective)
EXTENSIONS = (torchvision, torchaudio, xformers, flash_attn, bitsandbytes)


def steps() -> "list[Any]":
    """What is to be done: of extensions those that are installed."""
    from importlib.util import find_spec

    return list(STEPS) + [one for one in EXTENSIONS if find_spec(one.__name__) is not None]


def do(step: "Any", torch: "Any") -> "dict[str, object]":
    try:
        step(torch)
    except Skip as reason:
        return {"state": "skip", "detail": str(reason)}
    except BaseException as error:
        import traceback

        name = type(error).__name__
        trace = "".join(traceback.format_exception(type(error), error, error.__traceback__))
        return {"state": "fail", "detail": (name + ": " + str(error))[:2000], "traceback": trace[-12000:]}
    return {"state": "ok", "detail": ""}


def in_fork(step: "Any", torch: "Any", deadline: float) -> "dict[str, object]":
    begun = time.monotonic()
    pid = os.fork()
    if pid == 0:
        found = do(step, torch)
        write(dict(found, step=step.__name__, seconds=round(time.monotonic() - begun, 2)))
        os._exit(0)
    while True:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            break
        if time.monotonic() > deadline:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            return {"state": "late", "detail": "not done when the time was over"}
        time.sleep(0.02)
    return {"state": "died", "detail": "ended by signal " + str(status & 127)} if status & 127 else {}


def main() -> None:
    begun = time.monotonic()
    limit_s = float(sys.argv[1])
    here = os.getcwd()
    for name in FOLDERS:
        os.environ[name] = here
    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")
    folder = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [entry for entry in sys.path if os.path.isabs(entry) and os.path.normpath(entry) != folder]
    import torch

    wanted = steps()
    write({"steps": [step.__name__ for step in wanted]})
    for at, step in enumerate(wanted):
        # one that hangs leaves the others their share
        left = begun + limit_s - time.monotonic()
        share = left / 2 if at < len(wanted) - 1 else left
        found = in_fork(step, torch, time.monotonic() + share) if hasattr(os, "fork") else do(step, torch)
        if found:
            write(dict(found, step=step.__name__, seconds=None))
    os._exit(0)


if __name__ == "__main__":
    main()
