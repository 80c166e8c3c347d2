"""Programs that fail on real GPUs: runs them, keeps what they print, and writes it as labelled inputs.

    python benchmarks/real_failures.py --check                            # anywhere: are the programs sound
    python benchmarks/real_failures.py --out "$OUT" --jobs 8              # one GPU
    python benchmarks/real_failures.py --out "$OUT" --jobs 3 --gpus 2     # the programs for two GPUs
    python -m torchdoctor rules eval "$OUT/cases"                         # judge them, anywhere

The programs lie in ``benchmarks/failures/*.txt`` (the form: see ``failures/README.txt``), each with its
label, written before anything is diagnosed. What they print goes to ``OUT/cases/GROUP.cases`` as the
case ``NNN-NAME``. A program that did something else than its label says (it did not fail, or
the words it has to print are not there) goes to ``OUT/aside`` and into no figure; ``OUT/results-N.json``
says why. A program without what it needs (Triton, nvcc, a second GPU) is left out with a line that says so.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import importlib.util
import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from torchdoctor.workbench.case import Case as LabelledCase  # noqa: E402  from this checkout
from torchdoctor.workbench.cases import put  # noqa: E402

PROGRAMS = Path(__file__).resolve().parent / "failures"
_OF_THE_CASE = ("rule", "also", "rank", "gpus", "exit", "says", "note", "group")
_OF_THE_RUN = ("kit", "needs", "alone", "run", "env", "limit")
KEYS = frozenset(_OF_THE_CASE + _OF_THE_RUN)
MARK = "#!here"  # stands behind the line that the label calls the user's; it is taken off before the run
LIMIT_S, GRACE_S = 60.0, 5.0
# what a person's folders are called; the real ones are temporary
HOMES = ("/home/mia/projects", "/workspace", "/mnt/data/exp", "/home/jovyan/work", "/scratch/tk/runs")
PROJECTS = ("vit", "recsys", "pose", "tts", "tiny-lm", "detector", "exp7")
SEARCHED = f"{Path(sys.executable).parent}:{os.environ.get('PATH', '')}:/usr/local/cuda/bin"
ABOUT_MACHINE = (
    "import json, torch; c = torch.cuda; n = c.device_count(); "
    "print(json.dumps([torch.__version__, [c.get_device_name(i) for i in range(n)]]))"
)


WRITING = threading.Lock()  # cases of a group go to one file


class ProgramError(Exception):
    """A file of programs that cannot be read; the message names file and case."""


@dataclass(frozen=True)
class Case:
    """One program, in one or more files, and its label."""

    name: str
    number: int
    values: dict[str, str]
    files: dict[str, str] = field(default_factory=dict)

    def get(self, key: str, other: str = "") -> str:
        return self.values.get(key, other)

    @property
    def gpus(self) -> int:
        return int(self.get("gpus", "1"))

    @property
    def healthy(self) -> bool:
        return self.get("rule") == "none"

    @property
    def alone(self) -> bool:
        """It fills the memory of the GPU: nothing may run beside it."""
        return "alone" in self.values

    @property
    def group(self) -> str:
        return self.get("group", "clean" if self.healthy else "gpu" if self.gpus == 1 else "two-gpus")

    @property
    def folder(self) -> str:
        return f"{self.number:03d}-{self.name}"

    @property
    def home(self) -> str:
        """What its folder is called in the output: nothing that tells the cause."""
        return f"{HOMES[self.number % len(HOMES)]}/{PROJECTS[self.number % len(PROJECTS)]}"

    @property
    def user_frame(self) -> str:
        for path, text in self.files.items():
            for number, line in enumerate(text.split("\n"), start=1):
                if MARK in line:
                    return f"{path.rsplit('/', 1)[-1]}:{number}"
        return ""

    def written(self) -> dict[str, str]:
        """The files as they are run, without the mark."""
        return {path: re.sub(rf"[ ]*{MARK}.*", "", text) for path, text in self.files.items()}


@dataclass
class Outcome:
    """What became of a case: ``planned`` says that it failed as its label says."""

    case: Case
    seconds: float = 0.0
    code: int | None = None
    left_out: str = ""
    unplanned: str = ""

    def as_data(self) -> dict[str, object]:
        return {
            "case": self.case.folder, "rule": self.case.get("rule"), "seconds": round(self.seconds, 1),
            "exit": self.code, "left_out": self.left_out, "unplanned": self.unplanned,
        }  # fmt: skip


def sections(text: str, mark: str) -> list[tuple[str, str]]:
    """The parts of a text that begin at lines ``mark TITLE``; what stands before the first is no part."""
    parts = re.split(rf"(?m)^{re.escape(mark)} +(\S.*)\n", text)
    return [(parts[at].strip(), parts[at + 1]) for at in range(1, len(parts), 2)]


def read_programs(folder: Path | None = None, more_keys: Collection[str] = ()) -> list[Case]:
    """All cases of a folder, in the order of the files. Raises ProgramError."""
    kits: dict[str, dict[str, str]] = {}
    found: list[Case] = []
    texts = {path: path.read_text(encoding="utf-8") for path in sorted((folder or PROGRAMS).glob("*.txt"))}
    for path, text in texts.items():
        if path.name != "README.txt":
            for name, body in sections(text, "@@@@"):
                if name in kits:
                    raise ProgramError(f"{path.name}: another file has a kit {name} already")
                kits[name] = {file: code.strip("\n") + "\n" for file, code in sections(body, "--")}
    for path, text in texts.items():
        if path.name == "README.txt":
            continue
        for name, body in sections(text.split("\n@@@@ ")[0], "####"):
            head = body.split("\n-- ", 1)[0]
            values: dict[str, str] = {}
            for line in filter(None, map(str.strip, head.split("\n"))):
                key, colon, value = line.partition(":")
                if not colon or key not in KEYS.union(more_keys):
                    known = sorted(KEYS.union(more_keys))
                    raise ProgramError(f"{path.name}: {name}: no such key: {line!r}; known: {known}")
                values[key] = value.strip()
            if folder:
                values["group"] = path.stem
            files: dict[str, str] = {}
            for kit in values.get("kit", "").split():
                if kit not in kits:
                    raise ProgramError(f"{path.name}: {name}: no such kit: {kit}; known: {sorted(kits)}")
                files.update(kits[kit])
            files.update({file: code.strip("\n") + "\n" for file, code in sections(body, "--")})
            found.append(Case(name, len(found) + 1, values, files))
    return found


def faults(cases: list[Case]) -> list[str]:
    """What is wrong with the programs themselves."""
    known = (PROGRAMS.parent.parent / "rules" / "ids.txt").read_text(encoding="utf-8").split("\n")
    wrong = []
    names = [case.name for case in cases]
    for case in cases:
        if names.count(case.name) > 1:
            wrong.append(f"{case.name}: the name is used twice")
        for rule in (case.get("rule"), *case.get("also").split()):
            if rule not in known and rule != "none":
                wrong.append(f"{case.name}: no such rule: {rule!r}")
        if sum(text.count(MARK) for text in case.files.values()) > 1:
            wrong.append(f"{case.name}: more than one {MARK}")
        if not case.files:
            wrong.append(f"{case.name}: no file")
        try:
            re.compile(case.get("says"))
        except re.error as error:
            wrong.append(f"{case.name}: says: {error}")
        for path, text in case.written().items():
            if path.endswith(".py") and "not python" not in case.get("note"):
                try:
                    compile(text, path, "exec")
                except SyntaxError as error:
                    wrong.append(f"{case.name}: {path}:{error.lineno}: {error.msg}")
    return wrong


@functools.cache
def lacks(need: str) -> str:
    """Why a thing that a program needs is not here; empty when it is."""
    if need in ("nvcc", "ninja", "bash", "cc", "g++"):
        names = {"cc": ["gcc", "clang", os.environ.get("CC", "cc")], "g++": [os.environ.get("CXX", "g++")]}
        there = any(shutil.which(name, path=SEARCHED) for name in names.get(need, [need]))
        return "" if there else f"no {need} on this machine"
    return "" if importlib.util.find_spec(need) is not None else f"no package {need} in this Python"


def command(case: Case) -> list[str]:
    words = shlex.split(case.get("run", "python train.py"))
    if words[0] == "python":
        return [sys.executable, *words[1:]]
    if words[0] == "torchrun":
        port = str(29500 + (os.getpid() * 7 + case.number) % 3000)
        script = Path(sys.executable).parent / "torchrun"
        launcher = [str(script)] if script.exists() else [sys.executable, "-m", "torch.distributed.run"]
        return [*launcher, "--master-port", port, *words[1:]]
    return words


def environment(case: Case, folder: Path) -> dict[str, str]:
    values = dict(os.environ)
    for name in ("PYTHONPATH", "CUDA_LAUNCH_BLOCKING", "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"):
        values.pop(name, None)
    values["PATH"] = SEARCHED
    values["HOME"] = str(folder.parent)
    if case.number % 2:  # the other half is written as a redirected run writes it: stdout after stderr
        values["PYTHONUNBUFFERED"] = "1"
    values["FREE_PORT"] = str(30000 + (os.getpid() * 11 + case.number) % 3000)
    for item in shlex.split(case.get("env")):
        name, _, value = item.partition("=")
        values[name] = value
    return values


def ended(process: subprocess.Popen[bytes], limit_s: float) -> int | None:
    """The exit code, None when the program and all that it started had to be stopped."""
    code: int | None = None
    with contextlib.suppress(subprocess.TimeoutExpired):
        code = process.wait(limit_s)
    for number in (signal.SIGTERM, signal.SIGKILL):  # also what a program left behind
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            break
        try:
            process.wait(GRACE_S)
        except subprocess.TimeoutExpired:
            continue
        if code is not None:
            time.sleep(0.2)
    return code


def plain(said: bytes, case: Case, folder: Path) -> bytes:
    """The output with neutral names for the folder, its parent and the machine."""
    said = said.replace(str(folder).encode(), case.home.encode())
    said = said.replace(str(folder.parent).encode(), case.home.rsplit("/", 1)[0].encode())
    host = socket.gethostname()
    return said.replace(host.encode(), b"gpu-node-01") if len(host) > 5 and host != "localhost" else said


def not_as_planned(case: Case, code: int | None, said: str) -> str:
    """Why the output does not bear the label; empty when it does."""
    wanted = case.get("exit", "zero" if case.healthy else "nonzero")
    if code is None and wanted != "any":
        return "ran out of time"
    if wanted == "zero" and code != 0:
        return f"exit code {code}, not 0"
    if wanted == "nonzero" and code == 0:
        return "exit code 0: it did not fail"
    if case.get("says") and not re.search(case.get("says"), said):
        return f"it does not say {case.get('says')!r}"
    return ""


def labelled(case: Case, said: bytes, torch: str, device: str) -> LabelledCase:
    """What the program printed, with its label."""
    return LabelledCase(
        case.folder,
        case.get("rule"),
        of=case.group,
        origin="captured",
        also=tuple(case.get("also").split()),
        rank=int(case.get("rank")) if case.get("rank") else None,
        frame=case.user_frame or None,
        torch=torch,
        note=f"{device}; {case.get('note') or case.name}",
        data=said,
    )


def run(case: Case, out: Path, torch: str, device: str, limit_s: float) -> Outcome:
    """Run one case in a folder of its own, and write what it printed with its label."""
    for need in case.get("needs").split():
        if lacks(need):
            return Outcome(case, left_out=lacks(need))
    outcome = Outcome(case)
    with tempfile.TemporaryDirectory(prefix="rf-", ignore_cleanup_errors=True) as temporary:
        folder = Path(temporary) / PROJECTS[case.number % len(PROJECTS)]
        for path, text in case.written().items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text, encoding="utf-8")
        output = Path(temporary) / "output"
        began = time.perf_counter()
        with output.open("wb") as stream:
            process = subprocess.Popen(
                command(case), cwd=folder, stdout=stream, stderr=subprocess.STDOUT, start_new_session=True,
                stdin=subprocess.DEVNULL, env=environment(case, folder),
            )  # fmt: skip
            outcome.code = ended(process, min(float(case.get("limit", str(LIMIT_S))), limit_s))
        outcome.seconds = time.perf_counter() - began
        said = plain(output.read_bytes(), case, folder)
    outcome.unplanned = not_as_planned(case, outcome.code, said.decode("utf-8", "replace"))
    root = out / "aside" if outcome.unplanned else out / "cases"
    with WRITING:
        root.mkdir(parents=True, exist_ok=True)
        put(str(root), labelled(case, said, torch, device), over=True)
    return outcome


def show(outcome: Outcome) -> Outcome:
    words = f"left out: {outcome.left_out}" if outcome.left_out else f"exit {outcome.code}"
    mark = "--" if outcome.left_out else "? " if outcome.unplanned else "ok"
    more = f"; ASIDE: {outcome.unplanned}" if outcome.unplanned else ""
    print(f"{mark} {outcome.case.folder:44} {outcome.seconds:5.1f} s  {words}{more}", flush=True)
    return outcome


def run_all(
    cases: list[Case], out: Path, jobs: int, torch: str, device: str, budget_s: float
) -> list[Outcome]:
    """Those that share the GPU, ``jobs`` at once, then the others one by one, until the time is spent."""
    end = time.perf_counter() + budget_s

    def one(case: Case) -> Outcome:
        left = end - time.perf_counter()
        if left < 10:
            return show(Outcome(case, left_out="the time for all is spent; run it with --only"))
        return show(run(case, out, torch, device, left))

    with ThreadPoolExecutor(jobs) as pool:
        found = list(pool.map(one, [case for case in cases if not case.alone]))
    return found + [one(case) for case in cases if case.alone]


def chosen(cases: list[Case], options: argparse.Namespace) -> list[Case]:
    """The cases asked for. Raises ProgramError when a name fits none."""
    if not options.only:
        return [case for case in cases if case.gpus == options.gpus]
    for name in options.only:
        if not any(name in case.folder for case in cases):
            raise ProgramError(f"--only {name}: no case has this in its name; --list shows them")
    return [case for case in cases if any(name in case.folder for name in options.only)]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--out", type=Path, default=Path(os.environ.get("OUT", "real-failures")))
    parser.add_argument("--only", nargs="+", metavar="NAME", help="cases with one of these in their name")
    parser.add_argument("--jobs", type=int, default=6, help="how many run at once (default 6)")
    parser.add_argument("--gpus", type=int, default=1, choices=(1, 2), help="the group for so many GPUs")
    parser.add_argument("--budget", type=float, default=540, help="seconds for all of them (default 540)")
    parser.add_argument("--check", action="store_true", help="only say whether the programs are sound")
    parser.add_argument("--list", action="store_true", help="only show the cases")
    options = parser.parse_args()
    try:
        cases = read_programs()
        wanted = chosen(cases, options)
    except ProgramError as error:
        parser.error(str(error))
    if options.list:
        for case in cases:
            print(f"{case.folder:44} {case.get('rule'):32} {case.group:9} {case.user_frame}")
        return 0
    wrong = faults(cases)
    print("\n".join(wrong) if wrong else f"{len(cases)} programs, no fault")
    if wrong or options.check:
        return 1 if wrong else 0
    asked = subprocess.run([sys.executable, "-c", ABOUT_MACHINE], capture_output=True, text=True, check=False)
    if asked.returncode != 0:
        sys.exit(f"{sys.executable} has no torch that starts:\n{textwrap.indent(asked.stderr[-1500:], '  ')}")
    torch, devices = json.loads(asked.stdout)
    if len(devices) < max((case.gpus for case in wanted), default=1):
        print(f"only {len(devices)} GPUs are visible here: programs for more will be set aside")
    device = devices[0] if devices else "no GPU"
    options.out.mkdir(parents=True, exist_ok=True)
    began = time.perf_counter()
    outcomes = run_all(wanted, options.out, options.jobs, torch, device, options.budget)
    report = {"torch": torch, "devices": devices, "seconds": round(time.perf_counter() - began, 1)}
    data = {**report, "cases": [outcome.as_data() for outcome in outcomes]}
    (options.out / f"results-{options.gpus}.json").write_text(json.dumps(data, indent=1), encoding="utf-8")
    aside = sum(bool(outcome.unplanned) for outcome in outcomes)
    left = sum(bool(outcome.left_out) for outcome in outcomes)
    good = len(outcomes) - aside - left
    print(f"{good} as planned, {aside} aside, {left} left out, in {report['seconds']} s")
    print(f"torch {torch} on {devices}; programs that went another way than planned: {options.out / 'aside'}")
    print(f"now: python -m torchdoctor rules eval {options.out / 'cases'}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
