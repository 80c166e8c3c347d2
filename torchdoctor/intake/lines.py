"""What a single line is, as far as its form tells: kind of event, log line, prompt, progress."""

from __future__ import annotations

from collections.abc import Iterable

from torchdoctor.intake.clean import clean, unescaped
from torchdoctor.intake.elements import BEHEADED, Line
from torchdoctor.model import EventKind
from torchdoctor.patterns import Words, pattern
from torchdoctor.signal_words import BARE, ENGLISH, OF_ZSH, TELLING

# One of these stands in every line that is more than a plain log line; most lines have none.
_GATE = (
    "rror", "xception", "arning", "ssert", "NCCL", "NVRM", "Xid", "illed", "ault", "bort", "erminate",
    "slurm", "srun", "OOM", "oom", "Evicted", "DUE TO", "ninja", "FAILED", "nvcc", "ld:", "exitcode",
    "return code", "SIG", "signal", "pcieport", "AER", "nvidia", "PG ID", "ProcessGroup", "socket.cpp",
    "TCPStore", "c10d", "kernel:", "subprocess", "LINK", "LNK", "Primary job", "mpirun", "free()",
    "malloc", "stack smash", "TERM_", "PBS", "Process finished", "not found", "compilation", "BackOff",
    "FailedScheduling", "CANCELLED", "corrupted", "FAIL", "torch/", "torch.", "RIP", "TIMEOUT", "Fatal",
    "recursive", "ERROR", "Failed", "Could not", "No matching", "corrupt", "double free", "traps:",
    "core dump", "egal ", " trap", "collect2", "ptxas", "错误", "錯誤", "エラー", "ehler", "rreur", "шибка",
    "Violación", "Falha de seg", "セグメンテーション", "세그멘테이션", "已杀死", "已放弃", "Убито",
)  # fmt: skip
_telling = Words(_GATE)
# Besides the words by which single lines are classified: what the parts of longer events hold.
_SIGNS = (
    "raceback", 'File "', "hread ", "frame #", "above exception", "from user code", "Root Cause", ".cpp:",
    "FrameSummary", "Exception Group", "Stack (most recent", "goodbye", "panic", "sigterm", "SIGTERM",
    # what ranks print to see whether their weights are equal
    "checksum", "param_norm", "param norm", "param_sum", "param sum", "weight_norm", "weight norm",
    "weight sum", "weight_sum", "DistributedDataParallel",
)  # fmt: skip
_ASSERT = (
    r"(?:(?:[A-Za-z]:)?[\w.~+-]*[\\/])?[\w.\\/+~-]*\.(?:cu|cuh|hip|h|cpp|cc|inl):\d+:[^`'\"]{0,1200}?"
    r"(?:Device-side a|A)ssertion [`'].{0,400}?(?:'|`)? ?failed\.?"
)
_CRASH_WORDS = tuple(word for word in ENGLISH if word != "Hangup")  # which is the end of a session
# "Segmentation fault (コアダンプ)"; "Abort trap: 6" on macOS
_DUMPED = rf"^(?:{'|'.join(_CRASH_WORDS)})(?: \([^()]{{2,40}}\)|: \d\d?)$"
_ABROAD = r"(?:^|: +(?:\d+ +)?)(?:WORDS)(?: +[(（].{2,60}[)）])?(?:\s|$)"
# "run.sh: Zeile 3: 4711 Getötet      python train.py", "[1]+  Tué        python train.py"
_JOB = r"(?:: +\d+|^\[\d+\][+-]?) +(?P<word>\S.{0,40}?) {2,}"
_CRASH_STARTS = (
    "Fatal Python error", "terminate called", "*** Process received signal ***", "*** Aborted at",
    "*** SIG", "free(): ", "malloc(): ", "double free", "corrupted ", "munmap_chunk()",
    "*** stack smashing", "realloc(): ", "Windows fatal exception", "Illegal instruction",
    "!!!!!!! Segfault", "*** buffer overflow detected", "malloc_consolidate()", "Unexpected bus error",
    "Unexpected segmentation fault", "Unexpected floating-point exception", "libc++abi: terminating",
    "libc++abi.dylib: terminating", "Memory access fault by GPU", "HW Exception by GPU",
)  # fmt: skip
_KERNEL_WORDS = (
    "NVRM:", "oom-kill:", "invoked oom-killer", "Out of memory: Kill", " segfault at ", "pcieport ",
    "general protection", "nvidia-nvlink", "nvidia-modeset:", "nvidia-uvm:", "cgroup out of memory",
    "AER: ", "PCIe Bus Error", "oom_reaper:", "EDAC ", "mce: ", "Hardware Error", " trap invalid opcode",
    "blocked for more than", "watchdog: BUG", "amdgpu ", "RmInitAdapter",
)  # fmt: skip
_SCHEDULER_STARTS = (
    "slurmstepd", "srun:", "sbatch:", "salloc:", "slurmd", "scancel:", "=>> PBS", "TERM_", "kubelet",
    "LSF:", "qsub:", "Job <",
)  # fmt: skip
_SCHEDULER_WORDS = (
    "OOMKilled", "CANCELLED AT", "DUE TO TIME LIMIT", "DUE TO PREEMPTION", "DUE TO NODE FAIL",
    "FailedScheduling", "BackOff", "oom_kill event", "Evicted", "TERM_MEMLIMIT", "TERM_RUNLIMIT",
    "NodeLost", "ErrImagePull", "exceeded memory limit", "slurmstepd: error", "srun: error",
)  # fmt: skip
_LAUNCHER_WORDS = (
    "torch.distributed.elastic", "torch/distributed/elastic", "torch.distributed.run",
    "torch/distributed/run.py", "torch.distributed.launcher", "failed (exitcode: ", "Killing subprocess ",
    "exits with return code", "closing signal SIG", "Primary job  terminated", "mpirun noticed",
    "mpirun has exited", "mpiexec ", "Received sigquit from a child", "sigkill_handler",
    "Process finished with exit code", "process exited with error", "torch.distributed.launch ",
)  # fmt: skip
_BUILD_STARTS = (
    "ninja: ", "FAILED: ", "nvcc fatal", "nvcc error", "collect2: error", "error: command ",
    "compilation terminated", "error: subprocess-exited", "ptxas ", "CMake Error", "make: ***", "LINK : ",
    "Failed building wheel", "Could not find a version", "No matching distribution",
    "ERROR: Failed building", "ERROR: Could not", "ERROR: No matching", "ERROR: Failed to build",
    "ERROR: Command err", "ld: ", "/usr/bin/ld:", "In file included from ", "ERROR: Cannot install",
    "ERROR: Ignored the following",
)  # fmt: skip
_BUILD = (
    r"(?:^|[\s\"'])(?:[A-Za-z]:)?[\w./\\+<>-]+(?::\d+){1,2}: (?:fatal )?error\b|\(\d+(?:,\d+)?\): (?:fatal "
    r")?error\b|: fatal error\b"
    r"|\bfatal error (?:C|LNK)\d{4}|\berror LNK\d{4}|/ld(?:\.\w+)?: |: cannot find -l|ninja: (?:build "
    r"stopped|error)"
    r"|/bin/\w*sh: (?:\d+: |line \d+: )?\S+: (?:not found|command not found|No such)|\berror: command "
    r"'.{1,200}' failed"
    # gcc in Chinese, Japanese, German, French, Spanish and Russian
    r"|\.(?:c|cc|cpp|cxx|cu|cuh|h|hpp|hh):\d+(?::\d+)?: (?:致命的?|schwerwiegender |фатальная )?"
    r"(?:错误|錯誤|エラー|Fehler|erreur|error|ошибка)\b"
    r"|(?:: |^)undefined reference to|^\S*(?:gcc|g\+\+|c\+\+|clang|clang\+\+|cc1plus|cl|ld)(?:\.exe)? ?: "
    r"(?:fatal )?error|Killed signal terminated program|died due to signal"
)
# Glued behind words that end in these, "Error: text" is no Python exception.
_NO_EXCEPTION = frozenset((
    "MeanSquaredError", "MeanAbsoluteError", "RootMeanSquaredError", "MeanError", "ValError", "TrainError",
    "TestError", "Error", "PercentageError", "MeanAbsolutePercentageError", "StandardError", "WordError",
    "Warning", "NoError", "LastError",
))  # fmt: skip
_EXCEPTION_ENDS = (
    "Error", "Exception", "Interrupt", "Exit", "StopIteration", "StopAsyncIteration", "Failure",
    "ExceptionGroup", "Timeout", "Fault", "Unsupported", "OutOfMemory", "OutOfResources", "Invalid",
    "NotFound", "Empty", "DataDependentSymNode", "Expired", "Traceback", "Unavailable", "Warning",
    "RestartAnalysis", "Refused", "Killed", "error", "Abort", "Aborted", "Exceeded", "Cancelled",
)  # fmt: skip
_LOG_WORDS = frozenset((
    "Epoch", "Step", "Iter", "Loss", "Train", "Test", "Training", "Validation", "Batch", "Note", "Info",
    "Progress", "Loading", "Downloading", "Using", "Warning", "Iteration",
))  # fmt: skip


def literals_of(triggers: Iterable[str]) -> list[bytes]:
    """The texts by which a line is found worth reading: of what the readers know, and ``triggers``."""
    return [text.encode() for text in (*_GATE, *_SIGNS, *triggers)]


def exception_head(body: str, loose: bool) -> tuple[str, str] | None:
    """(class name, message) of a line like ``pkg.SomeError: text``, or None.

    ``loose``: the line stands where a traceback wants its exception, so any class name will do.
    """
    if body[:2] == "**":  # the debugger's "*** KeyError: 1", or bold letters in Markdown
        body = body.strip("*_ ")
    colon = body.find(":")
    name = body[:colon] if colon >= 0 else body.rstrip()
    if not name or len(name) > 160:
        return None
    inner = ""
    if name.endswith(")") and "(" in name:  # ray.exceptions.RayTaskError(ValueError)
        name, _, inner = name.partition("(")
        inner = inner[:-1]
    name = BEHEADED.get(name, name)
    last = name.rpartition(".")[2]
    if not last.isidentifier() or not (last is name or name.replace(".", "_").isidentifier()):
        return None
    if inner and not inner.replace(".", "_").isidentifier():
        return None
    if colon >= 0 and body[colon + 1 : colon + 2] not in ("", " ", "\t"):
        # typed off a screen: "RuntimeError:Expected to have …"
        retyped = last.endswith(("Error", "Exception")) and body[colon + 1].isupper() and body.count(" ") > 2
        if not retyped:
            return None
    message = body[colon + 1 :].strip() if colon >= 0 else ""
    if colon < 0 and not inner and name != body.rstrip():
        return None
    dotted = "." in name
    if last.endswith(_EXCEPTION_ENDS):
        if last in _NO_EXCEPTION and not dotted and not (loose and last not in ("Error", "Warning")):
            return None
        if (last.endswith("error") and not dotted) or (last.endswith("Warning") and not loose):
            return None
        if not loose:
            if colon < 0 and not last.endswith(("Error", "Exception", "Interrupt", "Exit")):
                return None
            if not last[0].isupper() and last[0] != "_":
                return None
            if name.startswith(("java.", "javax.", "org.", "com.", "scala.", "kotlin.", "sun.", "io.netty")):
                return None
            if message and message[0].isdecimal() and pattern(r"[\d.eE+%-]+$").match(message):
                return None  # a metric
        return name, message
    if (
        dotted
        and (last[0].isupper() or last[0] == "_")
        and name[0].islower()
        and (loose or (colon >= 0 and last[-1].isalpha()))
    ):
        if not loose and (message == "" or not last[0].isupper()):
            return None
        return (name, message) if loose or _dotted_class(name) else None
    if loose and last[0].isupper() and not dotted and colon >= 0 and message and last.upper() != last:
        return None if last in _LOG_WORDS else (name, message)
    return None


_CLASS = r"(?:(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:[a-z][A-Z]\w*|Error|Exception):|KeyboardInterrupt\b)"


def labelled(body: str) -> int | None:
    """Where an exception begins: at the head, or behind a label as in "Error while saving: "; else None."""
    if ":" not in body and "Interrupt" not in body:
        return None
    found = pattern(rf"(?:[\w ./()'-]{{1,60}}: )?(?={_CLASS})").match(body)
    return found.end() if found and exception_head(body[found.end() :], loose=False) else None


def shown_exception(body: str) -> tuple[str, str] | None:
    """(class name, message) of a line that is an exception as repr() writes it, as Hydra prints a cause."""
    if body[-1:] != ")" or body.rstrip(",)")[-1:] not in ("'", '"'):
        return None
    found = pattern(r"^((?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception))\((['\"])(.{12,})\2,?\)$").match(body)
    if not found:
        return None
    return found[1], "\n".join(line for part in unescaped(found[3]).split("\n") for line in clean(part))


def _dotted_class(name: str) -> bool:
    return ".exc." in name or ".exceptions." in name or ".errors." in name or name.startswith("torch.")


def classify(line: Line) -> tuple[EventKind, str] | None:
    """(kind, how it goes on) for a line that stands for more than itself; None for a plain log line.

    How it goes on: "" not at all, else the name of a continuation rule of ``texts.py``.
    """
    body, logger = line.body, line.mark.logger
    if logger == "kernel":
        return EventKind.KERNEL_LOG, "nvrm"
    if not _telling(line.text):
        return (EventKind.CRASH, "") if _bare_signal(body) else None
    if "ssertion" in body and ("failed" in body or "FAILED" in body):
        if (
            "thread: [" in body
            or ".cu:" in body
            or ".cuh:" in body
            or "Device-side" in body
            or ".hip:" in body
        ):
            return EventKind.DEVICE_ASSERT, ""
        if body.endswith(("failed.", "failed")) and "`" in body:
            return EventKind.CRASH, "crash"  # assert() of a C program
    if body.startswith(":0:") and ("aborting with error" in body or "HSA_STATUS" in body):
        return EventKind.DEVICE_ASSERT, ""
    if "NCCL" in body and pattern(r"\bNCCL (?:INFO|WARN|ERROR|TRACE|CALL)\b|^NCCL version \d").search(body):
        return EventKind.NCCL, ""
    found = _torch_record(line)
    if found is not None:
        return found
    if "arning" in body and pattern(r":\d+: [\w.]*Warning:? ?").search(body):
        return EventKind.WARNING, "python"
    found = _native(body)
    if found is not None:
        return found
    if any(word in body for word in _KERNEL_WORDS):
        return EventKind.KERNEL_LOG, "nvrm"
    if body.startswith(_SCHEDULER_STARTS) or any(word in body for word in _SCHEDULER_WORDS):
        return EventKind.SCHEDULER, ""
    if any(word in line.text for word in _LAUNCHER_WORDS) or logger.startswith("launch.py"):
        return EventKind.LAUNCHER, ""
    return _build(line)


def _torch_record(line: Line) -> tuple[EventKind, str] | None:
    """Lines of torch's own loggers: [E...cpp:1] and [W...cpp:1] of C++, and those of its Python modules."""
    body, level, logger = line.body, line.mark.level, line.mark.logger
    if (
        body[:1] == "["
        and body[1:2] in "EWIF"  # behind glog's own mark it is another's bracket
        and level
        and logger
        and ":" in body
        and logger.endswith((".cpp", ".hpp", ".cc", ".cu", ".h"))
    ):
        if level in ("ERROR", "FATAL"):
            return EventKind.WATCHDOG, "c10d"
        return (EventKind.WARNING, "c10d") if level == "WARNING" else None
    if level and logger.replace("/", ".").removeprefix("site-packages.").startswith(
        ("torch.distributed.elastic", "torch.distributed.run")
    ):
        return (EventKind.LAUNCHER, "") if body else None
    if level == "WARNING" and ("torch/" in logger or logger.startswith("torch.")) and line.text[:1] in "WE[":
        return EventKind.WARNING, "record"
    return None


def _native(body: str) -> tuple[EventKind, str] | None:
    if body.startswith(_SCHEDULER_STARTS):
        return EventKind.SCHEDULER, ""
    if body.startswith(_CRASH_STARTS) or _dies_amid(body):
        return EventKind.CRASH, "crash"
    if body.removesuffix("(core dumped)").strip() in _CRASH_WORDS:
        return EventKind.CRASH, ""
    if any(word in body for word in _CRASH_WORDS) and (
        "core dumped" in body or pattern(r"(?:line \d+|^\[\d+\][+-]?): +\d+ [A-Z]").search(body)
    ):
        return EventKind.CRASH, ""  # bash: line 1: 20117 Aborted (core dumped) ./ringtest
    if body.startswith(_CRASH_WORDS) and pattern(_DUMPED).match(body):
        return EventKind.CRASH, ""
    fish = body.startswith("fish: ") and " terminated by signal SIG" in body
    if fish or (("zsh: " in body or "] " in body) and pattern(OF_ZSH).search(body)):
        return EventKind.CRASH, ""
    if _signal_abroad(body):
        return EventKind.CRASH, ""
    if body[:1] == "[" and pattern(r"^\[[\w.-]+:\d+\] (?:\*\*\* Process rec|Signal|Failing at addr)").match(
        body
    ):
        return EventKind.CRASH, "signal"  # Open MPI
    if "interrupted by signal" in body or "0xC0000005" in body:
        return EventKind.CRASH, ""
    return None


def _dies_amid(body: str) -> bool:
    """Does faulthandler's message end a line that a program had begun: pytest's dots, the name of a test?"""
    before, message, signal = body.partition("Fatal Python error: ")
    if not message or not before or len(signal) > 40:
        return False
    return before[-1] not in " \t\"'`(<[{:>*" or bool(pattern(r"\.py::\S+ ?[.\w]*$").search(before.rstrip()))


def _signal_abroad(body: str) -> bool:
    """Is this a shell's line on a signal, in another language than English?"""
    if (not body.isascii() or "fehler" in body or " segment" in body or " bus" in body) and any(
        word in body for word in TELLING
    ):
        return bool(pattern(_ABROAD.replace("WORDS", "|".join(TELLING))).search(body))
    return _bare_signal(body)


def _bare_signal(body: str) -> bool:
    if body in BARE:
        return True
    if "python" not in body or "  " not in body:
        return False
    job = pattern(_JOB).search(body)
    return job is not None and job["word"] in BARE


def _build(line: Line) -> tuple[EventKind, str] | None:
    body = line.body.lstrip()
    if body.startswith(_BUILD_STARTS) or line.text.lstrip().startswith(_BUILD_STARTS):
        if body.startswith("FAILED: "):
            ninja = pattern(r"FAILED: (?:\[code=-?\d+\] )?\S+\.(?:o|obj|so|pyd|dll)\b").match(body)
            return (EventKind.BUILD, "command") if ninja else None
        return EventKind.BUILD, "cmake" if body.startswith("CMake Error") else "compiler"
    if (
        "rror" in body
        or ".cu" in body
        or ".h:" in body
        or ".c" in body
        or "ld:" in body
        or "ot found" in body
        or "ndefined ref" in body
        or "signal" in body
        or "cannot find" in body
    ) and (pattern(_BUILD).search(body)):
        return EventKind.BUILD, "compiler"
    return None


def device_asserts(body: str) -> list[str]:
    """Every assertion message in a line; ranks that print at once garble several into one."""
    if body.startswith(":0:"):
        return [body]
    found = [m.group().strip() for m in pattern(_ASSERT).finditer(body)]
    return found or [body]


def is_prompt(body: str) -> bool:
    """True for a line that a person typed at a shell, at Python or at Windows."""
    head = body[:120]
    if head.startswith(("$ ", ">>> ", "... ", "+ ", "PS ", "In [", "sh-")) or head in (">>>", "$"):
        return True
    if head[1:3] == ":\\" and ">" in head:
        return True
    if (
        head[:1] == "("
        and ("$ " in head or "# " in head or ">" in head)
        and pattern(r"\([^()]{1,40}\) .{0,80}?[$#>] ?\S").match(head)
    ):
        return True
    if head[:1] in "~/" and "$ " in head:  # a folder, and nothing else, before the mark of a shell
        return pattern(r"~?(?:/[\w.+-]{0,60}){0,12} ?\$ ").match(head) is not None
    return "@" in head[:60] and bool(
        pattern(r"(?:\([^()]{1,40}\) )?\[?[\w.-]{1,32}@[\w.-]{1,64}[: ][^\s\]]{0,80}\]?[$#%] ?").match(head)
    )


_STATEMENTS = (
    "return ", "raise ", "self.", "yield ", "await ", "def ", "for ", "with ", "if ", "else:", "@", "**",
)  # fmt: skip
_STATEMENT = r"^[A-Za-z_][\w.\[\]'\"]*(?:, [\w.]+)* = \S|^[A-Za-z_][\w.]*\(.*[(),]$|^\w+=\S.*[,)]$"


def is_code(body: str) -> bool:
    """True for a line that looks like a Python statement."""
    text = body.partition("  #")[0].strip()
    if text.startswith("tensor(") or (text[:2] == "**" and exception_head(text, loose=False)):
        return False  # as torch prints one; an exception in bold letters
    if text[:1] == "@" and not pattern(r"@[A-Za-z_][\w.]*(?:\(.*)?$").match(text):
        return False  # somebody who is spoken to
    if "=" not in text and "(" not in text:
        return text.startswith(("return ", "else:", "@")) or (
            text.startswith(_STATEMENTS) and text[-1:] == ":"
        )
    return text.startswith(_STATEMENTS) or bool(pattern(_STATEMENT).match(text))


def is_rule(body: str) -> bool:
    """True for a line of one repeated character."""
    text = body.strip()
    return len(text) >= 8 and len(set(text)) <= 2 and not text[0].isalnum() and text[0] not in "^~\"'"
