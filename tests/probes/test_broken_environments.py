"""Environments that are really broken, and healthy ones that look odd: what ``check`` finds in each."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from packaging.version import Version
from probe_machines import Environment

from torchdoctor.cli.main import main
from torchdoctor.model import State
from torchdoctor.probes.source import ProbeSource

SCHEMA = Path(__file__).parents[2] / "torchdoctor" / "schema" / "report-1.json"
# as much of a torch as is asked
SOUND = """
__version__ = "2.5.1"
class version: cuda = None; hip = None; debug = False
class _C:
    _GLIBCXX_USE_CXX11_ABI = True
    _get_cudnn_allow_tf32 = staticmethod(lambda: True)
class cuda:
    is_available = staticmethod(lambda: False)
    device_count = staticmethod(lambda: 0)
class backends:
    class cudnn: version = staticmethod(lambda: None)
class Tensor:
    def numpy(self): return 0
def zeros(n): return Tensor()
def from_numpy(a): return Tensor()
def is_grad_enabled(): return True
def get_default_dtype(): return "torch.float32"
def are_deterministic_algorithms_enabled(): return False
def get_float32_matmul_precision(): return "highest"
def get_num_threads(): return 1
"""
HAS_GPU = os.path.exists("/dev/nvidiactl")
CUDA = SOUND.replace("cuda = None", "cuda = '12.4'")
Do = Callable[[Environment, pytest.MonkeyPatch], object]


@dataclass(frozen=True)
class Case:
    """``body`` is what the import runs, None for no torch; ``do`` changes the rest.

    ``finds`` are all findings above a note; ``notes`` are ids among the notes, ``untold`` among what could
    not be determined.
    """

    name: str
    body: str | None = SOUND
    do: Do = lambda there, patch: None
    finds: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    untold: tuple[str, ...] = ()
    cuda: str | None = None
    version: str = "2.5.1"
    needs: str = ""
    limit: str = "30"


def env(**values: str) -> Do:
    return lambda there, patch: [patch.setenv(name, value) for name, value in values.items()]


def installed(*packages: tuple[str, str] | tuple[str, str, str]) -> Do:
    return lambda there, patch: [there.distribution(*one) for one in packages]


def file(path: str, text: str, **variables: str) -> Do:
    """A file below the working folder or site-packages, named {work} and {site}, in variables too."""

    def do(there: Environment, patch: pytest.MonkeyPatch) -> None:
        place = Path(path.format(work=there.work, site=there.site))
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
        for name, value in variables.items():
            patch.setenv(name, value.format(work=there.work, site=there.site))

    return do


def without_version(there: Environment, patch: pytest.MonkeyPatch) -> None:
    (there.site / "torch" / "version.py").unlink()
    shutil.rmtree(next(there.site.glob("torch-*")))


def interpreter(script: str) -> Do:
    """Another program in the place of the interpreter."""

    def do(there: Environment, patch: pytest.MonkeyPatch) -> None:
        there.python = there.work.parent / "python"
        there.python.write_text(f"#!/bin/sh\n{script}\n")
        there.python.chmod(0o755)

    return do


def built(*paths: str) -> Do:
    """Shared libraries without content, the last folder of which the loader searches first."""

    def do(there: Environment, patch: pytest.MonkeyPatch) -> None:
        for path in paths:
            place = Path(path.format(work=there.work, site=there.site))
            place.parent.mkdir(parents=True, exist_ok=True)
            subprocess.run(["cc", "-shared", "-x", "c", "/dev/null", "-o", str(place)], check=True)
        patch.setenv("LD_LIBRARY_PATH", str(place.parent))

    return do


def held_lock(there: Environment, patch: pytest.MonkeyPatch) -> None:
    lock = there.work / "built" / "op" / "lock"
    lock.parent.mkdir(parents=True)
    patch.setenv("TORCH_EXTENSIONS_DIR", str(there.work / "built"))
    patch.setattr(there, "undo", lock.open("w").close, raising=False)  # open until the end of the test


def few_files(there: Environment, patch: pytest.MonkeyPatch) -> None:
    import resource

    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    kept = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
    patch.setattr(there, "undo", lambda: resource.setrlimit(resource.RLIMIT_NOFILE, kept), raising=False)


def nameless(there: Environment, patch: pytest.MonkeyPatch) -> None:
    def unknown(number: int) -> None:
        raise KeyError(number)

    for name in ("USER", "LOGNAME", "USERNAME", "LNAME"):
        patch.delenv(name, raising=False)
    patch.setattr("pwd.getpwuid", unknown)


def editable(there: Environment, patch: pytest.MonkeyPatch) -> None:
    clone = there.work.parent / "clone"
    shutil.move(there.site / "torch", clone / "torch")
    (there.site / "__editable__.torch.pth").write_text(f"{clone}\n")


def raising(kind: str, words: str) -> str:
    return f"raise {kind}({words!r})"


CUDA_WORDS = "libcudart.so.12: cannot open shared object file: No such file or directory"
LIBRARY = ("cuda-library-missing",)
IMPORT = ("torch-import",)
TRITON = ("compile-triton-missing",)
# its builder may run outside, where nobody can look
IN_CONTAINER = ProbeSource().fetch("os.container").state is State.KNOWN
BROKEN = (
    Case("none", None, finds=("torch-missing",)),
    Case("metadata alone", None, installed(("torch", "2.5.1")), finds=("torch-missing",)),
    Case("raises", raising("ImportError", "no"), finds=IMPORT),
    Case("has no text", "class E(Exception):\n    def __str__(self): 1 / 0\nraise E", finds=IMPORT),
    Case("raises escape sequences", raising("OSError", "\x1b]0;x\x07\x1b[2J\ud800"), finds=IMPORT),
    Case("raises a long message", "raise OSError('x' * 10**7)", finds=IMPORT),
    Case("interrupts", "raise KeyboardInterrupt", finds=IMPORT),
    Case("recurses", "def f(): f()\nf()", finds=IMPORT),
    Case("has no memory", "raise MemoryError", finds=IMPORT),
    Case("is cut off", "def f(:", finds=IMPORT),
    Case("aborts", "import os\nos.abort()", finds=IMPORT),
    Case("crashes", "import ctypes\nctypes.string_at(0)", finds=IMPORT),
    Case("is killed", "import os\nos.kill(os.getpid(), 9)", finds=IMPORT),
    Case("exits", "import sys\nsys.exit(3)", finds=IMPORT),
    Case("exits at once", "import os\nos._exit(0)", finds=IMPORT),
    Case("prints without end", "import os\nwhile True: os.write(1, b'x' * 2**20)", finds=IMPORT),
    Case("hangs", "import time\ntime.sleep(99)", untold=IMPORT, limit="2"),
    Case("hangs deaf", "import ctypes\nctypes.PyDLL(None).sleep(99)", untold=IMPORT, limit="2"),
    Case("is a program", "import os\nos.execv('/bin/true', ['true'])", finds=IMPORT),
    Case("is not torch", "answer = 42", finds=IMPORT),
    Case("was not built", "from torch._C import *", without_version, finds=IMPORT),
    Case("lacks a part", "import torch._C", finds=IMPORT),
    Case("needs a broken module", "import sympy", file("{site}/sympy.py", "1/0"), finds=IMPORT),
    Case("lacks cudart", raising("OSError", CUDA_WORDS), finds=(*LIBRARY, *TRITON), cuda="12.4"),
    Case("lacks cuDNN", raising("OSError", CUDA_WORDS.replace("cudart.so.12", "cudnn.so.9")),
         finds=("cudnn-library-missing", *TRITON), cuda="12.4"),
    Case("old libstdc++", raising("ImportError", "version `GLIBCXX_3.4.32' not found"),
         finds=("glibcxx-missing",)),
    Case("old glibc", raising("ImportError", "version `GLIBC_2.38' not found"), finds=("glibc-too-old",)),
    Case("another MKL", raising("ImportError", "undefined symbol: iJIT_NotifyEvent"), finds=("mkl-symbol",)),
    Case("another cuDNN",
         CUDA.replace("lambda: None)", "lambda: 1 / 0)").replace("1 / 0", "exec('raise RuntimeError("
              "\"cuDNN version incompatibility: compiled against (9, 1, 0)\")')"),
         finds=("cudnn-version-mismatch", *TRITON), cuda="12.4"),
    Case("torch.py here", do=file("{work}/torch.py", ""), finds=("torch-shadowed",)),
    Case("random.py here", do=file("{work}/random.py", ""), finds=("torch-shadowed",)),
    Case("a clone on PYTHONPATH", do=file("{work}/c/torch/__init__.py", "1/0", PYTHONPATH="{work}/c"),
         finds=("torch-shadowed",)),
    Case("NumPy 2, torch 2.1", do=installed(("numpy", "2.0.1")), version="2.1.0", finds=("numpy-abi",)),
    Case("NumPy that does not convert", do=lambda there, patch: [
         file("{site}/numpy/__init__.py", "1/0")(there, patch), there.distribution("numpy", "1.26.4")],
         finds=("numpy-abi",)),
    Case("another torchvision", do=installed(("torchvision", "0.15.2", "torch==2.0.1")),
         finds=("torchvision-mismatch",)),
    Case("another torchaudio", do=installed(("torchaudio", "2.0.2", "torch==2.0.1")),
         finds=("torchaudio-mismatch",)),
    Case("another triton", do=installed(("triton", "3.0.0")), needs="triton==3.1.0",
         finds=("compile-triton-mismatch", "torch-requirements-unmet")),
    Case("a requirement is gone", needs="sympy==1.13.1", finds=("torch-requirements-unmet",)),
    Case("metadata of another release", do=file("{site}/torch/version.py", "__version__ = '2.4.0'\n"),
         finds=("libtorch-mixed",)),
    Case("apex of another maker", do=installed(("apex", "0.9.10.dev0")), finds=("apex-wrong-package",)),
    Case("xformers for another torch", do=installed(("xformers", "0.0.26", "torch==2.3.0")),
         finds=("torch-pins-conflict",)),
    Case("gradients off", SOUND.replace("return True", "return False"), finds=("grad-mode-disabled",)),
    Case("no triton for CUDA", CUDA, cuda="12.4", finds=TRITON),
    Case("two OpenMP runtimes",
         SOUND + "import ctypes\nfor n in ('libiomp5.so', 'libomp.so'): ctypes.CDLL(n)\n",
         built("{work}/lib/libiomp5.so", "{work}/lib/libomp.so"), finds=("openmp-duplicate",)),
    Case("a system CUDA first", CUDA + "import ctypes\nctypes.CDLL('libcublas.so.12')\n",
         built("{site}/nvidia/cublas/lib/libcublas.so.12", "{work}/lib/libcublas.so.12"), cuda="12.4",
         finds=("cuda-library-shadowed", *TRITON)),
    Case("the stub libcuda", CUDA, built("{work}/stubs/libcuda.so.1"), cuda="12.4",
         finds=("cuda-driver-stub", *TRITON)),
    Case("launches wait", do=env(CUDA_LAUNCH_BLOCKING="1"), finds=("debug-variables-set",)),
    Case("the job ends", do=env(SLURM_JOB_END_TIME=str(int(time.time()) + 300)), finds=("job-time-short",)),
    Case("a proxy for http alone", do=env(HTTP_PROXY="http://u:secret@p:1"), notes=("proxy-for-http-only",)),
    Case("few open files", do=few_files, notes=("too-many-open-files",)),
    Case("a user without a name", do=nameless, finds=("container-user-missing",)),
    Case("a stale lock", do=file("{work}/built/op/lock", "", TORCH_EXTENSIONS_DIR="{work}/built"),
         finds=() if IN_CONTAINER else ("extension-stale-lock",),
         untold=("extension-stale-lock",) if IN_CONTAINER else ()),
    Case("a build goes on", do=held_lock, notes=("extension-lock-held",)),
    Case("no cache for kernels", do=env(TRITON_CACHE_DIR="/dev/null/c"), finds=("cache-folder-unusable",)),
    Case("no compiler", do=env(PATH="/nowhere"), notes=("compile-no-compiler", "extension-ninja-missing")),
    Case("no interpreter", do=interpreter("exit 0"), finds=("python-start",)),
    Case("an interpreter that prints", do=interpreter("head -c 4096 /dev/urandom"), finds=("python-start",)),
    Case("an interpreter that dies", do=interpreter("kill -9 $$"), finds=("python-start",)),
    Case("an interpreter that hangs", do=interpreter("sleep 99"), untold=("torch-missing",), limit="2"),
    Case("a path file that exits", do=file("{site}/exits.pth", "import os; os._exit(5)"),
         finds=("python-start",)),
)  # fmt: skip
HEALTHY = (
    Case("plain"),
    Case("prints garbage", "import os\nos.write(1, bytes(range(256)) * 99)\nos.write(2, b'Error')\n" + SOUND),
    Case("forks a daemon", "import os, time\nif not os.fork():\n    os.setsid(); time.sleep(99)\n" + SOUND),
    Case("closes what is open", "import os\nos.closerange(0, 99)\n" + SOUND),
    Case("moves away", "import os\nos.chdir('/')\nos.environ.clear()\n" + SOUND),
    Case("takes its time", "import time\ntime.sleep(0.5)\n" + SOUND),
    Case("warns", "import warnings\nwarnings.warn('torch is broken')\n" + SOUND),
    Case("editable", do=editable),
    Case("NumPy 1 with an old torch", do=installed(("numpy", "1.26.4")), version="2.1.0"),
    Case("companions", do=installed(("torchvision", "0.20.1", "torch==2.5.1"), ("torchaudio", "2.5.1"))),
    Case("xformers", do=installed(("xformers", "0.0.29", "torch>=2.4"), ("bitsandbytes", "0.45", "torch<3"))),
    Case("another patch release", do=installed(("torchvision", "0.20.0", "torch==2.5.0"))),
    Case("a newer release than any table", do=installed(("torchvision", "9.9.0")), version="9.8.0"),
    Case("triton that fits", do=installed(("triton", "3.1.0")), needs="triton==3.1.0"),
    Case("harmless settings", do=env(CUDA_LAUNCH_BLOCKING="0", NCCL_DEBUG="WARN", LD_LIBRARY_PATH="/no:")),
    Case("a lock of torch 2.14", SOUND.replace("2.5.1", "2.14.0"), version="2.14.0",
         do=file("{work}/built/op/lock", "", TORCH_EXTENSIONS_DIR="{work}/built")),
    Case("a path file that is none", do=file("{site}/odd.pth", "\x00import nothing\n/nowhere\n")),
    Case("sitecustomize prints", do=file("{site}/sitecustomize.py", "print('hello')")),
    Case("proxies", do=env(http_proxy="http://p:1", https_proxy="http://p:1")),
    Case("conda's layout", do=file("{site}/../../../conda-meta/history", "")),
)  # fmt: skip


def of_this_machine(case: Case) -> set[str]:
    """What is rightly found beside the case: a GPU that its torch cannot use, a Python too new for it."""
    found = {"torch-cpu-only", "torch-cuda", "gpu-memory-held"} if HAS_GPU else set()
    if sys.version_info >= (3, 12) and Version(case.version) < Version("2.4"):
        found.add("compile-python-unsupported")
    return found - set(case.finds)


@pytest.mark.parametrize("case", [*BROKEN, *HEALTHY], ids=lambda case: case.name.replace(" ", "-"))
def test_what_check_finds(
    case: Case, environment: Environment, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in (
        "PYTHONPATH",
        "LD_LIBRARY_PATH",
        "TORCH_EXTENSIONS_DIR",
        "CC",
        "CXX",
        "http_proxy",
        "https_proxy",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("USER", "ada")
    monkeypatch.chdir(environment.work)
    if case.body is not None:
        environment.plant(case.body, version=case.version, cuda=case.cuda, needs=case.needs)
    case.do(environment, monkeypatch)
    begun = time.monotonic()
    try:
        code = main(
            ["check", "--python", str(environment.python), "--format", "json", "--time-limit", case.limit]
        )
    finally:
        getattr(environment, "undo", lambda: None)()
    assert time.monotonic() - begun < float(case.limit) + 3
    text = capsys.readouterr().out
    report: dict[str, Any] = json.loads(text)
    Draft202012Validator(json.loads(SCHEMA.read_text(encoding="utf-8"))).validate(report)
    assert "secret" not in text
    bad = {one["id"]: one["verdict"] for one in report["checks"] if one["verdict"] in ("fail", "warn")}
    assert code == int("fail" in bad.values())
    assert sorted(bad.keys() - of_this_machine(case)) == sorted(case.finds)
    assert set(case.notes) <= {one for one in case.notes for note in report["notes"] if f"({one})" in note}
    assert set(case.untold) <= {one["id"] for one in report["not_checked"]}
    shutil.rmtree(environment.site.parents[2] / "conda-meta", ignore_errors=True)


def test_as_many_as_promised() -> None:
    assert len(BROKEN) >= 40
    assert len(HEALTHY) >= 15


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root may mount")
def test_small_and_noexec_file_systems(environment: Environment, tmp_path: Path) -> None:
    environment.plant(SOUND, cuda=None)
    cache = tmp_path / "cache"
    cache.mkdir()
    script = (
        'mount -t tmpfs -o size=16m tmpfs /dev/shm && mount -t tmpfs -o size=16m,noexec tmpfs "$0" && '
        'exec "$@" >"$OUT"'
    )
    call = [
        sys.executable,
        "-m",
        "torchdoctor",
        "check",
        "--python",
        str(environment.python),
        "--format",
        "json",
    ]
    ran = subprocess.run(
        ["unshare", "-m", "sh", "-c", script, str(cache), *call], capture_output=True, text=True, check=False,
        env={**os.environ, "TRITON_CACHE_DIR": str(cache), "OUT": str(tmp_path / "out")},
    )  # fmt: skip
    if "unshare" in ran.stderr or "mount" in ran.stderr:
        pytest.skip(ran.stderr)
    found = {one["id"]: one for one in json.loads((tmp_path / "out").read_text())["checks"]}
    assert found["dataloader-shm"]["verdict"] == "warn"
    assert found["cache-folder-unusable"]["evidence"][-1]["text"].endswith(f"{cache}: mounted noexec")
    assert found["disk-nearly-full"]["verdict"] == "warn"
