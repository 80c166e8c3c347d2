"""What a text says of the machine it was printed on: versions, driver, GPUs, paths, limits.

A log often prints its environment: collect_env, lists of pip and conda, nvidia-smi, paths, the driver's own.
It is judged by these facts first, since it may come from another machine. Names are those of the probes.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from torchdoctor.extract import age
from torchdoctor.model import Event, EventKind, Fact, FactValue, Quoted, Transcript
from torchdoctor.number import number
from torchdoctor.patterns import Patterns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from torchdoctor.extract.tools.nvidia_smi import Table

FACTS: dict[str, str] = {
    "torch.version": "str: version of torch with its local tag (2.2.2+cpu)",
    "torch.before": "str: a release that torch is older than, by its files and words, or by its Python",
    "torch.cuda": "str: CUDA version torch was built for; absent for a CPU or ROCm build",
    "torch.hip": "str: ROCm version torch was built for; absent for other builds",
    "torch.cpu_only": "bool: torch was built without CUDA and without ROCm",
    "torch.arch_list": "list: architectures torch has code for (sm_80)",
    "torch.cuda_available": "bool: what torch.cuda.is_available() said",
    "torchvision.version": "str: version of torchvision",
    "torchaudio.version": "str: version of torchaudio",
    "triton.version": "str: version of triton",
    "numpy.version": "str: version of numpy",
    "python.version": "str: version of the interpreter, two parts when only a path tells it",
    "conda.env": "str: name of the conda environment",
    "os.glibc": "str: version of the C library",
    "os.kernel": "text: release of the kernel",
    "env.CUDA_VISIBLE_DEVICES": "str: value of the variable, as printed",
    "env.LD_LIBRARY_PATH": "str: value of the variable, as printed",
    "gpu.hidden": "bool: CUDA_VISIBLE_DEVICES hides all GPUs that the text lists",
    "gpu.workers": "int: workers that were each given the next GPU alone, where the text lists fewer",
    "gpu.named_count": "int: how many GPUs CUDA_VISIBLE_DEVICES names in the text",
    "torch.covers_gpu": "bool: the build has code for the GPU, by what its own warning says",
    "gpu.compute_capability": "list: that of the card Triton compiled for, as 9.0",
    "gpu.lowest_capability": "float: the same as a number",
    "shm.size_bytes": "int: size of /dev/shm",
    "limits.nofile": "int: soft limit of open files",
}

# Words around a version that is asked for, replaced or only talked about, not installed.
_NOT_INSTALLED = (
    "requires", "Requirement", "requirement", "Collecting", "Uninstalling", "existing installation", ">=",
    "<=", "~=", "!=", "from versions", "at least", "deprecated", "removed in", "since ", "Downloading",
    "incompatible", "matching distribution", "pip install", "pip3 install", "conda install",
    "compatible with", "Using cached", "find a version", "uv add", "poetry add", "Attempting uninstall",
    "Would install", "newer", "older", "Warning:", " in PyTorch", "In PyTorch", "with PyTorch",
)  # fmt: skip

_SOURCES = {
    # "torch 1.12.1+cu113", "torch-2.2.1+cu121", "[pip3] torch==2.1.2", "PyTorch version: 2.2.2+cpu"
    "package": r"(?<![\w./\\-])(?<!build )(?<!trained with )"  # "CUDA used to build PyTorch: 10.2"
    r"(?P<name>torch|pytorch|PyTorch|Pytorch|torchvision|torchaudio|triton|numpy|NumPy)"
    r"(?:\.__version__|(?:\.onnx\.export)?[ _][Vv]ersion)?[\s=:\-,@'\"*]{1,40}"
    r"v?(?P<version>\d+\.\d+(?:\.\d+)?(?:(?:a|b|rc|\.dev|\.post)\d+)?(?:\+[A-Za-z0-9.]+)?)(?![\w.]*[%*])"
    r"(?P<build>\s+py\S+_(?:cuda|cpu|cudnn)\S*)?",
    # torchcodec; torchao; pyannote of a model's torch and this; what a setup script prints below its error
    "told": r"(?:PyTorch version \(|\btorch \S{1,40}, yours is |(?m:^)torch\.__version__ {1,4}= "
    r"|\bincompatible torch version )(?P<version>\d+\.\d+\.\d+(?:\+\w+)?)",
    "built": r"CUDA used to build PyTorch: (?P<cuda>\S+)",
    "built-rocm": r"ROCM used to build PyTorch: (?P<hip>\S+)",
    "available": r"(?:Is CUDA available: |torch\.cuda\.is_available\(\)[ =:)]+)(?P<value>True|False|Yes|No)"
    # python -m bitsandbytes, 0.38 to 0.42 and later
    r"|(?P<nothing>COMPUTE_CAPABILITIES_PER_GPU = \[\]|(?:Torch|PyTorch) says CUDA is not available)",
    "torch-cuda": r"torch\.version\.cuda[\s=:'\"]+(?P<cuda>\d+\.\d+)",
    "built-in": r"torch_extensions[\\/]+py\d+_cu(?P<major>\d\d)(?P<minor>\d)\b",
    "arch": r"(?:supports CUDA capabilities|arch[_ ]list\S{0,20}[\s=:\[]{1,8})"
    r"(?P<list>[\s'\"\[]*(?:(?:sm|compute)_\d+[a-z]?[\s,'\"]*)+)",
    "range": r"cuda capability (?P<cc>\d+\.\d+)\.\s+Minimum and Maximum cuda capability supported by this "
    r"version of PyTorch is\s+\((?P<low>\d+\.\d+)\) - \((?P<high>\d+\.\d+)\)",
    # Inductor's record of a kernel: 'device_type': 'cuda', …, 'cc': 90
    "kernel-cc": r"'device_type': 'cuda',.{0,200}'cc': (?P<cc>\d{2,3})\b",
    "cc": r"compute capability \(CC\) (?P<cc>\d+\.\d+)",
    "numpy-abi": r"NumPy (?P<version>\d+\.\d+[\w.]*) as it may crash",
    "python": r"Python(?: version:?)?[ -](?P<version>3\.\d+(?:\.\d+)?|2\.7(?:\.\d+)?)(?![\w.]*\+)",
    "python-path": r"(?:lib|lib64)[/\\]+python(?P<version>\d\.\d+)[/\\]|[/\\]Python(?P<packed>3\d{1,2})[/\\]",
    "under": r" driver version \d[\d.]+ with kernel driver version (?P<version>\d{3}\.[\d.]*\d)",
    "nix": r"^/nix/store/\w+-python3\.\d+-torch-(?P<version>\d[\d.]*)/",
    "conda": r"[/\\]envs[/\\]+(?P<name>[^/\\\s\"']+)[/\\]",
    "glibc": r"(?:Libc version: glibc-|ldd \([^)]*\) |with-glibc)(?P<version>\d\.\d+)",
    "kernel": r"\bLinux-(?P<version>\d+\.\d+\.[\w.+-]{1,60}?)-(?:x86_64|aarch64)\b",  # platform.platform()
    "visible": r"(?<![\w$])CUDA_VISIBLE_DEVICES(?:['\"]?\])?\s{0,3}(?:=|:)\s{0,3}\[?['\"]?"
    r"(?P<value>-?\d+(?:\s?,\s?-?\d+)*|(?:GPU|MIG)-[\w/-]+(?:,(?:GPU|MIG)-[\w/-]+)*|(?=['\"\]\s]|$))",
    "library-path": r"(?<![\w$])LD_LIBRARY_PATH\s?[=:]\s?['\"]?(?P<value>[^\s'\"]*)",
    "shm": r"(?:^|\s)\S+\s+(?P<size>\d+(?:\.\d+)?)(?P<unit>[KMGT]?)i?B?\s+\S+\s+\S+\s+\d+%\s+/dev/shm\b",
    "shm-note": r"SHMEM allocation limit is set to the default of (?P<size>\d+)MB",
    "nofile": r"open files\s+\(-n\)\s+(?P<value>\d+)",
}
_PATTERNS = Patterns(_SOURCES)
_UNITS = {"": 1024, "K": 1024, "M": 1024**2, "G": 1024**3, "T": 1024**4}  # df without -h counts 1-KiB blocks
_TALK = frozenset({EventKind.EXCEPTION, EventKind.WARNING, EventKind.STACK, EventKind.DEVICE_ASSERT})


class _Found:
    """Facts on their way out: the last word on each name wins."""

    def __init__(self) -> None:
        self.facts: dict[str, Fact] = {}
        self.explicit: set[str] = set()
        self.alone: set[str] = set()  # values of CUDA_VISIBLE_DEVICES that name one GPU

    def put(self, name: str, value: FactValue, event: Event, detail: str = "") -> None:
        self.facts[name] = Fact.known(name, value, event.place(), detail)

    def absent(self, name: str, event: Event) -> None:
        self.facts[name] = Fact.absent(name, event.place())

    def value(self, name: str) -> FactValue:
        fact = self.facts.get(name)
        return fact.value if fact is not None else None


# without one of these nothing of nvidia-smi, lspci or the driver stands in a text
_OF_TABLES = (
    "ersion", "GPU", "MiB", "sm_", "|", "No running", "LnkSta", "Link Width", "Volatile", "Product Name",
    "Virtualization Mode", "pcie.link.width", "_reasons.",
)  # fmt: skip


def extract_text(transcript: Transcript) -> Iterator[Fact]:
    """Facts that the whole text states about its machine, each with the line it stands on.

    Where a thing is stated several times, the last statement counts. Nothing is yielded for what the text
    does not say.
    """
    found = _Found()
    table: Table | None = None  # what reads nvidia-smi is imported where its words stand (start-up budget)
    for event in transcript.events:
        if event.quoted is Quoted.SOURCE:
            continue
        text = event.text
        for trigger, read in _READERS:
            if trigger in text:
                read(text, event, found)
        if event.frames:
            _frames(event, found)
        # of exceptions only the one that torch raises with the driver's version in it
        if event.kind is not EventKind.EXCEPTION or "driver on your system is too old" in text:
            if table is None and any(word in text for word in _OF_TABLES):
                from torchdoctor.extract.tools.nvidia_smi import Table

                table = Table()
            if table is not None:
                table.read(text, event)
    for fact in table.facts() if table is not None else ():
        found.facts[fact.name] = fact
    _derive(found)
    yield from found.facts.values()
    python = found.facts.get("python.version")
    yield from age.of_torch(transcript, python)


def _derive(found: _Found) -> None:
    """Claims that follow from what the text states, under the names of the probes' claims."""
    visible, count = found.facts.get("env.CUDA_VISIBLE_DEVICES"), found.value("gpu.count")
    if visible is not None and isinstance(count, int) and count > 0:
        from torchdoctor.extract.visible import hides_all, workers_beyond  # few texts have both

        workers = workers_beyond(found.alone, count)
        hidden = hides_all(str(visible.value), count)
        if workers is not None:
            found.facts["gpu.workers"] = Fact.known("gpu.workers", workers, visible.source)
        elif hidden is not None:
            found.facts["gpu.hidden"] = Fact.known("gpu.hidden", hidden, visible.source)
    arch, lowest = found.facts.get("torch.arch_list"), found.value("gpu.lowest_capability")
    if arch is not None and isinstance(arch.value, tuple) and isinstance(lowest, float):
        covered = covers([str(item) for item in arch.value], lowest)
        found.facts["torch.covers_gpu"] = Fact.known("torch.covers_gpu", covered, arch.source)


def covers(arch_list: Sequence[str], capability: float) -> bool:
    """Whether code of a build runs on a GPU: machine code within one major version upward, PTX upward."""
    major, minor = divmod(round(capability * 10), 10)
    for arch in arch_list:
        kind, _, code = arch.partition("_")
        digits = code.rstrip("af")
        if (plain := number(digits)) is None:
            continue
        own_major, own_minor = divmod(plain, 10)
        if kind == "compute" and (own_major, own_minor) <= (major, minor) and digits == code:
            return True
        if kind == "sm" and own_major == major and own_minor <= minor:
            return True
    return False


def _packages(text: str, event: Event, found: _Found) -> None:
    if event.kind in _TALK or any(word in text for word in _NOT_INSTALLED):
        return
    for hit in _PATTERNS["package"].finditer(text):
        name = hit.group("name").lower()
        version = hit.group("version")
        if name in ("torch", "pytorch"):
            _torch(version, hit.group("build") or "", event, found)
        else:
            found.put(f"{name}.version", version, event)


def _told(text: str, event: Event, found: _Found) -> None:
    if hit := _PATTERNS["told"].search(text):
        _torch(hit.group("version"), "", event, found)


def _torch(version: str, build: str, event: Event, found: _Found) -> None:
    known, tag = found.value("torch.version"), version.partition("+")[2]
    if not tag and not build and isinstance(known, str) and known.partition("+")[0] == version:
        return  # the same version without its tag says less than what is known
    if known is not None and known != version:
        for name in ("torch.cuda", "torch.hip", "torch.cpu_only"):
            found.facts.pop(name, None)
    found.put("torch.version", version, event)
    conda = re.search(r"_cuda(\d+\.\d+)", build)
    if tag.startswith("cu") and tag[2:].isdecimal():
        _built_for_cuda(f"{tag[2:-1]}.{tag[-1]}", event, found)
    elif conda:
        _built_for_cuda(conda.group(1), event, found)
    elif tag == "cpu" or "_cpu" in build:
        found.put("torch.cpu_only", True, event)
        found.absent("torch.cuda", event)
        found.absent("torch.hip", event)
    elif tag.startswith("rocm"):
        found.put("torch.hip", tag[4:], event)
        found.absent("torch.cuda", event)
        found.put("torch.cpu_only", False, event)


def _built_for_cuda(version: str, event: Event, found: _Found) -> None:
    found.put("torch.cuda", version, event)
    found.absent("torch.hip", event)
    found.put("torch.cpu_only", False, event)


def _built(text: str, event: Event, found: _Found) -> None:
    if hit := _PATTERNS["built"].search(text):
        if hit.group("cuda")[0].isdigit():
            _built_for_cuda(hit.group("cuda"), event, found)
        elif hit.group("cuda") in ("None", "Could"):  # "Could not collect": what collect_env makes of None
            found.absent("torch.cuda", event)
            if found.value("torch.hip") is None:
                found.put("torch.cpu_only", True, event)
    if (hit := _PATTERNS["built-rocm"].search(text)) and hit.group("hip")[0].isdigit():
        found.put("torch.hip", hit.group("hip"), event)
        found.put("torch.cpu_only", False, event)


def _one(
    pattern: str, fact: str, value: Callable[[str], FactValue] = str, detail: str = ""
) -> Callable[[str, Event, _Found], None]:
    """A reader that puts the one group of a pattern under one name."""

    def read(text: str, event: Event, found: _Found) -> None:
        if hit := _PATTERNS[pattern].search(text):
            found.put(fact, value(hit[1]), event, detail)

    return read


def _folder_cuda(text: str, event: Event, found: _Found) -> None:
    """torch names the folder of its JIT builds by Python and CUDA."""
    if hit := _PATTERNS["built-in"].search(text):
        _built_for_cuda(f"{hit['major']}.{hit['minor']}", event, found)


def _torch_cuda(text: str, event: Event, found: _Found) -> None:
    if hit := _PATTERNS["torch-cuda"].search(text):
        _built_for_cuda(hit.group("cuda"), event, found)


def _arch(text: str, event: Event, found: _Found) -> None:
    if hit := _PATTERNS["arch"].search(text):
        found.put("torch.arch_list", tuple(re.findall(r"(?:sm|compute)_\d+[a-z]?", hit.group("list"))), event)


def _range(text: str, event: Event, found: _Found) -> None:
    """torch 2.8 to 2.10 name the lowest and highest capability; code runs upward within a major version."""
    if hit := _PATTERNS["range"].search(text):
        own, low, high = (float(hit.group(name)) for name in ("cc", "low", "high"))
        found.put("torch.covers_gpu", own >= low and int(own) <= int(high), event)


def _requirement(text: str, event: Event, found: _Found) -> None:
    """torch 2.11 and later list what they were built for: "- 8.0 which supports hardware CC >=8.0,<9.0 …"."""
    own = _PATTERNS["cc"].search(text)
    built = [float(item) for item in re.findall(r"- (\d+\.\d) which supports hardware CC", text)]
    if own and built:
        capability = float(own.group("cc"))
        covered = any(int(item) == int(capability) and item <= capability for item in built)
        found.put("torch.covers_gpu", covered, event)


def _kernel_card(text: str, event: Event, found: _Found) -> None:
    if hit := _PATTERNS["kernel-cc"].search(text):
        capability = f"{hit['cc'][:-1]}.{hit['cc'][-1]}"
        found.put("gpu.compute_capability", (capability,), event)
        found.put("gpu.lowest_capability", float(capability), event)


def _python(text: str, event: Event, found: _Found) -> None:
    if event.kind in _TALK or "pip " in text or any(word in text for word in _NOT_INSTALLED):
        return
    if hit := _PATTERNS["python"].search(text):
        version = hit.group("version")
        known = found.value("python.version")
        # A path in a traceback names the interpreter that failed; a printed version may be that of another.
        if known is None or "python.version" in found.explicit or str(version).startswith(str(known)):
            found.put("python.version", version, event)
            found.explicit.add("python.version")


def _visible(text: str, event: Event, found: _Found) -> None:
    if event.kind is not EventKind.EXCEPTION and (hit := _PATTERNS["visible"].search(text)):
        value = hit.group("value").replace(" ", "")
        found.put("env.CUDA_VISIBLE_DEVICES", value, event)
        found.alone |= {value} if value.isdecimal() else set()
        found.put("gpu.named_count", len([one for one in value.split(",") if one not in ("", "-1")]), event)


def _library_path(text: str, event: Event, found: _Found) -> None:
    if event.kind is EventKind.EXCEPTION:
        return
    for hit in _PATTERNS["library-path"].finditer(text):
        value = hit.group("value")
        if "$" not in value or "/" in value:
            found.put("env.LD_LIBRARY_PATH", value, event)


def _shm(text: str, event: Event, found: _Found) -> None:
    for line in text.splitlines():
        if hit := _PATTERNS["shm"].search(line):
            found.put("shm.size_bytes", int(float(hit.group("size")) * _UNITS[hit.group("unit")]), event)


def _frames(event: Event, found: _Found) -> None:
    for frame in event.frames:
        if "python" in frame.file or "Python" in frame.file or "envs" in frame.file:
            _path(frame.file, event, found)


def _path(path: str, event: Event, found: _Found) -> None:
    if hit := _PATTERNS["python-path"].search(path):
        packed = hit.group("packed")
        version = hit.group("version") or f"{packed[0]}.{packed[1:]}"
        known = found.value("python.version")
        if known is None or not str(known).startswith(version):
            found.put("python.version", version, event, "from a path")
            found.explicit.discard("python.version")
    if "-torch-" in path and (hit := _PATTERNS["nix"].search(path)):
        _torch(hit.group("version"), "", event, found)
    if "envs" in path and (hit := _PATTERNS["conda"].search(path)):
        found.put("conda.env", hit.group("name"), event)


_AVAILABLE = _one("available", "torch.cuda_available", lambda word: word in ("True", "Yes"))
_GLIBC = _one("glibc", "os.glibc")
_KERNEL = _one("kernel", "os.kernel")
# A literal that stands in every text of the kind, and who reads it.
_READERS: tuple[tuple[str, Callable[[str, Event, _Found], None]], ...] = (
    ("torch", _packages),
    ("PyTorch", _packages),
    (") is not compatible", _told),
    (", yours is ", _told),
    ("incompatible torch version", _told),
    ("torch.__version__ ", _told),
    ("Pytorch", _packages),
    ("numpy", _packages),
    ("triton", _packages),
    ("with kernel driver version", _one("under", "driver.version", str, "the container's start banner")),
    ("used to build PyTorch", _built),
    ("Is CUDA available", _AVAILABLE),
    ("is_available()", _AVAILABLE),
    ("says CUDA is not", _AVAILABLE),
    ("CAPABILITIES_PER_GPU", _AVAILABLE),
    ("torch.version.cuda", _torch_cuda),
    ("torch_extensions", _folder_cuda),
    ("sm_", _arch),
    ("Minimum and Maximum cuda", _range),
    ("which supports hardware CC", _requirement),
    ("'device_type': 'cuda'", _kernel_card),
    ("as it may crash", _one("numpy-abi", "numpy.version")),
    ("Python", _python),
    ("/python", _path),
    ("libc", _GLIBC),
    ("GLIBC", _GLIBC),
    ("Linux-", _KERNEL),
    ("CUDA_VISIBLE_DEVICES", _visible),
    ("LD_LIBRARY_PATH", _library_path),
    ("/dev/shm", _shm),
    ("SHMEM", _one("shm-note", "shm.size_bytes", lambda mib: int(mib) << 20, "the container's start banner")),
    ("open files", _one("nofile", "limits.nofile", int)),
)
