"""What a changed setting means: how bad it is, why, and what to do."""

from __future__ import annotations

from dataclasses import dataclass, replace

from torchdoctor.model import Verdict


@dataclass(frozen=True, slots=True)
class Meaning:
    """``imported`` is the verdict when an imported module made the change, ``own`` when the program did.

    None is a note. ``id`` is a rule's where the catalog has one for the setting; ``rule`` is the one for the
    failure that it leads to.
    """

    id: str
    title: str
    imported: Verdict | None
    own: Verdict | None
    why: str
    do: str
    rule: str = ""


_WARN = Verdict.WARN
_CONTEXT = "Use the context manager around the lines that need it, or set it back after the import."
_MOVE = 'Move it behind `if __name__ == "__main__":` or into the function that needs it.'

_RULES = {
    "inference-mode-enabled": "inference-tensor-backward",
    "default-dtype-changed": "dtype-mismatch",
    "default-device-changed": "device-mismatch",
    "deterministic-mode-changed": "deterministic-required",
    "matmul-precision-changed": "tf32-precision",
    "tf32-changed": "tf32-precision",
    "threads-changed": "dataloader-slow-workers",
    "start-method-set": "dataloader-spawn-pickle",
    "cuda-initialized-at-import": "cuda-in-fork",
    "recursion-limit-changed": "recursion-limit",
}
_MEANINGS: dict[str, tuple[str, str, Verdict | None, Verdict | None, str, str]] = {
    "grad-mode": (
        "grad-mode-disabled",
        "Gradients are switched off for the whole process",
        _WARN, _WARN,
        "Every later forward pass records no graph: backward() fails with \"does not require grad and does "
        "not have a grad_fn\", or a part of the model silently learns nothing.",
        "Replace it by `with torch.no_grad():` around the lines that need no gradients; or call "
        "torch.set_grad_enabled(True) after the import.",
    ),
    "inference-mode": (
        "inference-mode-enabled",
        "Inference mode is on for the whole process",
        _WARN, _WARN,
        "Tensors made from now on can never take part in autograd.",
        "Use `with torch.inference_mode():` around the lines that need it.",
    ),
    "anomaly-mode": (
        "anomaly-mode-enabled",
        "Anomaly detection is on for the whole process",
        _WARN, _WARN,
        "Every backward pass keeps tracebacks and checks for NaN: several times slower. Meant for debugging.",
        "Use `with torch.autograd.detect_anomaly():` around the step under suspicion.",
    ),
    "default-dtype": (
        "default-dtype-changed",
        "The default dtype is changed for the whole process",
        _WARN, _WARN,
        "Tensors and layers made from now on have another dtype: mixed dtypes fail in matmul and losses.",
        "Give dtype= where it is needed, or set it back after the import.",
    ),
    "default-device": (
        "default-device-changed",
        "The default device is changed for the whole process",
        _WARN, _WARN,
        "Factory functions put their tensors there: samplers and collate functions of others break.",
        "Give device= where it is needed, or use `with torch.device(…):`.",
    ),
    "default-tensor-device": (
        "default-device-changed",
        "The default tensor type is changed for the whole process",
        _WARN, _WARN,
        "Factory functions put their tensors there: samplers and collate functions of others break.",
        "Give device= and dtype= where they are needed.",
    ),
    "deterministic": (
        "deterministic-mode-changed",
        "Deterministic algorithms are switched for the whole process",
        _WARN, None,
        "When on, operations without a deterministic version raise, and others are slower.",
        "Leave it to the program that wants it.",
    ),
    "cudnn-enabled": (
        "cudnn-switched",
        "cuDNN is switched for the whole process",
        _WARN, _WARN,
        "Without cuDNN, convolutions and RNNs on the GPU are many times slower.",
        "Use `with torch.backends.cudnn.flags(enabled=False):` around the lines that need it.",
    ),
    "cudnn-deterministic": (
        "cudnn-deterministic-changed",
        "cudnn.deterministic is changed for the whole process",
        _WARN, None,
        "Convolutions may become slower, or their results vary from run to run.",
        "Leave it to the program that wants it.",
    ),
    "matmul-precision": (
        "matmul-precision-changed",
        "The float32 matmul precision is changed for the whole process",
        _WARN, None,
        "Float32 products are computed in TF32 or bfloat16 from now on (or no longer).",
        "Leave it to the program that wants it.",
    ),
    "threads": (
        "threads-changed",
        "The number of CPU threads is changed for the whole process",
        _WARN, None,
        "All later CPU work, data loading included, runs with so many threads.",
        "Leave it to the program, or to OMP_NUM_THREADS.",
    ),
    "autocast": (
        "autocast-enabled",
        "Autocast is switched for the whole process",
        _WARN, _WARN,
        "Operations run in lower precision, also where nobody asked for it.",
        "Use `with torch.autocast(…):` around the forward pass.",
    ),
    "start-method": (
        "start-method-set",
        "The start method of multiprocessing is set for the whole process",
        _WARN, None,
        "It can be set once: the program's own set_start_method then raises, and DataLoader workers start "
        "in another way.",
        "Use multiprocessing.get_context(…) where a start method is needed.",
    ),
    "seed": (
        "seed-set",
        "A global random generator is seeded",
        None, None,
        "A seed set at import undoes the program's own, or makes every run draw the same numbers.",
        "Use a torch.Generator or numpy.random.default_rng of its own.",
    ),
    "signal": (
        "signal-handler-set",
        "A signal handler is replaced",
        _WARN, None,
        "Schedulers announce the end by a signal; who wrote the handler decides what is saved then.",
        _MOVE,
    ),
    "module-hooks": (
        "module-hooks-global",
        "A global hook is put on all modules",
        _WARN, None,
        "It runs at each call of each module of the process and may change inputs, outputs and speed.",
        "Register the hook on the model that needs it.",
    ),
    "patch": (
        "torch-patched",
        "A part of torch is replaced, added or removed",
        _WARN, None,
        "Everybody who calls it runs the foreign code; compiled models and later torch versions may break.",
        "Wrap it in a function of your own instead.",
    ),
    "cuda-initialized": (
        "cuda-initialized-at-import",
        "CUDA is initialised at import",
        _WARN, None,
        "Forked children (DataLoader workers, multiprocessing) can then not use CUDA, CUDA_VISIBLE_DEVICES "
        "has no effect any more, and every process takes some hundred MiB of GPU 0.",
        _MOVE,
    ),
    "visible-devices-late": (
        "cuda-visible-set-late",
        "CUDA_VISIBLE_DEVICES is set after torch had looked for devices",
        _WARN, _WARN,
        "CUDA reads it once, when it is first asked; a later change has no effect, or only half.",
        "Set it in the shell, or as the first lines of the program, before anything asks for devices.",
    ),
}  # fmt: skip

# variables whose change at import hurts whoever does not know of it
_SHARP = frozenset(
    (
        "CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "CUDA_LAUNCH_BLOCKING", "CUDA_DEVICE_ORDER",
        "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NCCL_P2P_DISABLE", "NCCL_IB_DISABLE", "NCCL_SOCKET_IFNAME",
        "LD_LIBRARY_PATH", "LD_PRELOAD", "PYTORCH_NO_CUDA_MEMORY_CACHING", "WORLD_SIZE", "RANK", "LOCAL_RANK",
        "MASTER_ADDR", "MASTER_PORT", "KMP_DUPLICATE_LIB_OK",
    )
)  # fmt: skip

_NOTES = {
    "recursion-limit": ("recursion-limit-changed", "The recursion limit is changed"),
    "deterministic-warn-only": ("deterministic-mode-changed", "Deterministic mode only warns"),
    "cudnn-benchmark": ("cudnn-benchmark-changed", "cudnn.benchmark is changed"),
    "cudnn-tf32": ("tf32-changed", "TF32 in cuDNN is switched"),
    "matmul-tf32": ("tf32-changed", "TF32 in float32 products is switched"),
    "fp32-precision": ("tf32-changed", "The precision of float32 operations is changed"),
    "native-signal": ("signal-handler-set", "Native code has put a signal handler"),
    "fp16-reduction": ("reduced-precision-changed", "Reduced precision in sums of float16 is switched"),
    "bf16-reduction": ("reduced-precision-changed", "Reduced precision in sums of bfloat16 is switched"),
    "mkldnn-enabled": ("mkldnn-switched", "oneDNN is switched"),
    "sdp-flash": ("attention-backend-switched", "Flash attention is switched"),
    "sdp-mem-efficient": ("attention-backend-switched", "Memory-efficient attention is switched"),
    "sdp-math": ("attention-backend-switched", "Plain attention is switched"),
    "sdp-cudnn": ("attention-backend-switched", "cuDNN attention is switched"),
    "autocast-cache": ("autocast-cache-switched", "The weight cache of autocast is switched"),
    "interop-threads": ("threads-changed", "The number of inter-operation threads is changed"),
    "sharing-strategy": ("sharing-strategy-changed", "How tensors are shared between processes is changed"),
    "dispatch-modes": ("dispatch-mode-entered", "A torch dispatch mode is entered and not left"),
}  # fmt: skip


def meaning_of(setting: str) -> Meaning:
    """What a change of this setting means; settings of a group share one text."""
    head, _, rest = setting.partition(".")
    if head == "env":
        verdict = _WARN if rest in _SHARP else None
        return Meaning(
            "environment-changed",
            f"The environment variable {rest} is set",
            verdict,
            None,
            "Libraries read it once, some before and some after this line; children inherit it.",
            "Set it in the shell or the job script, before Python starts.",
        )
    if setting.startswith("seed-"):
        head = "seed"
    elif setting in ("autocast-cuda", "autocast-cpu"):
        head = "autocast"
    if head in _MEANINGS:
        return _with_rule(Meaning(*_MEANINGS[head]))
    if head.startswith("autocast-dtype"):
        return Meaning("autocast-dtype-changed", "The dtype of autocast is changed", None, None, "", "")
    if head.startswith("fp32-precision"):
        head = "fp32-precision"
    name, title = _NOTES[head]
    return _with_rule(Meaning(name, title, None, None, "", ""))


def _with_rule(meaning: Meaning) -> Meaning:
    rule = _RULES.get(meaning.id)
    return meaning if rule is None else replace(meaning, rule=rule)


def subject(setting: str) -> str:
    """The setting as its users write it."""
    head, _, rest = setting.partition(".")
    names = {
        "env": f"os.environ[{rest!r}]",
        "signal": f"handler of {rest}",
        "native-signal": f"handler of {rest}",
        "module-hooks": f"global {rest}",
    }
    return names.get(head) or (rest if head == "patch" else setting.replace("-", " "))
