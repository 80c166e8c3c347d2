"""Whose a header is, by its name as the sources ask for it."""

from __future__ import annotations

from collections.abc import Sequence

from torchdoctor.patterns import pattern

# the first that fits; \1 is a library that is called as the folder of its headers
_FAMILIES = (
    ("x86", r"(?:[a-z]mm|imm|amm|nmm|x86|avx\w*|fma4?)intrin\.h|mmintrin\.h|cpuid\.h"),
    ("arm", r"arm_(?:neon|sve|acle|sme|bf16|fp16)\.h"),
    ("python", r"(?:Python|pyconfig|patchlevel)\.h"),
    ("cudnn", r"cudnn\w*\.h"),
    ("nccl", r"nccl(?:_net)?\.h"),
    ("cuda-toolkit", r"cu(?:blas|dart|fft|rand|solver|sparse|pti|file|da)\w*\.(?:h|hpp|cuh)|nv(?:ml|rtc"
     r"|ToolsExt|JitLink)\w*\.h|(?:device_launch_parameters|vector_types|math_constants|sm_\d\d\w*)\.h"
     r"|(?:cuda|thrust|cub|crt|nv|nvtx3|cooperative_groups)/.+|cooperative_groups\.h"),
    ("rocm", r"(?:hip|roc(?!ksdb)|miopen|rccl)\w*(?:/.+|\.h(?:pp)?)"),
    ("torch", r"(?:torch|ATen|c10|caffe2|TH|THC)/.+"),
    ("cutlass", r"cute/.+"),
    (r"\1", r"(pybind11|cutlass|glm|Eigen|opencv2|boost|google|absl|tbb)/.+"),
    ("mpi", r"mpi\.h"),
    ("openmp", r"omp\.h"),
    ("c", r"(?:std(?:io|lib|int|def|arg|bool)|string|math|assert|errno|limits|time|signal|ctype|float|unistd"
     r"|features|wchar|inttypes)\.h|sys/\w+\.h"),
    ("c++", r"[a-z][a-z_0-9]{1,30}"),
)  # fmt: skip

# clang, which compiles HIP, names the files that include the one with the error, the outermost first
_INCLUDED = r"\s*In file included from (?P<file>[^\s:][^:\n]{0,300}):\d+"
_OF_CUDA = r"/cuda(?:-[\d.]+)?/(?:targets/[\w-]+/)?include/"
_MOST_INCLUDES = 40
# a compiler's command with the folders that it searches: nvcc -Ia/include -I/b/include -c turn.cu
_SEARCHES = r"(?:^|\s)(?:-I|-isystem ?|/I ?)['\"]?(\S{1,400})"


def header_family(name: str) -> str | None:
    """``cuda-toolkit``, ``python``, ``c++`` (the standard library) and so on; None for all others."""
    for family, form in _FAMILIES:
        if (found := pattern(form).fullmatch(name.removeprefix("./"))) is not None:
            return found.expand(family)
    return None


def unlisted(header: str, file: str, before: Sequence[str]) -> bool:
    """Does the command that compiles a file search no folder named after the header's own, as cutlass?

    ``before`` are the texts above the error. False where they do not hold the command.
    """
    library = header.partition("/")[0].lower()
    command = next((text for text in reversed(before) if file in text and " -c" in text), "")
    folders = pattern(_SEARCHES).findall(command)
    return bool(folders and library) and not any(library in folder.lower() for folder in folders)


def into_cuda(before: Sequence[str]) -> tuple[str, str]:
    """The last file before those of the CUDA toolkit, and the first of these, on the way to an error.

    ``before`` are the lines above the error. Two times "" where the sources do not come to CUDA's headers.
    """
    last = ""
    for line in before[-_MOST_INCLUDES:]:
        found = pattern(_INCLUDED).match(line)
        file = found["file"] if found is not None else ""
        if pattern(_OF_CUDA).search(file):
            return last.rpartition("/")[2], file.rpartition("/")[2]
        last = file
    return "", ""
