"""Real incidents of several ranks: makes them with torchrun, keeps their logs, and asks who failed first.

    python benchmarks/real_incidents.py --out "$OUT"                  # two GPUs and NCCL
    python benchmarks/real_incidents.py --backend gloo --out /tmp/x   # without a GPU
    python benchmarks/real_incidents.py --evaluate "$OUT"             # judge logs made before, anywhere

Each case is a folder of log files (and flight records), beside ``labels.json``, which says the rank that
failed first, or the ranks that nobody can tell apart. The labels are written from what the programs do,
before anything is diagnosed. A case is bounded by ``LIMIT_S``, all of them together take less than 6 minutes.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIMIT_S = 28.0
GRACE_S = 6.0
COLLECTIVE_LIMIT_S = 6

PROGRAM = '''
import argparse, ctypes, datetime, faulthandler, logging, os, signal, sys, threading, time
import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, Dataset

parser = argparse.ArgumentParser()
parser.add_argument("--case")
parser.add_argument("--victim", type=int)
parser.add_argument("--backend")
parser.add_argument("--limit", type=int)
args = parser.parse_args()
rank, local = int(os.environ["RANK"]), int(os.environ["LOCAL_RANK"])
logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s trainer %(message)s")
log = logging.getLogger()
victim = rank == args.victim
cuda = args.backend == "nccl"
device = torch.device("cuda", local) if cuda else torch.device("cpu")
if cuda:
    torch.cuda.set_device(device)


class BudgetSpent(Exception):
    """What a user's own code may raise."""


class Samples(Dataset):
    def __len__(self):
        return 4096

    def __getitem__(self, index):
        if args.case == "dataset-error" and victim and index == 500:
            raise KeyError("segmentation")
        if args.case == "loader-stuck" and victim and index == 500:
            time.sleep(600)
        generator = torch.Generator().manual_seed(index)
        label = index % 10
        if args.case == "label-range" and victim and index == 500:
            label = 17
        return torch.randn(32, generator=generator), label


def settings():
    values = {"lr": 0.1, "width": 64}
    if args.case == "same-on-all":
        values.pop("width")
    return values


def step_hook(step, model):
    if not victim or step != 15:
        return
    log.info("rank=%d checking the state", rank)
    if args.case == "oom":
        keep = torch.empty(1 << 50 if not cuda else 1 << 42, dtype=torch.uint8, device=device)
        print(keep.numel())
    elif args.case == "user-exception":
        raise BudgetSpent("step 15 used 3.2 of 3.0 units")
    elif args.case == "sigkill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif args.case == "sigsegv":
        ctypes.string_at(0)
    elif args.case == "slow-rank":
        time.sleep(600)
    elif args.case == "lock-stuck":
        lock = threading.Lock()
        lock.acquire()
        lock.acquire()
    elif args.case == "rank-branch":
        dist.broadcast(torch.ones(5, device=device), src=rank)


def validate():
    total = torch.zeros(3, device=device)
    dist.all_reduce(total)
    log.info("rank=%d validation %s", rank, total.tolist())


def main():
    dist.init_process_group(args.backend, timeout=datetime.timedelta(seconds=args.limit))
    if args.case in ("lock-stuck", "loader-stuck", "slow-rank-dump"):
        faulthandler.dump_traceback_later(6, exit=False)
    values = settings()
    width = values["width"]
    model = nn.Sequential(nn.Linear(32, width), nn.ReLU(), nn.Linear(width, 10)).to(device)
    model = nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=values["lr"])
    workers = 2 if args.case in ("dataset-error", "loader-stuck") else 0
    loader = DataLoader(Samples(), batch_size=32, num_workers=workers)
    last = 20 if args.case == "uneven-batches" and victim else 40
    for step, (inputs, labels) in enumerate(loader):
        if step == last:
            break
        loss = nn.functional.cross_entropy(model(inputs.to(device)), labels.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 5 == 0:
            log.info("rank=%d step=%d loss=%.4f", rank, step, loss.item())
        step_hook(step, model)
        if args.case == "shape-mismatch" and step == 15:
            parts = [torch.empty(64 if rank else 128, device=device) for _ in range(dist.get_world_size())]
            dist.all_gather(parts, torch.ones(64 if rank else 128, device=device))
        time.sleep(0.02)
    validate()
    if cuda:
        torch.cuda.synchronize()
    dist.destroy_process_group()
    log.info("rank=%d training finished", rank)


if args.case == "sigsegv":
    faulthandler.enable()
main()
'''


@dataclass(frozen=True)
class Case:
    """One incident: what goes wrong on which rank, and how the logs are written."""

    name: str
    what: str
    victim: int
    tie: tuple[int, ...] = ()  # ranks that the incident itself does not tell apart
    tie_allowed: bool = False  # with two ranks the odd one out is not told by the numbers alone
    tee: bool = False
    detail: bool = False


CASES = (
    Case("oom-rank1", "oom", 1),
    Case("oom-rank0-tee", "oom", 0, tee=True),
    Case("label-range-rank1", "label-range", 1),
    Case("dataset-error-rank0", "dataset-error", 0),
    Case("user-exception-rank1-tee", "user-exception", 1, tee=True),
    Case("sigkill-rank1", "sigkill", 1),
    Case("sigsegv-rank0", "sigsegv", 0),
    Case("rank-branch-rank0", "rank-branch", 0, tie_allowed=True),
    Case("rank-branch-rank1-detail", "rank-branch", 1, tie_allowed=True, detail=True, tee=True),
    Case("uneven-batches-rank1", "uneven-batches", 1, tie_allowed=True),
    Case("slow-rank1", "slow-rank", 1),
    Case("lock-stuck-rank0", "lock-stuck", 0),
    Case("loader-stuck-rank1", "loader-stuck", 1),
    Case("shape-mismatch", "shape-mismatch", 0, tie=(0, 1)),
    Case("same-on-all", "same-on-all", 0, tie=(0, 1)),
)


def run_case(case: Case, folder: Path, backend: str, ranks: int) -> float:
    """Run one incident; its logs lie in ``folder``. Returns the seconds it took."""
    folder.mkdir(parents=True, exist_ok=True)
    program = folder.parent / "train.py"
    program.write_text(PROGRAM, encoding="utf-8")
    environment = dict(os.environ)
    environment.update(
        OMP_NUM_THREADS="1",
        TORCH_NCCL_TRACE_BUFFER_SIZE="200",
        TORCH_NCCL_DUMP_ON_TIMEOUT="1",
        TORCH_NCCL_DEBUG_INFO_TEMP_FILE=str(folder / "nccl_trace_rank_"),
        TORCH_FR_BUFFER_SIZE="200",
        TORCH_FR_DUMP_TEMP_FILE=str(folder / "nccl_trace_rank_"),
        PYTHONUNBUFFERED="1",
        HOME=str(folder.parent),
    )
    if case.detail:
        environment["TORCH_DISTRIBUTED_DEBUG"] = "DETAIL"
    launcher = [
        sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(ranks),
        "--monitor-interval", "0.2", "--master-port", str(29500 + os.getpid() % 2000),
    ]  # fmt: skip
    if case.tee:
        launcher += ["--log-dir", str(folder / "ranks"), "--tee", "3"]
    else:
        launcher += ["--log-dir", str(folder / "ranks"), "--redirects", "3"]
    command = [
        *launcher, str(program), "--case", case.what, "--victim", str(case.victim),
        "--backend", backend, "--limit", str(COLLECTIVE_LIMIT_S),
    ]  # fmt: skip
    began = time.monotonic()
    with open(folder / "launcher.log", "wb") as log:
        process = subprocess.Popen(
            command, stdout=log, stderr=subprocess.STDOUT, env=environment, start_new_session=True,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            process.wait(LIMIT_S)
        except subprocess.TimeoutExpired:
            for number in (signal.SIGTERM, signal.SIGKILL):
                try:
                    os.killpg(process.pid, number)
                    process.wait(GRACE_S)
                    break
                except subprocess.TimeoutExpired:
                    continue
                except ProcessLookupError:
                    break
    return time.monotonic() - began


def files_of(folder: Path, tee: bool) -> list[str]:
    """The inputs of a case: with --tee the launcher's output holds the ranks' as well."""
    found = sorted(str(path) for path in folder.rglob("*") if path.is_file() and path.stat().st_size > 0)
    return [path for path in found if not (tee and "/ranks/" in path)]


def evaluate(out: Path) -> tuple[int, int]:
    """Ask ``torchdoctor explain`` about every case. Returns (right, all); writes results.json."""
    labels = json.loads((out / "labels.json").read_text(encoding="utf-8"))
    results = []
    for label in labels:
        folder = out / label["case"]
        command = [sys.executable, "-m", "torchdoctor", "explain", "--offline", "--format", "json"]
        done = subprocess.run(
            [*command, *files_of(folder, label["tee"])], capture_output=True, text=True, cwd=ROOT, check=False
        )
        try:
            report = json.loads(done.stdout)
        except ValueError:
            print(f"{label['case']}: no report (exit code {done.returncode})\n{done.stderr[-2000:]}")
            report = {"first_failure": {"rank": None, "tie": []}, "diagnoses": [], "outcome": "none"}
        first = report["first_failure"]
        right = judge(label, first["rank"], first["tie"])
        top = report["diagnoses"][0]["rule"] if report["diagnoses"] else report["outcome"]
        results.append({**label, "right": right, "rule": top, "first_failure": first})
        told = f"tie {first['tie']}" if first["tie"] else f"rank {first['rank']}"
        wanted = f"tie {label['tie']}" if label["tie"] else f"rank {label['rank']}"
        print(f"{'ok ' if right else 'BAD'} {label['case']:26} wanted {wanted:12} told {told:12} {top}")
        print(f"    {first.get('decided_by')}")
    (out / "results.json").write_text(json.dumps(results, indent=1), encoding="utf-8")
    right_ones = sum(result["right"] for result in results)
    print(f"first failing rank right: {right_ones} of {len(results)}")
    return right_ones, len(results)


def judge(label: dict[str, object], rank: int | None, tie: list[int]) -> bool:
    """A tie must be said to be one; else the rank must be named, alone unless no more can be told."""
    if label["tie"]:
        return sorted(tie) == label["tie"]
    if tie:
        return bool(label["tie_allowed"]) and label["rank"] in tie
    return rank == label["rank"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--out", type=Path, default=Path(os.environ.get("OUT", "real-incidents")))
    parser.add_argument("--backend", choices=("nccl", "gloo"), default="nccl")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--only", help="names of cases, with commas")
    parser.add_argument(
        "--evaluate", type=Path, metavar="DIR", help="judge the logs of an earlier run in DIR"
    )
    args = parser.parse_args()
    if args.evaluate is None:
        only = set(args.only.split(",")) if args.only else None
        unknown = (only or set()) - {case.name for case in CASES}
        if unknown:
            parser.error(
                f"no such case: {', '.join(sorted(unknown))}; known: {', '.join(c.name for c in CASES)}"
            )
        args.out.mkdir(parents=True, exist_ok=True)
        labels = []
        for case in CASES:
            if only is None or case.name in only:
                took = run_case(case, args.out / case.name, args.backend, args.ranks)
                print(f"{case.name}: {took:.0f} s", flush=True)
                labels.append(
                    {"case": case.name, "rank": case.victim, "tie": list(case.tie),
                     "tie_allowed": case.tie_allowed, "tee": case.tee, "backend": args.backend}
                )  # fmt: skip
                (args.out / "labels.json").write_text(json.dumps(labels, indent=1), encoding="utf-8")
    right, cases = evaluate(args.evaluate or args.out)
    return 0 if right == cases else 1


if __name__ == "__main__":
    sys.exit(main())
