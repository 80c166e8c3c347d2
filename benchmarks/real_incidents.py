"""Real incidents of several ranks: makes them, keeps their logs, and asks who failed first and of what.

    python benchmarks/real_incidents.py --set first --out "$OUT"     # NCCL; without enough GPUs, gloo
    python benchmarks/real_incidents.py --set third --ranks 4 --out "$OUT"
    python benchmarks/real_incidents.py --set live --out "$OUT"      # `torchdoctor hang` on live jobs
    python benchmarks/real_incidents.py --set wrap --out "$OUT"      # `torchdoctor run --` around torchrun
    python benchmarks/real_incidents.py --evaluate "$OUT"            # judge logs made before, anywhere

Programs and labels lie in ``benchmarks/several_ranks/*.txt``, in the form of ``failures/README.txt``; the
labels were written before anything was diagnosed. Further keys:

  rank     who failed first: a number, "last", "none" (not a rank) or "all": nobody can tell them apart; those
           that the launcher ended before they failed too are not among them
  two      "all" or "none": right as well with two ranks, where nobody can say which is the odd one out
  logs     tee (torchrun --tee), redirect (a file for each rank, below OUT/NAME/ranks); else as printed
  records  yes: flight records lie in OUT/NAME as well
  run      torchrun …, "each PROGRAM" (a process and a log for each rank, no launcher), or python …
  send     SIGNAL launcher|group when WORDS: sent once WORDS stand in the output
  wrap     yes: the set "wrap" has it as well
  needs    cuda: not without a GPU for each rank

OUT/NAME holds the logs that ``explain`` is given, OUT/labels.json the labels, OUT/results.json and
OUT/NAME.report.json the verdicts. Collectives, stores and joins give up after 15 s. A program that did not
go as its label says counts in no figure. The doctor runs in this interpreter, with this PYTHONPATH.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from real_failures import (
    ABOUT_MACHINE,
    SEARCHED,
    Case,
    ProgramError,
    faults,
    lacks,
    not_as_planned,
    read_programs,
)

PROGRAMS = Path(__file__).resolve().parent / "several_ranks"
ROOT = PROGRAMS.parent.parent
KEYS = ("two", "logs", "records", "send", "wrap")
LIMIT_S = 75.0  # a time-out of 15 s, the start of torch, and what NCCL takes to write its records
# torch waits four times as long before it ends a process whose collective timed out; 15 s by default
DUMP_MS = "4000"
ORPHANS_S = 20.0  # what ranks whose launcher is gone may still take
READY_S = 40.0
DOCTOR_S = 60.0
NO_REPORT: dict[str, Any] = {"diagnoses": [], "outcome": "no report"}
DOCTOR = (sys.executable, "-m", "torchdoctor")
DOCTORS_PATH = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
# what an operator sets where several machines share one NVLink fabric: never taken away from a program
FABRIC = ("NCCL_NVLS_ENABLE", "TORCH_SYMM_MEM_DISABLE_MULTICAST")
Json = dict[str, Any]


def started_by(mark: str) -> list[int]:
    """The processes of an incident, in whatever session they are."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if f"INCIDENT={mark}".encode() in path.read_bytes().split(b"\0"):
                found.append(int(path.parent.name))
    return found


def free_port() -> int:
    with socket.create_server(("localhost", 0)) as server:
        return int(server.getsockname()[1])


@dataclass
class Job:
    """An incident that runs; ``before`` stands in front of its launcher, which then has its stderr apart."""

    case: Case
    logs: Path
    ranks: int
    here: Path
    before: tuple[str, ...] = ()
    mark: str = field(default_factory=lambda: uuid.uuid4().hex)
    port: int = field(default_factory=free_port)
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def environment(self) -> dict[str, str]:
        foreign = ("TORCH_", "NCCL_", "PYTHONPATH", "RANK", "WORLD_SIZE", "MASTER_", "CUDA_LAUNCH")
        kept = {name: value for name, value in os.environ.items() if name in FABRIC}
        values = kept | {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
        values |= {"INCIDENT": self.mark, "PATH": SEARCHED, "HOME": str(self.here), "RANKS": str(self.ranks)}
        records = f"{self.logs if self.case.get('records') else self.here}/nccl_trace_rank_"
        values |= {"TORCH_FR_BUFFER_SIZE": "2000", "TORCH_FR_DUMP_TEMP_FILE": records}
        values |= {"TORCH_NCCL_WAIT_TIMEOUT_DUMP_MILSEC": DUMP_MS, "OMP_NUM_THREADS": "1"}
        values |= {"PYTHONPATH": DOCTORS_PATH} if self.before else {}
        own = shlex.split(self.case.get("env").replace("PORT=PORT", f"PORT={self.port}"))
        return values | dict(item.split("=", 1) for item in own)

    def commands(self) -> Iterator[tuple[list[str], dict[str, str], str]]:
        """What is started, with the variables of each and the name of its log."""
        run = self.case.get("run", f"torchrun {[*self.case.files][-1]}").replace("PORT", str(self.port))
        kind, *words = shlex.split(run)
        if kind == "torchrun":
            address = [] if "--rdzv-backend" in words else ["--master-port", str(self.port)]
            kept = {"tee": ["--tee", "3", "--log-dir", f"{self.here}/ranks"]}
            kept["redirect"] = ["--redirects", "3", "--log-dir", f"{self.logs}/ranks"]
            options = ["--nproc-per-node", str(self.ranks), *address, *kept.get(self.case.get("logs"), ())]
            launcher = [*self.before, sys.executable, "-m", "torch.distributed.run"]
            yield [*launcher, *options, *words], {}, "launcher.log"
        elif kind == "each":
            job = {"WORLD_SIZE": str(self.ranks), "MASTER_ADDR": "localhost", "MASTER_PORT": str(self.port)}
            for rank in map(str, range(self.ranks)):
                yield [sys.executable, *words], {**job, "RANK": rank, "LOCAL_RANK": rank}, f"rank_{rank}.log"
        else:
            yield [sys.executable, *words], {}, "output.log"

    def start(self) -> None:
        self.logs.mkdir(parents=True, exist_ok=True)
        work = self.here / "work"
        for path, text in self.case.written().items():
            (work / path).parent.mkdir(parents=True, exist_ok=True)
            (work / path).write_text(text, encoding="utf-8")
        for command, variables, name in self.commands():
            with (self.logs / name).open("wb") as log, (self.here / "stderr").open("wb") as errors:
                process = subprocess.Popen(
                    command,
                    cwd=work,
                    stdin=subprocess.PIPE,  # open and silent, as a terminal that nobody types at
                    stdout=log,
                    stderr=errors if self.before else subprocess.STDOUT,
                    env=self.environment() | variables,
                    start_new_session=True,
                )
            self.processes.append(process)

    def said(self) -> str:
        paths = [path for path in self.logs.rglob("*") if path.is_file() and "trace_rank" not in path.name]
        return "\n".join(path.read_text(encoding="utf-8", errors="replace") for path in sorted(paths))

    def says(self, words: str, times: int, limit_s: float) -> bool:
        """Waits until ``words`` stand in the output so often; False when that never comes."""
        end = time.monotonic() + limit_s
        while time.monotonic() < end and any(process.poll() is None for process in self.processes):
            if self.said().count(words) >= times:
                return True
            time.sleep(0.2)
        return False

    def send(self) -> None:
        """The signal that the case asks for, if any."""
        if self.case.get("send"):
            name, whom, _, words = self.case.get("send").split(" ", 3)
            if self.says(words, 1, LIMIT_S):
                kill = os.killpg if whom == "group" else os.kill
                kill(self.processes[0].pid, signal.Signals[name])

    def wait(self) -> int | None:
        """The exit code of the first process that failed; None when the time ran out."""
        end = time.monotonic() + LIMIT_S
        for process in self.processes:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(end - time.monotonic(), 0.1))
        self._gone(min(end - time.monotonic(), ORPHANS_S))
        codes = [process.poll() for process in self.processes]
        return None if None in codes else next((code for code in codes if code), 0)

    def _gone(self, limit_s: float) -> None:
        end = time.monotonic() + limit_s
        while started_by(self.mark) and time.monotonic() < end:
            time.sleep(0.2)

    def stop(self) -> None:
        """End what is left of it."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            for pid in started_by(self.mark):
                with contextlib.suppress(OSError):
                    os.kill(pid, number)
            self._gone(4)
        for process in self.processes:
            process.communicate()

    def tidy(self) -> None:
        """No empty files, and neutral names for this machine and its folders in the others."""
        host = socket.gethostname()
        for path in sorted(self.logs.rglob("*"), reverse=True):
            if path.is_dir():
                with contextlib.suppress(OSError):
                    path.rmdir()
            elif path.stat().st_size == 0:
                path.unlink()
            elif "trace_rank" not in path.name:
                said = path.read_bytes().replace(f"{self.here}/work".encode(), b"/workspace/run")
                path.write_bytes(said.replace(host.encode(), b"gpu-node-01") if len(host) > 5 else said)


@contextlib.contextmanager
def running(case: Case, logs: Path, ranks: int, before: tuple[str, ...] = ()) -> Iterator[Job]:
    """The incident, started; all that it started has ended afterwards."""
    with tempfile.TemporaryDirectory(prefix="job-", ignore_cleanup_errors=True) as here:
        job = Job(case, logs, ranks, Path(here), before)
        try:
            job.start()
            yield job
        finally:
            job.stop()
            job.tidy()


def ask(*words: str) -> Json:
    """The report of a command of torchdoctor; without one, why there is none."""
    command, values = [*DOCTOR, *words, "--format", "json"], {**os.environ, "PYTHONPATH": DOCTORS_PATH}
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, env=values, check=False, timeout=DOCTOR_S
        )
    except subprocess.TimeoutExpired:
        return {**NO_REPORT, "outcome": f"no report in {DOCTOR_S:.0f} s"}
    try:
        report: Json = json.loads(done.stdout)
    except ValueError:
        return {**NO_REPORT, "outcome": f"exit code {done.returncode}: {done.stderr[-300:]}"}
    return report


def label_of(case: Case, ranks: int) -> Json:
    """The label; ``ranks`` holds each answer that is right, as a list of ranks."""
    every = list(range(ranks))
    words = [case.get("rank"), *(case.get("two").split() if ranks == 2 else ())]
    who = {"last": every[-1:], "all": every, "none": [], **{str(rank): [rank] for rank in every}}
    right = [who[word] for word in words]
    rules = [case.get("rule"), *case.get("also").split()]
    return {"case": case.name, "rules": rules, "ranks": right, "frame": case.user_frame or None}


def judged(label: Json, report: Json) -> Json:
    """A label with what was said, and whether it was right."""
    first = report.get("first_failure") or {}
    one = first.get("rank")
    told = sorted(first.get("tie") or ([] if one is None else [one]))
    top = report["diagnoses"][0] if report["diagnoses"] else {}
    frame = top.get("frame") or {}
    place = f"{str(frame.get('file')).rpartition('/')[2]}:{frame.get('line')}"
    return {
        **label,
        **{"told": told, "rule": top.get("rule") or report["outcome"], "standing": top.get("standing")},
        **{"title": top.get("title"), "place": place, "decided_by": first.get("decided_by")},
        "rank_right": told in label["ranks"] or _some_of_all(told, label["ranks"]),
        "cause_right": top.get("rule") in label["rules"],
        "frame_right": None if label["frame"] is None else place == label["frame"],
    }


def _some_of_all(told: list[int], right: list[list[int]]) -> bool:
    """Where all fail alike, the launcher may end some before they do."""
    return len(told) > 1 and any(len(ranks) > 2 and set(told) < set(ranks) for ranks in right)


def summary(out: Path, results: list[Json]) -> bool:
    """Prints and keeps the results. True when each figure is at least 90 %."""
    (out / "results.json").write_text(json.dumps(results, indent=1), encoding="utf-8")
    good = False
    for one in results:
        wrong = [name for name in ("rank", "cause", "frame") if one[f"{name}_right"] is False]
        mark = "not as planned" if one.get("unplanned") else " ".join(["BAD", *wrong]) if wrong else "ok"
        told = f"wanted {one['ranks']} {one['rules'][0]}, told {one['told']} {one['rule']}"
        print(f"{mark:16} {one['case']:26} {told}")
        if one.get("unplanned") or wrong:
            said = (one["standing"], one["title"], one["decided_by"], one["place"])
            print(f"    {one.get('unplanned') or ''} {'; '.join(map(str, said))}")
    for name in ("rank", "cause", "frame"):
        asked = [one[f"{name}_right"] for one in results if not one.get("unplanned")]
        asked = [right for right in asked if right is not None]
        print(f"{name} right: {sum(asked)} of {len(asked)}")
        good = bool(asked) and sum(asked) >= 0.9 * len(asked) and (good or name == "rank")
    return good


def explained(logs: Path, label: Json) -> Json:
    report = ask("explain", "--offline", str(logs))
    logs.with_name(f"{logs.name}.report.json").write_text(json.dumps(report, indent=1), encoding="utf-8")
    return judged(label, report)


def made(case: Case, out: Path, ranks: int) -> Json:
    """Runs an incident; the label, with what did not go as planned."""
    began = time.monotonic()
    with running(case, out / case.name, ranks) as job:
        job.send()
        code = job.wait()
    label = {**label_of(case, ranks), "unplanned": not_as_planned(case, code, job.said())}
    print(f"{case.name:28} {time.monotonic() - began:5.1f} s  exit {code}  {label['unplanned']}", flush=True)
    return label


def looked_at(case: Case, out: Path, ranks: int) -> Json:
    """Asks ``hang`` about a job that stands still. The rank is that of the answer where none failed first."""
    label, report = {**label_of(case, ranks), "unplanned": "it never stood still"}, NO_REPORT
    with running(case, out / case.name, ranks) as job:
        if job.says("is ready", ranks, READY_S):
            time.sleep(4)
            label["unplanned"], report = "", ask("hang", str(job.processes[0].pid))
    (out / f"{case.name}.report.json").write_text(json.dumps(report, indent=1), encoding="utf-8")
    result = judged(label, report)
    rank = report["diagnoses"][0]["rank"] if report["diagnoses"] else None
    if not result["told"] and rank is not None:
        result |= {"told": [rank], "rank_right": [rank] in label["ranks"]}
    return result


def lines_of(text: str) -> set[str]:
    """The lines without what differs from run to run."""
    return {re.sub(r"0x[0-9a-f]+|\d+", "0", line).strip() for line in text.splitlines()}


def wrapped(case: Case, out: Path, ranks: int) -> Json:
    """A program without and with ``torchdoctor run --``: are exit code, output and verdict the same?"""
    with running(case, out / f"{case.name}.plain", ranks) as plain:
        code = plain.wait()
    file = out.resolve() / f"{case.name}.run.report.json"
    before = (*DOCTOR, "run", "--offline", "--format", "json", "-o", str(file), "--")
    with running(case, out / f"{case.name}.run", ranks, before) as job:
        other = job.wait()
        errors = (job.here / "stderr").read_text(encoding="utf-8", errors="replace")
        (out / f"{case.name}.run.stderr").write_text(errors, encoding="utf-8")
    label = label_of(case, ranks)
    without = explained(plain.logs, label)
    label["unplanned"] = not_as_planned(case, code, plain.said())
    report = json.loads(file.read_text(encoding="utf-8")) if file.exists() else NO_REPORT
    result = judged(label, report)
    lost = sorted(lines_of(plain.said()) - lines_of(job.said() + "\n" + errors))
    same = [result[key] == without[key] for key in ("rule", "told", "place")]
    print(
        f"{case.name:28} exit {code}, {other}; verdict the same: {all(same)}; lines lost: {lost}", flush=True
    )
    return {**result, "exits": [code, other], "lost": lost, "without": without}


def evaluate(out: Path) -> bool:
    labels = json.loads((out / "labels.json").read_text(encoding="utf-8"))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return summary(out, list(pool.map(lambda label: explained(out / label["case"], label), labels)))


def chosen(options: argparse.Namespace, gpus: int) -> list[Case]:
    """The cases asked for that can run here. Raises ProgramError."""
    cases = read_programs(PROGRAMS, KEYS)
    if wrong := faults(cases):
        raise ProgramError("; ".join(wrong))
    if options.set == "wrap":
        cases = [case for case in cases if case.get("wrap")]
    else:
        cases = [case for case in cases if case.group == options.set]
    for name in options.only:
        if not any(name in case.name for case in cases):
            known = " ".join(case.name for case in cases)
            raise ProgramError(f"--only {name}: no case of the set has this in its name; it has {known}")
    wanted = []
    for case in cases:
        if options.only and not any(name in case.name for name in options.only):
            continue
        needs = case.get("needs").split()
        why = ["no GPU for each rank"] if "cuda" in needs and gpus < options.ranks else []
        why += [lack for need in needs if need != "cuda" and (lack := lacks(need))]
        if why:
            print(f"left out: {case.name}: {', '.join(why)}")
        else:
            wanted.append(case)
    return wanted


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--out", type=Path, default=Path(os.environ.get("OUT", "real-incidents")))
    parser.add_argument("--set", choices=("first", "second", "third", "live", "wrap"), default="first")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--jobs", type=int, default=8, help="how many incidents run at once (default 8)")
    parser.add_argument(
        "--only", nargs="+", default=[], metavar="NAME", help="cases with one of these in the name"
    )
    parser.add_argument("--evaluate", type=Path, metavar="OUT", help="judge the logs of an earlier run")
    options = parser.parse_args()
    if options.evaluate:
        return 0 if evaluate(options.evaluate) else 1
    asked = subprocess.run([sys.executable, "-c", ABOUT_MACHINE], capture_output=True, text=True, check=False)
    if asked.returncode != 0:
        sys.exit(f"{sys.executable} has no torch that starts:\n{asked.stderr[-1500:]}")
    torch, devices = json.loads(asked.stdout)
    try:
        cases = chosen(options, len(devices))
    except ProgramError as error:
        parser.error(str(error))
    out = options.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    print(
        f"torch {torch} on {devices or 'no GPU'}: {len(cases)} incidents of {options.ranks} ranks", flush=True
    )
    began = time.monotonic()
    run = {"live": looked_at, "wrap": wrapped}.get(options.set, made)
    with ThreadPoolExecutor(options.jobs) as pool:
        results = list(pool.map(lambda case: run(case, out, options.ranks), cases))
    print(f"{time.monotonic() - began:.0f} s", flush=True)
    if run is not made:
        return 0 if summary(out, results) else 1
    (out / "labels.json").write_text(json.dumps(results, indent=1), encoding="utf-8")
    return 0 if evaluate(out) else 1


if __name__ == "__main__":
    sys.exit(main())
