"""A rule's command as this reader can run it: his platform, his shell, his script; or none.

Rules write commands for a POSIX shell, and ``train.py`` for the script that was started.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache

from torchdoctor.engine.surroundings import suits
from torchdoctor.patterns import pattern, search
from torchdoctor.typed import is_python

# a word of a command -> the surroundings in which it means something
_NEEDS = {
    ("nvidia",): (
        "nvidia-smi", "nvcc", "compute-sanitizer", "CUDA_HOME", "CUDA_LAUNCH_BLOCKING", "nvidia-modprobe",
        "fuser -v /dev/nvidia*", "torch.cuda", "CUDA_VISIBLE_DEVICES", "TORCH_CUDA_ARCH_LIST",
        "PYTORCH_CUDA_ALLOC_CONF", "pytorch-cuda", "cudatoolkit", "cuda-nvcc", "NCCL_DEBUG",
        "NCCL_P2P_DISABLE", "NCCL_SOCKET_IFNAME", "NCCL_IB_DISABLE",
    ),
    ("amd",): (
        "rocminfo", "rocm-smi", "HSA_OVERRIDE_GFX_VERSION", "HIP_VISIBLE_DEVICES",
        "AMD_SERIALIZE_KERNEL", "/dev/kfd", "/opt/rocm",
    ),
    ("apple", "macos"): ("xcode-select", "brew", "PYTORCH_MPS_HIGH_WATERMARK_RATIO", "torch.mps", "machdep"),
    ("linux",): (
        "apt-get", "dnf", "ldconfig", "ldd",
        "dmesg", "modprobe", "systemctl", "journalctl", "LD_LIBRARY_PATH",
        "sysctl vm", "/proc/", "/dev/shm", "/sys/", "dkms", "lspci", "getent", "ip -br", "fuser", "usermod",
        "mount", "nvidia-ctk", "apt-mark", "dmidecode", "ipmitool", "reboot", "poweroff", "ss -ltnp",
        "ss -tnp", "setsid", "mkswap", "rmmod", "ibstat", "ibv_devinfo", "show_gids", "free -h", "free -g",
        "vmstat", "smem", "nproc",
    ),
    ("debian",): ("apt-get", "apt-mark"),
    ("redhat",): ("dnf",),
    ("windows",): ("winget", "reg add", "netstat -ano", "py -m", "findstr", "Get-CimInstance"),
    ("slurm",): ("sbatch", "srun", "scontrol", "sacct", "sinfo"),
    ("kubernetes",): ("kubectl",),
    ("docker", "podman"): ("docker run",),
}  # fmt: skip
# CUDA's names that mean the same to torch's ROCm build
_HIP_TOO = frozenset({"torch.cuda", "CUDA_VISIBLE_DEVICES", "PYTORCH_CUDA_ALLOC_CONF"})
_HIP_TOO |= {word for word in _NEEDS["nvidia",] if word.startswith("NCCL_")}
# wheels of torch for CUDA are another index's on a Jetson, and its libraries are JetPack's
_NOT_ON_JETSON = ("nvidia-smi", "pytorch.org/whl/", "+cu1", "pip install nvidia-")
# tools that a sentence names to be used; other words of ``_NEEDS`` are words of English, or examples
_TOOLS = frozenset({
    "nvidia-smi", "nvidia-modprobe", "nvidia-ctk", "apt-get", "dnf", "ldconfig", "ldd", "dmesg", "modprobe",
    "systemctl", "LD_LIBRARY_PATH", "rocminfo", "rocm-smi", "xcode-select", "winget",
})  # fmt: skip
# how programs that make the loaders call their number of workers
_WORKERS = {"ultralytics": "workers", "trainer": "dataloader_num_workers", "megatron": "--num-workers"}
_CUDA_FROM_PIP = r"nvidia-\*|\bnvidia-c\w+|\bnvidia packages"  # there are none for a Jetson
_CUDA_WHEEL = r"whl/(?:nightly/)?(?:cu\d|\{)|\+cu\d"
_PIP = r"(?<![\w./-])(?<!uv )(?<!-m )(?:python3? -m )?pip (install|uninstall|list|show|check|index|debug)\b"
# of a plain wish alone: the options of pip are not those of uv add
_ADDED = r"(?:uv |python3? -m )?pip install(?P<what>(?: (?!-)(?:\"[^\"]*\"|'[^']*'|[^\s;&|\"']+))+)"
_CALLED = r"(?<![\w./\\-])python3?(?= -[cm] | --version\b)"  # what is asked is what ran
BY_UV = "uv run --no-sync python"  # which leaves installed what the project's lock file does not name
_UV_RUN = r"(?m)^(?:[^\n]{0,60}[$#>%:] )?(?:\w+=\S* )*uv run (?!-)\S"
_OTHER_ENVIRONMENT = r"\b(?:conda|micromamba) run\b|\bvenv\b"
_ROOT = frozenset(
    {"docker", "dockerfile", "podman", "kubernetes", "colab", "kaggle"}
)  # where one is root, and sudo is missing
# what is the host's alone, of which a notebook's machine shows nothing
_HOST = (
    r"\b(?:dmesg|modprobe|rmmod|systemctl|journalctl|sysctl|reboot|poweroff|dkms|fuser|ipmitool|mount|docker)\b"
    r"|gpu-reset|smi -(?:pm|pl|lgc|c)\b"
)
_HOSTED = frozenset({"colab", "kaggle"})
# where the machine is somebody else's, so that what needs root is his to do
_SHARED = frozenset({"slurm", "modules", "kubernetes", "colab", "kaggle"})
_CELL_PIP = r"(?:!?\S*python\S* -m |!)?pip (?=(?:install|uninstall|list|show) )(?![^\n]*(?:&&|\|\||[;|]))"
_ASKS = r"\S*python\S* -c '([^']*\blogin\(\))'"  # for a token: what a bang starts has no keyboard
_PROGRAM = r"(?:python|torchrun)\b[^;&|\n]{0,80}\btrain\.py[^;&|\n]{0,40}"
# what the loader and Python read once, when a process starts: too late in a kernel that runs
_READ_ONCE = r"(?:LD_[A-Z_]+|GLIBC_TUNABLES|PYTHON[A-Z0-9]+)"
_AT_START = rf"^(?:export )?{_READ_ONCE}=|^unset {_READ_ONCE}$"
_LIMIT = r"ulimit -\w \S"
# a variable that is set last, for what the shell of a bang does not start
_THEN_SET = r"(?P<before>[^;&]+)(?:;| &&) (?P<set>(?:export|unset) [^;&|]+)$"
# a command of several, which && or ; part outside of quotes
_PART = r"((?:'[^']*'|\"[^\"]*\"|(?!\s*(?:&&|;))[^'\"])+)\s*(?:&&|;|$)\s*"
_INTERPRETER = r"(?:[\w.:\\/~-]*[\\/])?python[\d.]*(?:\.exe)?(?= )"
# Git's bash on Windows: its prompt stands alone on the line, under one that names the folder
_BASH_PROMPT = r"(?m)^\$ [a-z]\S* [^\n=]"
_WINDOWS_PROMPT = r"(?m)^\s*(?:\([\w.-]+\) ?)?(?P<ps>PS )?[A-Za-z]:\\[^<>|\n\"*?]{0,200}>"
# what stands before a variable that is set, and between it and its value
_TYPED = (
    r"^(?:[^\n]{0,120}[$%>] ?|\S[^\n]{0,120}# ?|[ \t]{1,20})?"
    r"""(?:export |env |set "?|\$env:|os\.environ\[["'])?(?:[A-Z_]\w*=\S* ){0,6}"""
)
_IS = r"""(?:["']\])? ?= ?["']?"""
_SETTING = r"([A-Za-z_]\w*)=('[^']*'|\"[^\"]*\"|[^\s;&|]*)\s*"


@cache
def _word() -> re.Pattern[str]:
    words = sorted((word for some in _NEEDS.values() for word in some), key=len, reverse=True)
    return re.compile(r"(?<![\w-])(?:" + "|".join(map(re.escape, words)) + r")(?:(?<=/)|(?![\w-]))")


# signs of cmd's outside of double quotes
_OPEN_TO_CMD = r"""^(?:[^"']|"[^"]*")*'[^']*[&|<>^]"""
# what a POSIX shell does and PowerShell does not, or not so; no part of a path, and no option
_POSIX_ONLY = (
    r"\$[(A-Za-z_{\[]|`|/dev/|2>|&>|<<|\|(?! *findstr)|;\s*do\b|\\\n|(?<![\\-])\b(?:grep|ls|which|sed|md5sum"
    r"|find|rm|cat|curl|ulimit|kill|ps|pgrep|bash|env|test|stat|sudo|setsid|tmux)\b(?![\\.])"
)


def plain(interpreter: object) -> str:
    """The path of an interpreter, if it can stand in a command as it is; a log may hold anything."""
    path = str(interpreter)
    return path if pattern(r"[\w.:\\/~-]+").fullmatch(path) else ""


def run_by_uv(text: str) -> bool:
    """Does uv start the program, in the environment of its project?"""
    return search(_UV_RUN, text, "uv run ") is not None


def of_host(command: str) -> str | None:
    """The parts of a command that need no Python of the program's own; None where nothing is left."""
    parts = [part.strip() for part in re.split(r";(?=\s*[A-Za-z_.-]+ )", command)]
    return "; ".join(part for part in parts if not _runs_python(part)) or None


def _runs_python(part: str) -> bool:
    return is_python(part) or pattern(r"(?:[A-Z_]+=\S+ )*(?:python3?|pip|torchrun)\b").match(part) is not None


def needs(command: str) -> list[frozenset[str]]:
    """For each tool or variable that a command names, the tags of which the reader must have one."""
    found = []
    told = any(word in command for some in _NEEDS.values() for word in some)  # seldom: the pattern is long
    for word in dict.fromkeys(match[0] for match in _word().finditer(command)) if told else ():
        for tags in (tags for tags, words in _NEEDS.items() if word in words):
            found.append(frozenset((*tags, "amd") if word in _HIP_TOO else tags))
    if search(_CUDA_WHEEL, command, "whl/", "+cu"):
        found.append(frozenset({"nvidia"}))
    return found


def fits(command: str, seen: Mapping[str, frozenset[str]]) -> bool:
    """Is none of its tools another platform's?"""
    if "jetson" in seen.get("board", ()) and any(word in command for word in _NOT_ON_JETSON):
        return False
    if "wsl" in seen.get("system", ()) and "query-compute-apps" in command:
        return False  # Windows' driver tells no process's memory, and a guest sees none of Windows' processes
    if _HOSTED & seen.get("runtime", frozenset()) and pattern(_HOST).search(command):
        return False
    return all(suits(tags, seen) for tags in needs(command))


def speaks(do: str, seen: Mapping[str, frozenset[str]]) -> bool:
    """Does a sentence name no tool and no package of another platform's?"""
    jetson = "jetson" in seen.get("board", ())
    if jetson and ("nvidia-smi" in do or pattern(_CUDA_FROM_PIP).search(do)):
        return False
    named = _TOOLS.intersection(word.strip(".,:;()") for word in do.split())
    return all(suits(tags, seen) for word in named for tags, words in _NEEDS.items() if word in words)


def of_program(do: str, seen: Mapping[str, frozenset[str]]) -> str:
    """Advice with the name that the program which makes the loader has for its number of workers."""
    if "num_workers" not in do or "DataLoader(" in do:
        return do
    own = next((name for tag, name in _WORKERS.items() if tag in seen.get("program", ())), "num_workers")
    return pattern(r"\bnum_workers\b").sub(own, do)


def for_a_user(command: str, seen: Mapping[str, frozenset[str]]) -> str:
    """The parts of a check that need no rights which a user of such a machine has not; "" for none."""
    if not _SHARED & seen.get("runtime", frozenset()):
        return command
    return "; ".join(part for part in command.split("; ") if "sudo " not in part)


def is_for_others(risk: str, seen: Mapping[str, frozenset[str]]) -> bool:
    """Does a fix need rights that a user of such a machine has not?"""
    return risk == "needs-root" and bool(_SHARED & seen.get("runtime", frozenset()))


def adapted(
    command: str,
    seen: Mapping[str, frozenset[str]],
    script: str | None,
    interpreter: str = "",
    shell: str = "",
) -> str | None:
    """The command with the reader's script and pip; None where his shell has none like it.

    ``shell``: cmd, powershell or bash, where a prompt on Windows shows it.
    """
    if shell == "bash":  # which takes a backslash for its own sign
        slashed = interpreter.replace("\\", "/")
        command = command.replace(interpreter, slashed) if interpreter else command
        interpreter, script = slashed, script and script.replace("\\", "/")
    if "/micromamba/" in interpreter:  # which has no conda beside it
        command = pattern(r"\bconda (?=install |create |run |list )").sub("micromamba ", command)
    others = command.replace(interpreter, "") if interpreter else command  # whose own path may name one
    if not search(_OTHER_ENVIRONMENT, others, "conda", "venv"):
        if "uv-project" in seen.get("python", ()) and (wish := pattern(_ADDED).fullmatch(command)):
            command = f"uv add{wish['what']}"  # the next uv sync removes what the project does not name
        elif "pip " in command:
            command = pattern(_PIP).sub(_pip(seen, interpreter), command)
        if interpreter and "python" in command:
            command = pattern(_CALLED).sub(interpreter.replace("\\", r"\\"), command)
    if _ROOT & seen.get("runtime", frozenset()) and "systemctl" not in command:
        command = for_root(command)
    if script and "train" in command:
        command = re.sub(r"(?<![\w./-])train\.py\b", script.replace("\\", r"\\"), command)
        module = re.split(r"[\\/]", script)[-1].removesuffix(".py")
        if module.isidentifier():
            command = re.sub(r"\b(import|from) train\b", rf"\1 {module}", command)
    if "dockerfile" in seen.get("runtime", ()):
        from torchdoctor.engine.dockerfile import instruction

        return instruction(command)
    if "jupyter" in seen.get("runtime", ()):
        if pattern(_AT_START).match(command) and (
            script is None or command.startswith(("export ", "unset "))
        ):
            return None if _HOSTED & seen["runtime"] else _before_jupyter(command)
        return _in_cell(command, script)
    if "windows" not in seen.get("system", ()) or shell == "bash":
        return command
    if pattern(_POSIX_ONLY).search(command):
        return None
    return command if is_python(command) else _for_windows(command, shell)


def for_root(command: str) -> str:
    """The command as root installs in a container: without sudo, and images keep no lists of packages."""
    command = pattern(r"sudo apt-get install (?:-y )?").sub("apt-get update && apt-get install -y ", command)
    return command.replace("sudo apt-get", "apt-get")


def _pip(seen: Mapping[str, frozenset[str]], interpreter: str) -> Callable[[re.Match[str]], str]:
    """pip of the interpreter that ran, or of uv's environment, in place of whichever is first on the path."""

    def spelt(found: re.Match[str]) -> str:
        if "uv" in seen.get("python", ()):  # whose environments have no pip
            if found[1] in ("index", "debug"):
                return f"uvx pip {found[1]}"
            named = interpreter not in ("", BY_UV)
            return f"uv pip {found[1]}" + (f" --python {interpreter}" if named else "")
        return rf"{interpreter} -m pip {found[1]}" if interpreter else found[0]

    return spelt


def _in_cell(command: str, script: str | None) -> str | None:
    """The command as a cell of a notebook runs it: magics for settings and packages, a bang for a shell."""
    if is_python(command):
        return command
    if (asks := pattern(_ASKS).fullmatch(command)) is not None:
        return asks[1]
    if pattern(_LIMIT).match(command):  # of the shell that a bang starts
        return None
    if command.startswith("unset "):
        return "; ".join(("import os", *(f"os.environ.pop({name!r}, None)" for name in command.split()[1:])))
    if (found := pattern(_THEN_SET).match(command)) is not None:
        return _then_set(found["before"], found["set"], script)
    if found := pattern(_CELL_PIP).match(command):
        return f"%pip {command[found.end() :]}"
    settings, rest = _settings(command)
    if settings and (not rest or (script is None and pattern(_PROGRAM).fullmatch(rest))):
        return _set_in_cell(settings)
    if script is None and pattern(_PROGRAM).search(command):
        return None  # the notebook is the program
    return command if command.startswith(("!", "%")) else f"!{command}"


def _then_set(before: str, setting: str, script: str | None) -> str | None:
    """Both in one cell; for the terminal where what starts the kernel has to have the variable."""
    if pattern(_AT_START).match(setting):
        return f"{before} && {setting} && jupyter lab"
    told = [_in_cell(part, script) for part in (before, setting)]
    return "\n".join(filter(None, told)) if all(told) else None


def _set_in_cell(settings: list[tuple[str, str]]) -> str | None:
    """Variables as a cell sets them: %env takes a value as it stands, and expands nothing of a shell's."""
    settings = [(name, re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", value)) for name, value in settings]
    if not any("$" in value for _, value in settings):
        return "\n".join(f"%env {name}={value}" for name, value in settings)
    if any("$(" in value or "`" in value for _, value in settings):
        return None
    lines = (
        f"os.environ[{name!r}] = " + (f"os.path.expandvars({value!r})" if "$" in value else repr(value))
        for name, value in settings
    )
    return "; ".join(("import os", *lines))


def settings_of(command: str) -> list[tuple[str, str]]:
    """The variables of a command that does no more than set them, for the program or from now on."""
    settings, rest = _settings(command)
    return settings if not rest or _runs_program(rest) else []


def sets(text: str, name: str, value: str) -> bool:
    """Does a line that was typed set a variable to that value: at a prompt, in a script, in Python?"""
    if name not in text:
        return False
    said = rf"{_TYPED}{re.escape(name)}{_IS}{re.escape(value)}(?![\w.])"
    return re.search(said, text, re.MULTILINE) is not None


def _before_jupyter(command: str) -> str:
    """The command for the terminal that starts the notebook's server again: kernels have its variables."""
    if command.startswith(("export ", "unset ")):
        return f"{command} && jupyter lab"
    return pattern(_PROGRAM).sub("jupyter lab", command)


def _runs_program(command: str) -> bool:
    return "train.py" in command and pattern(_PROGRAM).fullmatch(command) is not None


def starts_jupyter(command: str) -> bool:
    """Is it one for the terminal in which a notebook's server is started?"""
    return command.endswith("jupyter lab")


def _settings(command: str) -> tuple[list[tuple[str, str]], str]:
    """(name, value) of the variables that a command sets, without quotes, and what is left of it."""
    rest, settings = command.removeprefix("export "), []
    while "=" in rest and (found := pattern(_SETTING).match(rest)) is not None:
        settings.append((found[1], found[2].strip("'\"")))
        rest = rest[found.end() :]
    return settings, rest


def shell_of(text: str) -> str:
    """The shell whose prompt stands in a text of Windows: cmd, powershell, or Git's bash; "" for none."""
    found = pattern(_WINDOWS_PROMPT).search(text) if ":\\" in text and ">" in text else None
    if found is None:
        return "bash" if "$ " in text and pattern(_BASH_PROMPT).search(text) else ""
    return "powershell" if found["ps"] else "cmd"


def _for_windows(command: str, shell: str) -> str | None:
    """The command as Windows' shell takes it; where that is not known, as both do, if there is such a form.

    Both take double quotes, and one command a line: an older PowerShell has no ``&&``, and cmd no ``;``. What
    cmd would take for a sign of its own, between quotes that are none to it, is not printed: None.
    """
    one = _for_cmd if shell == "cmd" else _for_powershell
    quoted = [_double_quoted(part) for part in pattern(_PART).findall(command)]
    if shell != "powershell" and any(pattern(_OPEN_TO_CMD).search(part) for part in quoted):
        return None
    parts = [one(part) for part in quoted]
    return ("; " if any("$env:" in part for part in parts) else "\n").join(parts)


def _double_quoted(command: str) -> str:
    """What stands in single quotes, in those that both shells know; not where it holds other signs."""

    def turned(found: re.Match[str]) -> str:
        words = found[2]
        if words is None:
            return found[0]
        if found[1] and '"' in words:  # code
            words = "" if "'" in words else words.replace('"', "'")
        return f'{found[1] or ""}"{words}"' if words and not re.search(r"[$`%\\!\"]", words) else found[0]

    return pattern(r"""(-c )?(?:"[^"]*"|(?<!=)'([^']*)'|='[^']*')""").sub(turned, command)


def _for_cmd(command: str) -> str:
    """``A=1 python x.py``, ``export A=1`` and ``unset A`` as cmd writes them."""
    if command.startswith("unset "):
        return "\n".join(f"set {name}=" for name in command.split()[1:])
    found, rest = _settings(command)
    settings = [f'set "{name}={value}"' for name, value in found]
    return " && ".join([*settings, rest] if rest else settings)


def _for_powershell(command: str) -> str:
    """``A=1 python x.py``, ``export A=1`` and ``unset A`` as PowerShell writes them."""
    if command.startswith("unset "):
        return "; ".join(f"Remove-Item Env:{name}" for name in command.split()[1:])
    found, rest = _settings(command)
    if [name for name, _ in found] == ["PYTHONFAULTHANDLER"] and pattern(_INTERPRETER).match(rest):
        return pattern(_INTERPRETER).sub(lambda one: f"{one[0]} -X faulthandler", rest, count=1)
    settings = [f"$env:{name} = '{value}'" for name, value in found]
    return "; ".join([*settings, rest] if rest else settings)
