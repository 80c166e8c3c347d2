"""Structured messages into facts. One module a namespace, imported only when a rule asks for its facts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module

from torchdoctor.model import Event, Fact, Transcript

# namespace of the facts -> module
NAMESPACES = {
    "oom": "oom",
    "assert": "device_assert",
    "dlopen": "dlopen",
    "xid": "xid",
    "nccl": "nccl",
    "exit": "exit",
    "state_dict": "state_dict",
    "build": "build",
    "compile": "torch_compile",
    "loss": "loss",
    "trainable": "trainable",
    "checksum": "checksum",
    "listing": "listing",
    "process_table": "process_table",
    "host_memory": "host_memory",
    "loader": "loader",
    "flight": "flight",
    "hang": "hang",
    "launcher": "launcher",
    "store": "store",
}

# What is read out of a whole text in which nothing failed: module -> groups of words, in small letters, of
# each of which one must stand in the text. Most texts are passed over by them.
READINGS: dict[str, tuple[tuple[str, ...], ...]] = {
    "late_env": (("cuda_visible_devices", "cuda_device_order"), ("torch", "cuda:", "gpu")),
    "tensor_float": (
        ("tf32", "float32_matmul_precision", "fp32_precision", "v100", "p100", "t4", "2080", "1080", "cudnn"),
        ("diff", "err", "allclose", "abs("),
    ),
    "pinned": (
        (
            "pin_memory",
            "pinned",
            "page-lock",
            "pagelock",
            "host_memory_stats",
            "pin memory",
            "cudahost",
            "\u9501\u9875",
            "\u30da\u30fc\u30b8\u30ed",
        ),
        ("swap", "swp", "lagert", "\u30b9\u30ef\u30c3\u30d7", "\u0441\u0432\u043e\u043f", "\uc2a4\uc651"),
    ),
    "threads": (("omp_num", "thread"),),
    "worker_timing": (
        ("worker", "num_workers"),
        ("num_workers", "loader", "loading", "pt_data", "/s", "epoch", "train", "entren"),
    ),
    "worker_restart": (("workers",), ("epo", "\u00e9po", "\u044d\u043f\u043e", "\u8f6e", "\u30a8\u30dd")),
    "processors": (
        ("worker",),
        ("nproc", "affinity", "cpu", "core", "kern", "c\u0153ur", "\u6838", "\u30b3\u30a2"),
    ),
    "latency": (("p50", "median", " ms", "50%"), ("torch", "cuda", "gpu", "inference", "latency", "model")),
    "gpu_rows": (
        ("mib", " mb |", " gb ", "clocks.", "memory", "pcie.link."),
        ("gpu", "nvidia", "torchrun", "ddp"),
    ),
    "gpu_slice": (("grid ", " mig ", "nvidia "), ("slow", "memory", "only", "why")),
    "fork_hang": (
        (
            "process(",
            "pool(",
            "processpoolexecutor(",
            "os.fork(",
            "multiprocessing",
            "fork",
            "preload",
            "uwsgi",
            "celery",
        ),
        ("torch", "gomp", "kmp_"),
    ),
    "loader_hang": (("workers", "worker_processes"),),
    "eval_memory": (("valid", "eval", "inference", "test"), ("memory", "vram", " gb"), ("def ", ".eval()")),
    "sampler_order": (("distributedsampler",),),
    "uneven_loops": (
        (
            "batch",
            "step",
            "iteration",
            "sampler",
            "lots",
            "epoch",
            "loader",
            "train",
            "data",
            "lote",
            "uneven",
            "unequal",
            "evenly",
            "\u30d0\u30c3\u30c1",
            "\ubc30\uce58",
            "\u0431\u0430\u0442\u0447",
        ),
        ("rank", "ddp", "distributeddataparallel", "torchrun", "nccl", "gpus", "accelerate"),
    ),
    "least_squares": (("lstsq(",),),
    "traced": (("jit.trace", "onnx.export(", "tracerwarning"),),
    "device_names": (
        ("get_device_", "cuda_visible_devices", "cuda:", "nvml", "smi"),
        ("nvidia", "geforce", "tesla", "quadro", "titan"),
    ),
    "memory_growth": (
        (
            "grow",
            "increas",
            "climb",
            "creep",
            "leak",
            "goes up",
            "going up",
            "ris",
            "w\u00e4chst",
            "steigt",
            "\u6da8",
            "\u589e",
            "\u5897",
        ),
        ("mem", "ram", "rss", "speicher", "\u663e\u5b58", "\u5185\u5b58", "\u30e1\u30e2\u30ea"),
    ),
    "host_growth": (
        ("workers", "dataloader", "\u30ef\u30fc\u30ab\u30fc"),
        (
            "mem",
            "ram",
            "rss",
            "uss",
            "pss",
            "private",
            "speicher",
            "\u5185\u5b58",
            "\u30e1\u30e2\u30ea",
            "m\u00e9m",
        ),
    ),
    "session": (("is_grad_enabled()", "requires_grad", "nan", "inf"),),
    "debug_env": (
        (
            "launch_blocking",
            "torch_distributed_debug",
            "memory_caching",
            "serialize_",
            "nccl_debug",
            "_trace",
            "blocking_wait",
            "_disable",
            "torch_logs",
            "compile_debug",
            "loginfo_dbg",
        ),
    ),
    "half_nan": (
        ("nan",),
        ("float16", "fp16", "half"),
        ("float32", "fp32", "bf16", "bfloat16", "cpu", "full precision"),
    ),
    "availability": (
        ("is_available()", "available", "cpu", "false", "gpu", "card", "cuda"),
        ("cuda", "gpu", "nvidia"),
        (
            "nvidia-smi",
            "+cpu",
            "cuda_visible",
            "driver",
            "+cu1",
            "_cpu",
            "whl/cpu",
            "none",
            "no devices",
            "lspci",
        ),
    ),
    "rank_branch": (
        ("rank", "process", "is_main", "master", "is_global_zero"),
        (
            "barrier",
            "reduce",
            "gather",
            "broadcast",
            "everyone",
            "state",
            "synchronize",
            "eval",
            "valid",
            "sync_dist",
            "clip_grad_norm",
            "compute(",
            "generat",
            "model",
        ),
    ),
    "no_gradient": (("none of the inputs have requires_grad",),),
    "scattered": (("dataparallel",), ("[", "(")),
    "replica_parts": (("dataparallel", "data_parallel("),),
    "replica_weights": (
        ("ddp", "distributeddataparallel"),
        ("rank", "process", "gpu", "replica", "r\u00e4nge"),
    ),
    "stray_contexts": (
        ("rank", "ddp", "torchrun", "distributed", "accelerate", "deepspeed", "horovod", "mp.spawn"),
        ("gpu", "card", "cuda", "device", "karte", "carte", "\u5361"),
        (
            "load",
            "context",
            "process",
            "set_device",
            "ib",
            "gb",
            "mb",
            " mo",
            "pid",
            "mem",
            "\u663e\u5b58",
            "\u30e1\u30e2\u30ea",
        ),
    ),
}


def of_event(namespace: str, event: Event, transcript: Transcript) -> Iterator[Fact]:
    """The facts of one namespace that an event's message holds."""
    module = import_module(f"torchdoctor.extract.{NAMESPACES[namespace]}")
    yield from module.extract(event, transcript)


def of_whole(transcript: Transcript) -> Iterator[tuple[str, Callable[[], Iterator[Fact]]]]:
    """What settings, figures and pasted code in a text without a failure show, taken together.

    Each reading that may find something, by name: the caller runs them, one at a time.
    """
    text = "\n".join(event.text for event in transcript.events).lower()
    wanted = [
        name for name, groups in READINGS.items() if all(any(w in text for w in group) for group in groups)
    ]
    if not wanted:
        return
    from torchdoctor.extract.readings.passage import Passage

    passage = Passage(transcript)
    for name in wanted:
        read = import_module(f"torchdoctor.extract.readings.{name}").read
        yield name, partial(read, passage)


def of_text(transcript: Transcript) -> Iterator[Fact]:
    """What the text as a whole says of the machine it was printed on."""
    from torchdoctor.extract.environment import extract_text

    yield from extract_text(transcript)


def catalogue() -> dict[str, str]:
    """Every fact that can be read out of a text: name -> type and meaning."""
    from torchdoctor.extract import environment, nvidia_smi

    found: dict[str, str] = {}
    for module in (*NAMESPACES.values(), *(f"readings.{name}" for name in READINGS)):
        found.update(import_module(f"torchdoctor.extract.{module}").FACTS)
    found.update(environment.FACTS)
    found.update(nvidia_smi.FACTS)
    return found
