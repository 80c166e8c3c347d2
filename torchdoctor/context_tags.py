"""The words for a reader's surroundings, by which rules say for whom a fix is.

A tag belongs to one dimension, so that a fix names tags alone: ``for = ["windows", "comfyui"]``.
"""

from __future__ import annotations

TAGS: dict[str, tuple[str, ...]] = {
    "system": ("linux", "windows", "macos", "wsl"),
    "distribution": ("debian", "redhat", "arch", "suse"),
    "device": ("nvidia", "amd", "intel", "apple"),
    "board": ("desktop", "jetson", "aarch64"),
    "runtime": (
        "docker", "compose", "dockerfile", "podman", "apptainer", "kubernetes", "slurm", "ray", "colab",
        "kaggle", "jupyter", "ci", "modules",
    ),
    "python": ("venv", "conda", "uv", "uv-project", "system-python", "embedded", "32-bit"),
    "phase": (
        "import", "build", "load", "train", "validate", "infer", "serve", "export",
    ),
    "program": (
        "trainer", "lightning", "accelerate", "deepspeed", "fsdp", "peft", "diffusers", "vllm", "sglang",
        "tgi", "comfyui", "ultralytics", "megatron", "webui", "zluda", "libtorch", "ctranslate2",
        "invokeai", "triton-server",
    ),
    "owner": ("user", "torch", "package"),
    "backend": ("nccl", "gloo", "mpi"),
}  # fmt: skip
DIMENSION = {tag: dimension for dimension, tags in TAGS.items() for tag in tags}

# What most readers have: naming it keeps a fix from others, and is no reason to put it first.
USUAL = frozenset({"linux", "debian", "nvidia", "train", "user", "desktop"})
# What says nothing of its neighbours: a notebook, a CI job and Ray may run in any container, a 32-bit Python
# in any environment, Triton's server runs any back end, and a cluster with modules mostly has Slurm.
BESIDE_OTHERS = frozenset({"ray", "jupyter", "ci", "modules", "32-bit", "triton-server"})
# Programs that answer requests: a run of one is no training, and it is not started by torchrun.
SERVERS = frozenset({"vllm", "sglang", "tgi"})
# Programs that make pictures: a run of one is no training, unless its frames say so
GENERATORS = frozenset({"comfyui", "webui", "invokeai"})
