# ruff: noqa: E501 - programs as they are run, one line of theirs a line here
"""Make real failures on a GPU machine, keep what they print, and explain each one right there.

    python benchmarks/capture_gpu.py OUTPUT_FOLDER

Needs torch with a GPU in the interpreter that runs it. Each program runs in its own process with a time
limit. A device-side assert writes an Xid 43 into the kernel log; that is not a sign of broken hardware.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

LIMIT_S = 120

# name -> (rules that are right, program)
PROGRAMS: dict[str, tuple[tuple[str, ...], str]] = {
    "gather-index": (
        ("cuda-assert-index-range",),
        "import torch\nx = torch.arange(12., device='cuda').view(3, 4)\n"
        "i = torch.tensor([[0, 1], [2, 7], [0, 0]], device='cuda')\nprint(torch.gather(x, 1, i).sum().item())\n",
    ),
    "multinomial-nan": (
        ("cuda-assert-multinomial",),
        "import torch\np = torch.tensor([0.1, float('nan'), 0.2], device='cuda')\n"
        "print(torch.multinomial(p, 2).tolist())\n",
    ),
    "label-range-2d": (
        ("cuda-assert-label-range",),
        "import torch, torch.nn.functional as F\nx = torch.randn(2, 5, 8, 8, device='cuda', requires_grad=True)\n"
        "y = torch.randint(0, 5, (2, 8, 8), device='cuda'); y[1, 3, 3] = 255\n"
        "loss = F.cross_entropy(x, y)\nloss.backward()\nprint(loss.item())\n",
    ),
    "oom-loop": (
        ("cuda-oom-leak", "cuda-oom-too-big"),
        "import torch\nkept = []\nfor step in range(100000):\n"
        "    x = torch.randn(1 << 28, device='cuda', requires_grad=True)\n    kept.append((x * 2).sum())\n"
        "    if step % 8 == 0:\n        print(f'step {step} loss {kept[-1].item():.3f} "
        "mem {torch.cuda.memory_allocated() >> 20} MiB', flush=True)\n    kept.append(x)\n",
    ),
    "oom-fragmented": (
        ("cuda-oom-fragmentation", "cuda-oom-too-big"),
        "import torch\nfree, total = torch.cuda.mem_get_info()\n"
        "blocks = [torch.empty(1 << 30, dtype=torch.uint8, device='cuda') for _ in range(int(free * 0.95) >> 30)]\n"
        "for number in range(len(blocks)):  # each new piece fits only into the block that was just given back\n"
        "    blocks[number] = None\n"
        "    blocks[number] = torch.empty(600 << 20, dtype=torch.uint8, device='cuda')\n"
        "print('allocated', torch.cuda.memory_allocated() >> 20, 'MiB of', total >> 20)\n"
        "x = torch.empty(8 << 30, dtype=torch.uint8, device='cuda')\n",
    ),
    "absurd-size": (
        ("cuda-oom-absurd-request", "cuda-oom-too-big"),
        "import torch\nn = torch.tensor(1 << 46)\nx = torch.empty(int(n), dtype=torch.float64, device='cuda')\n",
    ),
    "half-conv-cpu-weight": (
        ("device-mismatch",),
        "import torch\nm = torch.nn.Conv2d(3, 8, 3)\nprint(m(torch.randn(1, 3, 8, 8, device='cuda')).shape)\n",
    ),
    "graph-capture": (
        ("cudagraph-capture",),
        "import torch\ng = torch.cuda.CUDAGraph()\nx = torch.randn(64, device='cuda')\n"
        "with torch.cuda.graph(g):\n    y = x * 2\n    print(y.sum().item())\n",
    ),
    "invalid-ordinal": (
        ("invalid-device-ordinal",),
        "import torch\nx = torch.zeros(1, device=f'cuda:{torch.cuda.device_count()}')\n",
    ),
    "triton-shared-memory": (
        ("compile-triton-ptxas",),
        "import torch, triton, triton.language as tl\n@triton.jit\ndef k(a, b, c, N: tl.constexpr):\n"
        "    i = tl.arange(0, N)\n    x = tl.load(a + i[:, None] * N + i[None, :])\n"
        "    y = tl.load(b + i[:, None] * N + i[None, :])\n"
        "    tl.store(c + i[:, None] * N + i[None, :], tl.dot(x, y))\n"
        "N = 256\nt = [torch.randn(N, N, device='cuda') for _ in range(3)]\nk[(1,)](*t, N)\n"
        "torch.cuda.synchronize()\n",
    ),
    "compile-user-bug": (
        ("matmul-shape", "compile-fake-tensor", "compile-backend-failed"),
        "import torch\n@torch.compile\ndef f(a, b):\n    return (a @ b).relu()\n"
        "print(f(torch.randn(4, 5, device='cuda'), torch.randn(4, 5, device='cuda')))\n",
    ),
    "numpy-in-worker": (
        ("cuda-in-fork",),
        "import torch\nfrom torch.utils.data import DataLoader, Dataset\nclass Items(Dataset):\n"
        "    def __len__(self): return 8\n    def __getitem__(self, i): return self.x[i].cpu().numpy()\n"
        "d = Items(); d.x = torch.randn(8, 4, device='cuda')\nfor b in DataLoader(d, num_workers=2): print(b)\n",
    ),
}


def run(name: str, code: str, folder: Path) -> tuple[Path, int | None, float]:
    """What the program printed, its exit code (None when it ran out of time), and the seconds it took."""
    script = folder / f"{name}.py"
    script.write_text(code, encoding="utf-8")
    output = folder / f"{name}.txt"
    started = time.perf_counter()
    with output.open("wb") as stream:
        try:
            code_number: int | None = subprocess.run(
                [sys.executable, script.name],
                cwd=folder,
                stdout=stream,
                stderr=subprocess.STDOUT,
                timeout=LIMIT_S,
            ).returncode
        except subprocess.TimeoutExpired:
            code_number = None
    return output, code_number, time.perf_counter() - started


def main(folder: Path) -> int:
    folder.mkdir(parents=True, exist_ok=True)
    wrong = 0
    for name, (expected, code) in PROGRAMS.items():
        output, exit_code, seconds = run(name, code, folder)
        answer = subprocess.run(
            [sys.executable, "-m", "torchdoctor", "explain", "--format", "json", str(output)],
            capture_output=True,
            text=True,
            check=False,
        )
        found = json.loads(answer.stdout)["diagnoses"] if answer.returncode == 0 else []
        top = f"{found[0]['rule']} ({found[0]['standing']})" if found else "nothing"
        right = bool(found) and found[0]["rule"] in expected
        wrong += not right
        mark = "ok   " if right else "WRONG"
        print(
            f"{mark} {name}: exit {exit_code}, {seconds:.1f} s, explained as {top}, of {', '.join(expected)}"
        )
    print(f"{len(PROGRAMS) - wrong} of {len(PROGRAMS)} explained right")
    return 1 if wrong else 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(Path(sys.argv[1])))
