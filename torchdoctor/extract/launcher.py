"""How the ranks were started, as the text shows it: on how many machines, by which Python, as whose ranks.

Sources: the options of torchrun, accelerate launch, srun and DeepSpeed's pdsh; the prefix of Ray's workers
on other nodes than the driver's; the calls by which TRL, OpenRLHF, verl, vLLM and SGLang join a server of a
model and its trainer into one group.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from torchdoctor.extract import Found, once_a_text, slurm
from torchdoctor.extract.launcher_hosts import only_host, several_nodes
from torchdoctor.extract.launcher_settings import (
    gloo_interface,
    host,
    lost_script,
    nccl_interface,
    one_machine,
    port,
)
from torchdoctor.extract.progress import is_step
from torchdoctor.extract.rank_command import started_by
from torchdoctor.model import Event, EventKind, Fact, Transcript
from torchdoctor.patterns import Patterns, pattern

FACTS: dict[str, str] = {
    "launcher.other_python": "bool: python is of another installation than torchrun, or than the ranks'",
    "launcher.name": "str: accelerate, deepspeed, mpirun, spawn or torchrun, by what it shows of itself",
    "launcher.command": "text: the command that started the program, as one line of the text shows it",
    "launcher.program": "str: what was started in place of a script: an installed program or a module",
    "launcher.several_nodes": "bool: ranks of more than one machine are shown; unknown where none are",
    "launcher.one_machine": "bool: all ranks run on one machine, as the text says; unknown where it does not",
    "launcher.per_node": "int: how many processes torchrun is told to start on a node",
    "launcher.port": "int: the master port, as an option, a variable or an address of the text sets it",
    "launcher.host": "str: the master's address or name, as they set it; unknown where it is a loopback one",
    "launcher.gloo_interface": "str: what GLOO_SOCKET_IFNAME is set to somewhere in the text",
    "launcher.nccl_interface": "str: what NCCL_SOCKET_IFNAME is set to somewhere in the text",
    "launcher.rank_zeros": "int: how many processes, of two or more, failed to open the master port",
    "launcher.first_nodes": "int: on how many hosts, two or more, srun's one task each opened the port",
    "launcher.too_many": "bool: more launchers of torchelastic than nodes ran at once",
    "launcher.alone": "str: why torchrun's nodes wait each for itself: no-endpoint or standalone",
    "launcher.only_host": "text: the only machine, of several, on which this file was not found",
    "launcher.lost_script": "text: the script that a shell was to read, above the message, and did not find",
    "launcher.lost_at": "text: the line of the job script that asks for it",
    "launcher.two_programs": "bool: the group joins a server of a model and its trainer, two programs",
}

_BANNER = "Setting OMP_NUM_THREADS environment variable for each process"  # torchelastic's first words
_OF_TORCHRUN = (
    "torchrun", "torch/distributed/run", "torch/distributed/launch", "-m torch.distributed.", "--nproc",
    "elastic/multiprocessing/api.py", "elastic.multiprocessing.api",
)  # fmt: skip
# what a launcher shows of itself, on its command line and in its frames
_NAMES = (
    ("accelerate", ("accelerate launch", "accelerate/commands/launch.py")),
    ("deepspeed", ("deepspeed/launcher", "sigkill_handler", "[launch.py:", "deepspeed --")),
    ("mpirun", ("mpirun", "mpiexec")),
    ("spawn", ("multiprocessing/spawn.py", "ProcessExitedException", "ProcessRaisedException")),
    ("torchrun", (*_OF_TORCHRUN, _BANNER)),
)
# a prompt (a shell's, a notebook's, that of set -x), the variables, what is started
_PROMPT = (
    r"(?:\([\w.-]{1,40}\) ?)?(?:\[?[\w.-]{1,40}@[\w.-]{1,60}[:~ ][^$#]{0,80}[$#%] |[$%+] |!"
    r"|(?:PS )?[A-Za-z]:\\[^<>|\"*?]{0,200}> ?)"
)
_SETTINGS = r"(?:[A-Za-z_]\w*=\S* ){0,8}(?:\S{0,200}/)?"
_LAUNCHES = _SETTINGS + (
    r"(?:torchrun|accelerate launch|deepspeed|python[\d.]{0,4} -m torch\.distributed\.(?:launch|run)"
    r"|srun(?: -\S+(?: \d+)?){0,12} \S{0,200}python[\d.]{0,4}|(?:mpirun|mpiexec) .{1,300}?python[\d.]{0,4})"
    r" (?:.{0,300}[ /])?(?:[\w.-]+\.py|-m [\w.]+)(?: .{1,400})?"
)
_STARTED = _SETTINGS + r"(?:python[\d.]{0,4}|(?:ba)?sh|\./[\w./-]{1,200}) (?!-c\b|-m (?:pip|venv)\b).{1,400}"
_NO_LINE = r"[;|&<>`*?(){}\u2026]|\$|\\$|\.\.\."  # more than one command, or not all of it
_COMMAND_CHARS = 400
_COMMAND_MARKS = ("torchrun", "python", "accelerate", "deepspeed", "srun", "mpi", "sh ", "./")
# dora run -d, which starts the ranks itself
_OF_DORA = r"(?m)^Executor: Worker \d{1,5} died, killing all workers"
_RUNS = ("_run_module_as_main", "_run_code")
# what runs the reader's own script under its own name, or shows a cell
_RUNNERS = frozenset({"torch", "accelerate", "deepspeed", "debugpy", "ipykernel", "pdb", "horovod", "ray"})
_IN_BIN = r".*[\\/](?:bin|Scripts)[\\/](?P<name>[\w.-]+?)(?:\.exe[\\/]__main__\.py)?"
_PER_NODE = r"--nproc[-_]per[-_]node[ =](\d{1,3})\b|\bnproc_per_node +: (\d{1,3})\b"
_JOINS = (
    "StatelessProcessGroup", "stateless_init_process_group", "PyNcclCommunicator(pg,", "init_communicator",
    "init_weight_update_group", "init_weights_update_group", "vllm_client.py", "vllm_serve.py",
    "trl vllm-serve",
)  # fmt: skip

_LISTENS = "The server socket has failed to listen on any local network address"
# c10d meets at --rdzv-endpoint, by default on localhost; --master_addr is for the static rendezvous.
# torch 1.13 to 2.1 said so to everybody, later ones where it is the case
_C10D = r"--rdzv[-_]backend[= ][\"']?c10d\b|\brdzv_backend\s+: c10d\b"
_C10D_TOLD = rf"{_C10D}|torch/distributed/run\.py:\d{{1,5}}\] master_addr is only used for static"
_STANDALONE = r"\btorch(?:run|\.distributed\.run)\b[^#]{1,300}?--standalone\b"
_ENDPOINT = r"--rdzv[-_]endpoint\b|RDZV_ENDPOINT\b|\brdzv_endpoint +: \S"
_TAKEN = ("EADDRINUSE", "ddress already in use", "10048")

LINE_CHARS = 400

_SOURCES = {
    # torchelastic's agent names the interpreter that it started
    "binary": r"\bof binary: (?P<path>\S{2,200}python[\d.]{0,6}(?:\.exe)?)(?:\s|$)",
    # which, command -v, type -p, where, whereis; "torchrun is /usr/bin/torchrun"
    "python": (
        r"^\s*(?:python3? (?:is|ist) |python3?: )?(?P<path>(?:/|[A-Z]:\\)\S{0,200}[/\\]python[\d.]{0,6}"
        r"(?:\.exe)?)(?:\s/\S*)*\s*$"
    ),
    # in words: "`which python` is /home/me/env/bin/python"
    "python-said": (
        r"\b(?:which|type(?: -p)?|command -v|where) python3?\)?[`'\"]{0,2}(?: here)?"
        r"(?: (?:is|gives?|says?|prints?|shows?|returns?|points to|ist|zeigt|sagt)|\s?[:=]|\s?->|\s?\u2192)"
        r"[ `'\"]{1,3}(?P<path>(?:/|[A-Z]:\\)[^\s`'\"]{0,200}[/\\]python[\d.]{0,6}(?:\.exe)?)\b"
    ),
    "script-said": (
        r"torchrun\)?[`'\"]{0,2} (?:is|gives?|says?|prints?|shows?|returns?|starts with"
        r"|begins with|ist|zeigt)[ `'\"]{1,3}#!\s?(?P<path>/[^\s`'\"]{1,200}/python[\d.]{0,6})\b"
    ),
    # what python -c "import peft; print(peft.__file__)" answers: the shell's python has the package.
    # ~/.local and Debian's dist-packages serve interpreters that lie elsewhere
    "found": (
        r"^\s*(?P<path>(?:/(?!\S*/\.local/)\S{0,200}/lib(?:64)?/python\d\.\d{1,2}|[A-Z]:\\\S{0,200}\\[Ll]ib)"
        r"[/\\]site-packages[/\\](?P<package>\w+)[/\\]__init__\.py)\s*$"
    ),
    # pip show, of the pip that the shell finds
    "name": r"^\s*Name: (?P<package>[\w.-]{1,60})\s*$",
    "located": r"^\s*Location: (?P<path>(?:/(?!\S*/\.local/)|[A-Z]:\\)\S{1,200}[/\\]site-packages)\s*$",
    "missing": r"No module named '(?P<package>\w+)",
    "torchrun": (
        r"^\s*(?:torchrun (?:is|ist) |torchrun: )?(?P<path>(?:/|[A-Z]:\\)\S{0,200}[/\\]torchrun"
        r"(?:\.exe)?)\s*$"
    ),
    # its first line
    "script": r"^\s*#!\s?(?P<path>/\S{1,200}/python[\d.]{0,6})\s*$",
}
_PATTERNS = Patterns(_SOURCES)


def extract(event: Event, transcript: Transcript) -> Iterator[Found]:
    """Facts of several machines, of two programs in one group, and of two installations that are named."""
    name = _name(transcript)
    if name:
        yield "name", name
    program = _program(transcript)
    if program:
        yield "program", program
    command = _command(event, transcript)
    if command:
        yield "command", command
    if several_nodes(transcript):
        yield "several_nodes", True
    elif one_machine(transcript):
        yield "one_machine", True
    count = _per_node(transcript)
    if count:
        yield "per_node", count
    master_port = port(transcript)
    if master_port is not None:
        yield "port", master_port
    master_host = host(transcript)
    if master_host:
        yield "host", master_host
    interface = gloo_interface(transcript)
    if interface:
        yield "gloo_interface", interface
    interface = nccl_interface(transcript)
    if interface:
        yield "nccl_interface", interface
    lone = only_host(event, transcript)
    if lone is not None:
        yield "only_host", lone
    lost = lost_script(event, transcript)
    if lost is not None:
        yield "lost_script", lost[0]
        yield "lost_at", lost[1]
    if _two_programs(transcript):
        yield "two_programs", True
    alone = _alone(transcript)
    if alone:
        yield "alone", alone
    if _too_many(transcript):
        yield "too_many", True
    zeros = _rank_zeros(transcript)
    if zeros > 1:
        yield "rank_zeros", zeros
        hosts, tasks = slurm.ended("\n".join(one.text for one in transcript.events if not one.quoted))
        if 1 < hosts == tasks == zeros:
            yield "first_nodes", hosts
    yield from _installations(event, transcript)


@once_a_text
def _name(transcript: Transcript) -> str:
    found: set[str] = set()
    for event in transcript.events:
        paths = "\n".join(frame.file for frame in event.frames).replace("\\", "/")
        shown = f"{event.type or ''}\n{event.text}\n{paths}"
        found |= {name for name, marks in _NAMES if any(mark in shown for mark in marks)}
    name = next((name for name, _ in _NAMES if name in found), "")
    return name or ("spawn" if _starts_ranks(transcript) else "")


def _starts_ranks(transcript: Transcript) -> bool:
    """Do processes that the program starts itself call torch.distributed? Python's frame is outermost."""
    return any(
        frames[0].function == "_bootstrap"
        and frames[0].file.replace("\\", "/").endswith("multiprocessing/process.py")
        and any("distributed" in frame.file or "distributed" in frame.code for frame in frames[1:])
        for frames in (event.frames for event in transcript.events)
        if frames
    )


@once_a_text
def _program(transcript: Transcript) -> str:
    """What the outermost frames of the first stack of a program's start show; "" for a script."""
    for event in transcript.events:
        if "Executor: Worker " in event.text and pattern(_OF_DORA).search(event.text):
            return "dora"
        inner = [frame for frame in event.frames if frame.function not in _RUNS]
        if not inner or event.frames[0].function not in (*_RUNS, "<module>"):
            continue
        frame, name = inner[0], pattern(_IN_BIN).fullmatch(inner[0].file)
        if frame.package in _RUNNERS or frame.file.startswith("<"):
            continue
        if name is not None and not name["name"].endswith(".py"):
            return "" if any(one in _RUNNERS for one in re.split(r"\W", name["name"])) else name["name"]
        if len(inner) < len(event.frames) or frame.package not in ("", "python"):
            return re.split(r"[\\/]+", frame.file)[-1].removesuffix(".py")
        return ""
    return ""


def _command(event: Event, transcript: Transcript) -> str:
    """The last line above the failure that starts a program; "" where it is no command by itself."""
    above = [line for at, line in _commands(transcript) if at <= event.id]
    above = above or started_by(_name(transcript), transcript)
    return "" if not above or pattern(_NO_LINE).search(above[-1]) else above[-1]


@once_a_text
def _commands(transcript: Transcript) -> list[tuple[int, str]]:
    """(event, line) of the commands at a prompt, and of those that name a launcher and a script."""
    program = _program(transcript)
    found = []
    for event in transcript.events:
        text = event.text.strip()
        if event.frames or len(text) > _COMMAND_CHARS or "\n" in text:
            continue
        if not any(mark in text for mark in _COMMAND_MARKS) and not (program and program in text):
            continue
        prompt = pattern(_PROMPT).match(text)
        line = text[prompt.end() if prompt is not None else 0 :].strip()
        if pattern(_LAUNCHES).fullmatch(line) or (
            prompt is not None and (pattern(_STARTED).fullmatch(line) or _starts(program, line))
        ):
            found.append((event.id, line))
    return found


def _starts(program: str, line: str) -> bool:
    """Is the program the first word behind the variables?"""
    word = next((word for word in line.split() if not pattern(r"[A-Za-z_]\w*=.*").fullmatch(word)), "")
    return bool(program) and word.rpartition("/")[2] == program


@once_a_text
def _per_node(transcript: Transcript) -> int:
    for event in transcript.events:
        found = pattern(_PER_NODE).search(event.text) if "nproc" in event.text else None
        if found is not None:
            return int(found[1] or found[2])
    return 0


@once_a_text
def _two_programs(transcript: Transcript) -> bool:
    for event in transcript.events:
        shown = f"{event.text}\n" + "\n".join(f"{one.file} {one.function} {one.code}" for one in event.frames)
        if any(mark in shown for mark in _JOINS):
            return True
    return False


@once_a_text
def _rank_zeros(transcript: Transcript) -> int:
    """How many processes raised that the master port is taken: each of them took itself for rank 0."""
    return sum(
        event.kind is EventKind.EXCEPTION
        and not event.quoted
        and (_LISTENS in event.text or event.text.startswith("Address already in use"))  # torch 1.0 to 1.9
        and any(mark in event.text for mark in _TAKEN)
        for event in transcript.events
    )


@once_a_text
def _alone(transcript: Transcript) -> str:
    """What keeps the nodes from meeting, in the command or in what torchrun says of it; "" for nothing."""
    text = "\n".join(event.text for event in transcript.events)
    missed = any("RendezvousTimeoutError" in (event.type or "") for event in transcript.events)
    if not missed and not several_nodes(transcript):
        return ""
    if pattern(_STANDALONE).search(text):
        return "standalone"
    asked = pattern(_C10D).search(text) if not missed else pattern(_C10D_TOLD).search(text)
    return "no-endpoint" if asked is not None and not pattern(_ENDPOINT).search(text) else ""


@once_a_text
def _too_many(transcript: Transcript) -> bool:
    """Do launchers show themselves, with no step of training between, or srun's tasks for each node?"""
    launchers, texts = 0, []
    for event in transcript.events:
        if event.quoted:
            continue
        texts.append(event.text)
        if _BANNER in event.text:
            launchers += event.text.count(_BANNER)
        elif launchers and is_step(event.text):
            launchers = 0
    if not launchers and _per_node(transcript) < 2:
        return False
    text = "\n".join(texts)
    hosts, tasks = slurm.ended(text)
    nodes = slurm.nodes(text) or hosts
    if not nodes and several_nodes(transcript):
        return False
    return max(launchers, tasks) > max(nodes, 1)


def _installations(event: Event, transcript: Transcript) -> Iterator[Found]:
    shell = (
        _first("python", transcript) or _first("python-said", transcript) or _has_missing(event, transcript)
    )
    if shell is None:
        return
    for name in ("binary", "script", "script-said", "torchrun"):
        ran = _first(name, transcript)
        if ran is not None:
            yield Fact.known("launcher.other_python", _home(ran[0]) != _home(shell[0]), ran[1])
            return


def _has_missing(event: Event, transcript: Transcript) -> tuple[str, str] | None:
    """Where the package that a rank misses lies for the shell's python or pip."""
    missing = _PATTERNS["missing"].search(event.text)
    if missing is None:
        return None
    package = missing["package"]
    return _first("found", transcript, package) or _shown_by_pip(package, transcript)


def _lines(transcript: Transcript, *words: str) -> Iterator[tuple[str, str]]:
    """(line, place) of the events that hold one of the words."""
    for event in transcript.events:
        if any(word in event.text for word in words):
            for offset, line in enumerate(event.text.split("\n")):
                yield line[:LINE_CHARS], event.place(offset)


def _shown_by_pip(package: str, transcript: Transcript) -> tuple[str, str] | None:
    shown = ""
    for line, place in _lines(transcript, "Name: ", "Location: "):
        if (name := _PATTERNS["name"].match(line)) is not None:
            shown = name["package"].replace("-", "_").lower()
        found = _PATTERNS["located"].match(line) if shown == package.lower() else None
        if found is not None:
            return f"{found['path']}/{package}", place
    return None


def _first(name: str, transcript: Transcript, package: str = "") -> tuple[str, str] | None:
    for line, place in _lines(transcript, "python", "torchrun", "-packages"):
        found = _PATTERNS[name].search(line)
        if found is None or (package and found["package"] != package):
            continue
        if "shims" not in found["path"]:  # pyenv's stand for any of them
            return found["path"], place
    return None


def _home(path: str) -> str:
    """The folder that holds bin or Scripts; on Windows python.exe lies beside Scripts."""
    folder = path.replace("\\", "/").rpartition("/")[0].lower()
    folder = re.sub(r"/lib(?:64)?(?:/python[\d.]{1,5})?/(?:site|dist)-packages/.*$", "", folder)
    return re.sub(r"/(?:bin|scripts)$", "", folder)
