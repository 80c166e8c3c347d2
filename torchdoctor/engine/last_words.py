"""What a program of ours said that died in the examined interpreter, and which setting it was about.

torch that dies of a setting says so on standard error at best: the rule that knows the message gives the
cause, and the variable is the one whose name or value the message quotes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from torchdoctor.model import Record
from torchdoctor.records import record

# what torch, CUDA, NCCL, the OpenMP runtimes and the loader read while they start
_SETTINGS = (
    "PYTORCH_", "TORCH_", "TORCHINDUCTOR_", "CUDA_", "CUBLAS_", "CUDNN_", "NCCL_", "HIP_", "HSA_", "ROCR_",
    "OMP_", "GOMP_", "KMP_", "MKL_", "LD_PRELOAD", "LD_LIBRARY_PATH", "NVIDIA_TF32_OVERRIDE",
)  # fmt: skip
_WORD = re.compile(r"[A-Za-z0-9_.+-]{4,64}")
# values that half of all settings have
_COMMON = frozenset({"true", "false", "none", "info", "warn", "debug", "trace", "detail", "auto", "default"})
_SHOWN = 300
# causes that lie in the packages and libraries of an interpreter, on whatever node it runs
_PACKAGES = frozenset({
    "allocator-option-invalid", "cpu-instruction-missing", "cuda-driver-stub", "cuda-library-missing",
    "cuda-library-shadowed", "cudnn-library-missing", "cudnn-version-mismatch", "dependency-too-new",
    "extension-abi-mismatch", "extension-cuda-mismatch", "glibc-too-old", "glibcxx-missing",
    "library-wrong-architecture", "libtorch-mixed", "mkl-symbol", "nccl-version-mismatch", "no-kernel-image",
    "numpy-abi", "openmp-duplicate", "package-parts-mismatch", "ptx-unsupported-toolchain", "torch-cpu-only",
    "torch-missing", "torch-requirements-unmet", "torch-shadowed", "torch-wrong-backend",
})  # fmt: skip


@record(frozen=True, slots=True)
class Cause(Record):
    """The rule that knows what was said, its title, the line that proves it, and the variables meant."""

    rule: str
    title: str
    line: str
    variables: tuple[str, ...] = ()

    @property
    def of_environment(self) -> bool:
        """Is it the same on every node: a setting, or what is installed in this interpreter?"""
        return bool(self.variables) or self.rule in _PACKAGES


def settings(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables that torch and its libraries read while they start, cut to a length that can be shown."""
    return {name: value[:_SHOWN] for name, value in sorted(environ.items()) if name.startswith(_SETTINGS)}


def cause(text: str, given: Mapping[str, str]) -> Cause | None:
    """What the rules say of a dying program's words; None where no rule of a failure knows them.

    ``given`` are the variables that it had. Loads the rules: some milliseconds.
    """
    from torchdoctor import catalog
    from torchdoctor.engine import FactBook, diagnose
    from torchdoctor.intake import read_text
    from torchdoctor.model import Severity

    if not text.strip():
        return None
    report = diagnose(read_text(text), FactBook(None), catalog.load())
    found = next((one for one in report.diagnoses if one.severity is Severity.FATAL), None)
    if found is None:
        return None
    line = next((item.text for item in found.evidence if not item.against), "")
    names = quoted(line, given) or quoted(found.title, given)
    return Cause(found.rule, found.title, line[:_SHOWN], names)


def quoted(text: str, given: Mapping[str, str]) -> tuple[str, ...]:
    """The variables that a text names, else those of whose value it quotes a word."""
    words = set(_WORD.findall(text))
    named = tuple(name for name in given if name in words)
    return named or tuple(
        name
        for name, value in given.items()
        if any(word in words and word.lower() not in _COMMON for word in _WORD.findall(value))
    )
