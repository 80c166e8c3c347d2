"""What ``torch.load(weights_only=True)`` refuses in a file, by the version of torch.

The names that each version admits are those of ``_get_allowed_globals()`` in its
``torch/_weights_only_unpickler.py``, printed by torch 1.13.1, 2.1.2, 2.4.1, 2.5.1, 2.6.0 and 2.13.0. A
version in between is judged by the one before it: it admits that much at least.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

# instructions of a pickle that the restricted reader carries out, the same since torch 2.1
# (_weights_only_unpickler.py, Unpickler.load); torch 1.13 lacks BINFLOAT
_CODES: Final = frozenset(b"cRb\x81aesu(t\x85\x86\x87N\x88\x89)]}\x8fJKMGXUQhjqr\x8a\x80.")
_BINFLOAT: Final = 0x47
# kind of number -> since when its storages and tensors are admitted
_KINDS: Final = (
    "Double|Float|Half|Long|Int|Short|Char|Byte|Bool|BFloat16|ComplexDouble|ComplexFloat|QUInt8|QInt8|QInt32|"
    "QUInt4x2|QUInt2x4"
)
_OF_KIND: Final = re.compile(
    rf"torch\.(?:cuda\.)?(?:{_KINDS})Storage|torch\.(?:cuda\.|sparse\.|cuda\.sparse\.)?"
                         r"(?:Double|Float|Half|Long|Int|Short|Char|Byte|Bool|BFloat16)Tensor")  # fmt: skip
_SINCE: Final = {
    "collections.OrderedDict": (1, 13), "torch.nn.parameter.Parameter": (1, 13),
    "torch.serialization._get_layout": (1, 13), "torch.Size": (1, 13), "torch.Tensor": (1, 13),
    "torch.storage.TypedStorage": (1, 13), "torch.storage.UntypedStorage": (1, 13),
    **dict.fromkeys(
        (f"torch._utils.{name}" for name in (
            "_rebuild_parameter", "_rebuild_tensor", "_rebuild_tensor_v2", "_rebuild_sparse_tensor",
            "_rebuild_meta_tensor_no_storage")), (1, 13)),
    **dict.fromkeys(
        (f"torch.{name}" for name in (
            "complex128", "complex32", "complex64", "float16", "float32", "float64", "int16", "int32",
            "int64", "int8")), (1, 13)),
    "torch._tensor._rebuild_from_type_v2": (2, 1),
    "collections.Counter": (2, 4), "torch.device": (2, 4),
    **dict.fromkeys(
        (f"torch._utils.{name}" for name in (
            "_rebuild_nested_tensor",
                "_rebuild_parameter_with_state", "_rebuild_qtensor", "_rebuild_tensor_v3",
            "_rebuild_wrapper_subclass")), (2, 4)),
    **dict.fromkeys(
        (f"torch.{name}" for name in (
            "bfloat16", "bits16", "bits1x8", "bits2x4", "bits4x2", "bits8", "bool", "float8_e4m3fn",
            "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "per_channel_affine",
            "per_channel_affine_float_qparams", "per_channel_symmetric", "per_tensor_affine",
            "per_tensor_symmetric", "qint32", "qint8", "quint2x4", "quint4x2", "quint8", "uint8")), (2, 4)),
    "_codecs.encode": (2, 5), "builtins.bytearray": (2, 5),
    "torch._utils._rebuild_device_tensor_from_numpy": (2, 5),
    "builtins.complex": (2, 6), "builtins.set": (2, 6),
    "torch._utils._rebuild_device_tensor_from_cpu_tensor": (2, 6),
    "torch.uint16": (2, 6), "torch.uint32": (2, 6), "torch.uint64": (2, 6),
    # between 2.7 and 2.13
    "torch.float4_e2m1fn_x2": (2, 13), "torch.float8_e8m0fnu": (2, 13),
    **dict.fromkeys((f"torch.{sign}int{bits}" for sign in ("", "u") for bits in range(1, 8)), (2, 13)),
}  # fmt: skip
_UNTIL: Final = {"torch._utils._rebuild_sparse_csr_tensor": (1, 13)}  # in torch 1.13 only
BLOCKED: Final = frozenset({"sys", "os", "posix", "nt"})  # 2.5 and later admit nothing of them, ever
FIRST: Final = (1, 13)  # the first torch with weights_only
DEFAULT: Final = (2, 6)  # the first in which it is the default
ADMITTING: Final = (2, 4)  # the first with add_safe_globals
NEWEST: Final = (2, 13)  # the last that was looked at
SHOWN: Final = ((1, 13), (2, 1), (2, 4), (2, 5), (2, 6), NEWEST)


def admitted(path: str, version: tuple[int, int]) -> bool:
    """Does this torch admit an import without being asked to?"""
    if path in _UNTIL:
        return version <= _UNTIL[path]
    since = _SINCE.get(path)
    return version >= since if since is not None else _OF_KIND.fullmatch(path) is not None


def renamed(module: str, name: str, protocol: int, version: tuple[int, int]) -> str:
    """The import as this torch reads it: 2.4 and 2.5 map names of Python 2 in protocol 2, later always."""
    from _compat_pickle import IMPORT_MAPPING, NAME_MAPPING  # the tables of pickle.py

    if version >= (2, 6) or (version >= (2, 4) and protocol == 2):
        if (module, name) in NAME_MAPPING:
            module, name = NAME_MAPPING[module, name]
        elif module in IMPORT_MAPPING:
            module = IMPORT_MAPPING[module]
    return f"{module}.{name}"


def refused(imports: Iterable[tuple[str, str]], protocol: int, version: tuple[int, int]) -> list[str]:
    """The imports that this torch refuses, in the order of the file."""
    paths = (renamed(module, name, protocol, version) for module, name in imports)
    return [path for path in dict.fromkeys(paths) if not admitted(path, version)]


def refused_codes(codes: Iterable[int], version: tuple[int, int]) -> list[int]:
    """Instructions of the pickle that its restricted reader does not know."""
    return sorted(code for code in codes if code not in _CODES or (code == _BINFLOAT and version < (2, 1)))


def versions(text: str) -> tuple[int, int] | None:
    """(2, 6) of "2.6.0+cu124"; None of what is no version."""
    found = re.match(r"(\d{1,3})\.(\d{1,3})", text)
    return (int(found[1]), int(found[2])) if found else None
