"""Two packages of which one asks for what the other's installed version does not have.

``from B import name``, ``B.name`` and ``import B.part`` name both sides: whose frame asks, and who is asked.
An object or a call does not say whose class it is: there it is the package that the asking one is built on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from torchdoctor.extract import Found, torch_extensions
from torchdoctor.model import Event, EventKind, Transcript
from torchdoctor.patterns import pattern

FACTS: dict[str, str] = {
    "pair.asker": "text: the package whose code asks, by pip's name; absent where it is the user's own",
    "pair.giver": "text: the package that does not have it, by pip's name",
    "pair.heir": "text: the package whose class answers a call of the asker's own in an older form",
    "pair.asked": "text: the name, attribute or argument that is not there",
    "pair.remote": "bool: the code that asks came with a model from the hub",
    "pair.form": "text: import or attribute, which name both sides; object or call, which name one",
}

_IMPORT = (
    r"cannot import name '?(?P<name>[\w.]{1,120})'?(?: from '(?P<module>[\w.]{1,200})')?"
    r"(?: \((?P<path>[^()\n]{1,400})\))?"
)
# transformers and diffusers, whose modules are imported when they are asked for
_WRAPPED = r"Failed to import (?P<package>\w{1,80})\.[\w.]{1,200} because of the following error"
_PART = r"^No module named '?(?P<module>\w+\.[\w.]{1,200})'?"
_MODULE = r"^module '(?P<module>[\w.]{1,200})' has no attribute '(?P<name>\w{1,120})'"
NAMES_BOTH = (_IMPORT, _PART, _MODULE)  # the forms that name the package and what it does not have
_OBJECT = r"^(?:type object )?'(?P<cls>[A-Z]\w{1,120})'(?: object)? has no attribute '(?P<name>\w{1,120})'"
_CALL = (
    r"^(?P<call>[\w.<>]{1,200})\(\) (?:got an unexpected keyword argument '(?P<name>\w{1,120})'"
    r"|missing \d+ required positional|takes \d+ positional)"
)
_ON_SELF = r"\bself\.\w{1,120}\("
_FROM = r"^\s*from ([\w.]{1,200}) import\b"
# classes of torch and NumPy, whose attributes a wrong value lacks and no version
_PLAIN = frozenset({"Tensor", "Parameter", "NoneType", "DataFrame", "Namespace", "Image", "Module"})
# what other rules know more of
_NOT_ASKED = frozenset({"torch", "torchvision", "torchaudio", "torchtext", "triton", "numpy", "PIL"})
# the package that another is built on, and whose releases it follows
_ON_TRANSFORMERS = (
    "peft", "trl", "transformers_modules", "sentence_transformers", "optimum", "unsloth", "unsloth_zoo",
    "llamafactory", "swift", "axolotl", "awq", "auto_gptq", "gptqmodel", "lmdeploy", "vllm", "sglang",
)  # fmt: skip
_UNDER = {
    **dict.fromkeys(_ON_TRANSFORMERS, "transformers"),
    **dict.fromkeys(("mmdet", "mmseg", "mmpose", "mmaction"), "mmcv"),
    "mii": "deepspeed",
    "nerfstudio": "gsplat",
    "megatron": "transformer_engine",
}
# what runs on torch, or is released in step with what does
_FAMILY = frozenset({
    "transformers", "huggingface_hub", "tokenizers", "datasets", "safetensors", "accelerate", "diffusers",
    "deepspeed", "lightning", "pytorch_lightning", "lightning_fabric", "torchmetrics", "timm", "einops",
    "open_clip", "mmengine", "mmcv", "detectron2", "ultralytics", "bitsandbytes", "xformers", "flash_attn",
    "torchao", "torchtune", "torchrl", "tensordict", "torchdata", "monai", "kornia", "fairseq", "fairscale",
    "speechbrain", "sglang", "sgl_kernel", "flashinfer", "gsplat", "basicsr", "evaluate", "controlnet_aux",
    "compressed_tensors", "llmcompressor", "captum", "ignite", "segmentation_models_pytorch", "onnxscript",
    *_UNDER, *_UNDER.values(),
})  # fmt: skip


def extract(event: Event, transcript: Transcript) -> Iterator[Found]:
    """Facts of one exception over what a package does not have; nothing for another event."""
    if event.kind is not EventKind.EXCEPTION:
        return
    asker, code = (event.frames[-1].package, event.frames[-1].code) if event.frames else ("", "")
    kind = (event.type or "").rpartition(".")[2]
    found = _asked(kind, event.text[:1_000], code)
    if found is None or asker in ("python", "torch"):
        return
    form, giver, name = found
    if (wrapped := pattern(_WRAPPED).match(event.text)) is not None:
        asker = wrapped["package"]
    if not any(_of_torch(one) for one in (giver, asker)):
        return
    if form in ("object", "call"):
        giver = _UNDER.get(asker, "")
    elif giver == asker or giver in _NOT_ASKED:
        return
    yield "form", form
    yield "asked", name or None
    yield "remote", asker == "transformers_modules"
    yield "asker", torch_extensions.pip_name(asker) or None
    yield "giver", torch_extensions.pip_name(giver) or None
    heir = _heir(event, asker, code) if form == "call" and not giver else ""
    yield "heir", torch_extensions.pip_name(heir) or None


def _heir(event: Event, asker: str, code: str) -> str:
    """The package that called the asking one, where that calls a method of ``self``: of an heir of its class.

    The base class knows the argument that it passes; what does not is the older method of an heir.
    """
    if pattern(_ON_SELF).search(code) is None:
        return ""
    nobody = ("", "python", "torch", asker)
    return next((one.package for one in reversed(event.frames) if one.package not in nobody), "")


def _asked(kind: str, text: str, code: str) -> tuple[str, str, str] | None:
    """(form, module that is asked, name); None where the message is another."""
    wrapped = kind in ("RuntimeError", "ModuleNotFoundError") and text.startswith("Failed to import ")
    if (kind == "ImportError" or wrapped) and "partially initialized" not in text:
        found = pattern(_IMPORT).search(text)
        return _imported(found, code) if found is not None else None
    for form, of, words in (
        ("import", "ModuleNotFoundError", _PART),
        ("attribute", "AttributeError", _MODULE),
        ("object", "AttributeError", _OBJECT),
        ("call", "TypeError", _CALL),
    ):
        found = pattern(words).search(text) if kind == of else None
        if found is None:
            continue
        parts = found.groupdict()
        module = parts.get("module") or ""
        if parts.get("cls") in _PLAIN:
            return None
        return form, module.partition(".")[0], parts.get("name") or module or parts.get("call") or ""
    return None


def _imported(found: re.Match[str], code: str) -> tuple[str, str, str] | None:
    """A name that an import did not find: in a package's file, not in one of the user's of that name."""
    written = pattern(_FROM).match(code)
    module = found["module"] or (written[1] if written is not None else "")
    path = found["path"] or ""
    if not module or module.startswith(".") or path.startswith("unknown"):
        return None
    first = module.partition(".")[0]
    known = f"-packages/{first}" in path.replace("\\", "/") if path else _of_torch(first)
    return ("import", first, found["name"]) if known else None


def _of_torch(module: str) -> bool:
    return module in _FAMILY or (bool(module) and torch_extensions.is_package(module))
