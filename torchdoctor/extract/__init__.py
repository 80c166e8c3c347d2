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
    "late_env": (("cuda_visible_devices", "cuda_device_order"), ("torch", "cuda:")),
    "tensor_float": (
        ("tf32", "float32_matmul_precision", "fp32_precision", "v100", "p100", "t4", "2080", "1080", "cudnn"),
        ("diff", "err", "allclose", "abs("),
    ),
    "pinned": (("pin_memory", "pinned", "page-locked", "host_memory_stats", "pin memory"), ("swap",)),
    "threads": (("num_threads", "omp_num", "num threads", "1 thread", "one thread"),),
    "worker_timing": (("workers",), ("num_workers", "dataloader", "loader", "loading")),
    "latency": (("p50", "median", " ms", "50%"), ("torch", "cuda", "gpu", "inference", "latency", "model")),
    "gpu_rows": (
        ("mib", " mb |", " gb ", "clocks.", "memory", "pcie.link."),
        ("gpu", "nvidia", "torchrun", "ddp"),
    ),
    "gpu_slice": (("grid ", " mig ", "nvidia "), ("slow", "memory", "only", "why")),
    "fork_hang": (
        ("process(", "pool(", "processpoolexecutor(", "os.fork(", "multiprocessing", "fork"),
        ("torch", "gomp", "kmp_"),
    ),
    "loader_hang": (
        ("workers",),
        ("hang", "stuck", "free", "froz", "lock", "never", "forever", "h\u00e4ng", "\u5361", "\u6b62\u307e"),
        ("0", "without", "no work"),
    ),
    "eval_memory": (("valid", "eval", "inference", "test"), ("memory", "vram", " gb"), ("def ", ".eval()")),
    "sampler_order": (("distributedsampler",),),
    "uneven_loops": (
        ("uneven", "evenly", "differ", "equal", "any batches", "more batch", "fewer", "less batch"),
        ("hang", "hung", "stuck", "freez", "froz", "deadlock", "timeout", "timed out", "ever"),
        ("rank", "ddp", "distributeddataparallel", "torchrun", "nccl", "gpu", "accelerate"),
    ),
    "least_squares": (("lstsq(",),),
    "traced": (("jit.trace", "onnx.export(", "tracerwarning"),),
    "device_names": (
        ("get_device_", "cuda_visible_devices"),
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
    "session": (("is_grad_enabled()", "requires_grad", "nan", "inf"),),
    "debug_env": (
        (
            "launch_blocking",
            "torch_distributed_debug",
            "memory_caching",
            "serialize_",
            "nccl_debug",
            "_trace",
        ),
        ("slow", "speed", "/s", "util", "throughput", "longer", "langsam", "lent"),
    ),
    "half_nan": (
        ("nan",),
        ("float16", "fp16", "half"),
        ("float32", "fp32", "bf16", "bfloat16", "cpu", "full precision"),
    ),
    "availability": (("is_available()", "not available", "is cuda available: "), ("cuda",)),
    "rank_branch": (
        ("rank", "is_main", "is_master"),
        ("barrier(", "reduce", "gather", "broadcast", "everyone("),
    ),
    "no_gradient": (("none of the inputs have requires_grad",),),
    "scattered": (("dataparallel",), ("[", "(")),
    "complaint": (
        (
            "leak",
            "grow",
            "increas",
            "more and more",
            "jumps",
            "at iter",
            "at step",
            "nan",
            "inf",
            "steigt",
            "w\u00e4chst",
            "\u6cc4",
            "\u589e",
            "\u6da8",
        ),
        ("mem", "ram", "loss", "\u663e\u5b58", "\u635f\u5931", "\u30e1\u30e2\u30ea", "speicher"),
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
