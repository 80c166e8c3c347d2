"""Tensors and storages as a checkpoint describes them, without the data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from torchdoctor.checkpoint.pickled import Bag, Call, Global, Table
from torchdoctor.checkpoint.stretch import Stretch

# dtype -> bytes an element; names as torch prints them without "torch."
WIDTHS: Final = {
    "float64": 8, "float32": 4, "float16": 2, "bfloat16": 2, "complex128": 16, "complex64": 8, "complex32": 4,
    "int64": 8, "int32": 4, "int16": 2, "int8": 1, "uint8": 1,
        "uint16": 2, "uint32": 4, "uint64": 8, "bool": 1,
    "float8_e4m3fn": 1, "float8_e5m2": 1, "float8_e4m3fnuz": 1, "float8_e5m2fnuz": 1, "float8_e8m0fnu": 1,
    "float4_e2m1fn_x2": 1, "qint8": 1, "quint8": 1, "qint32": 4, "quint4x2": 1, "quint2x4": 1,
}  # fmt: skip

_STORAGES: Final = {
    "Double": "float64", "Float": "float32", "Half": "float16", "BFloat16": "bfloat16", "Long": "int64",
    "Int": "int32", "Short": "int16", "Char": "int8", "Byte": "uint8", "Bool": "bool",
    "ComplexDouble": "complex128", "ComplexFloat": "complex64", "QInt8": "qint8", "QUInt8": "quint8",
    "QInt32": "qint32", "QUInt4x2": "quint4x2", "QUInt2x4": "quint2x4", "Untyped": "uint8",
}  # fmt: skip

MAX_DIMENSIONS: Final = 64
MAX_NESTED: Final = 200


class Storage:
    """The numbers behind one or more tensors: ``count`` elements of ``dtype``, saved on ``device``.

    ``data`` is where they lie; None when the file does not hold them (or not all of them).
    """

    __slots__ = ("count", "data", "device", "dtype", "key")

    def __init__(self, key: str, dtype: str, device: str, count: int) -> None:
        self.key = key
        self.dtype = dtype
        self.device = device
        self.count = count
        self.data: Stretch | None = None

    @property
    def nbytes(self) -> int:
        return self.count * WIDTHS.get(self.dtype, 1)


class Tensor:
    """A view of a storage. ``kind``: tensor, parameter, sparse, quantised, meta or wrapped."""

    __slots__ = ("dtype", "kind", "offset", "shape", "storage", "strides")

    def __init__(
        self,
        storage: Storage | None,
        dtype: str,
        shape: tuple[int, ...],
        offset: int = 0,
        strides: tuple[int, ...] = (),
        kind: str = "tensor",
    ) -> None:
        self.storage = storage
        self.dtype = dtype
        self.shape = shape
        self.offset = offset
        self.strides = strides
        self.kind = kind

    @property
    def count(self) -> int:
        count = 1
        for size in self.shape:
            count *= size
        return count

    @property
    def nbytes(self) -> int:
        return self.count * WIDTHS.get(self.dtype, 1)

    def last(self) -> int:
        """The element of its storage behind its last one; 0 of an empty tensor."""
        if not self.count:
            return 0
        steps = zip(self.shape, self.strides, strict=False)
        return self.offset + sum((size - 1) * step for size, step in steps) + 1


class Workshop:
    """Makes tensors of the calls that torch's pickles hold, and keeps the storages by their keys."""

    def __init__(self) -> None:
        self.storages: dict[str, Storage] = {}
        self.with_sources = 0  # classes that are saved with their sources
        self.array_types: list[str] = []  # what numpy.dtype is called with
        self.nested: list[bytes] = []  # files of torch.save inside of this one, which pickle.dumps makes

    def resolve(self, saved_id: object) -> object:
        """``('storage', type, key, location, count)`` of torch.save, with a view behind it in old files."""
        if isinstance(saved_id, tuple) and len(saved_id) == 4 and _text(saved_id[0]) == "module":
            self.with_sources += 1
            return saved_id[1]  # before torch 1.6: a class of the user's, with its source
        if not isinstance(saved_id, tuple) or len(saved_id) < 5 or _text(saved_id[0]) != "storage":
            return None
        _, kind, key, device, count = saved_id[:5]
        key, device = _text(key), _text(device)
        if not isinstance(kind, Global) or not isinstance(count, int) or not 0 <= count < 1 << 62:
            return None
        if key not in self.storages:
            self.storages[key] = Storage(key, storage_dtype(kind.name), device, count)
        return self.storages[key]

    def rebuild(self, function: object, args: object) -> object:
        """The tensor that a call of torch makes; None for any other call."""
        if not isinstance(function, Global) or not isinstance(args, tuple):
            return None
        if function.module == "torch._utils":
            return _rebuilt(function.name, args)
        if function.module == "torch._tensor" and function.name.startswith("_rebuild_from_type"):
            # (function, type, arguments, state): a tensor with attributes, or of a subclass
            if len(args) >= 3 and isinstance(args[0], Global) and isinstance(args[2], tuple):
                return self.rebuild(args[0], args[2])
            return None
        if (
            function.path == "numpy.dtype"
            and args
            and isinstance(args[0], str)
            and len(self.array_types) < MAX_NESTED
        ):
            self.array_types.append(args[0])
            return None
        if function.path == "torch.storage._load_from_bytes" and args and isinstance(args[0], bytes):
            if len(self.nested) < MAX_NESTED:
                self.nested.append(args[0])
            return None
        if function.path in ("torch.nn.parameter.Parameter", "torch.Tensor") and args:
            return args[0] if isinstance(args[0], Tensor) else None
        return None


def storage_dtype(name: str) -> str:
    """What a class as FloatStorage or FloatTensor holds; its own name when it is none of torch's."""
    return _STORAGES.get(name.removesuffix("Storage").removesuffix("Tensor"), name)


def _rebuilt(name: str, args: tuple[object, ...]) -> Tensor | None:
    if name in ("_rebuild_parameter", "_rebuild_parameter_with_state"):
        return _as(args[0], "parameter") if args else None
    if name in ("_rebuild_tensor", "_rebuild_tensor_v2", "_rebuild_tensor_v3", "_rebuild_qtensor"):
        if len(args) < 4 or not isinstance(args[0], Storage):
            return None
        dtype = args[0].dtype
        if name == "_rebuild_tensor_v3" and len(args) > 6:
            dtype = _dtype(args[6]) or dtype
        return _strided(args[0], dtype, args[1:4], "quantised" if name == "_rebuild_qtensor" else "tensor")
    if name == "_rebuild_meta_tensor_no_storage" and len(args) >= 3:
        shape = _sizes(args[1])
        return None if shape is None else Tensor(None, _dtype(args[0]), shape, kind="meta")
    if name in ("_rebuild_sparse_tensor", "_rebuild_sparse_csr_tensor") and len(args) >= 2:
        return _sparse(args[1])
    if name == "_rebuild_wrapper_subclass" and len(args) >= 3:
        shape = _sizes(args[2])
        return None if shape is None else Tensor(None, _dtype(args[1]), shape, kind="wrapped")
    if name in ("_rebuild_device_tensor_from_cpu_tensor", "_rebuild_nested_tensor"):
        return _as(args[0], "wrapped") if args else None
    return None


def _as(value: object, kind: str) -> Tensor | None:
    if not isinstance(value, Tensor):
        return None
    return Tensor(value.storage, value.dtype, value.shape, value.offset, value.strides, kind)


def _strided(storage: Storage, dtype: str, where: tuple[object, ...], kind: str) -> Tensor | None:
    offset, shape, strides = where[0], _sizes(where[1]), _sizes(where[2])
    if not isinstance(offset, int) or offset < 0 or shape is None or strides is None:
        return None
    return Tensor(storage, dtype, shape, offset, strides, kind)


def _sparse(data: object) -> Tensor | None:
    """(indices, values, size, …): of a sparse tensor the size counts; compressed ones have two indices."""
    if not isinstance(data, tuple):
        return None
    shape = next((found for found in map(_sizes, reversed(data)) if found is not None), None)
    values = [one for one in data if isinstance(one, Tensor)]
    if shape is None or not values:
        return None
    return Tensor(values[-1].storage, values[-1].dtype, shape, kind="sparse")


def _dtype(value: object) -> str:
    return value.name if isinstance(value, Global) and value.module == "torch" else ""


def _text(value: object) -> str:
    if isinstance(value, bytes):
        return value.decode("latin-1")
    return value if isinstance(value, str) else str(value) if isinstance(value, int) else ""


def _sizes(value: object) -> tuple[int, ...] | None:
    if isinstance(value, Call) and isinstance(value.function, Global) and value.function.path == "torch.Size":
        value = value.args[0] if isinstance(value.args, tuple) and value.args else ()
    if not isinstance(value, (tuple, list)) or len(value) > MAX_DIMENSIONS:
        return None
    if not all(type(one) is int and 0 <= one < 1 << 62 for one in value):
        return None
    return tuple(value)


def pairs_of(value: object) -> list[tuple[object, object]] | None:
    """Keys and values of a dictionary, of an OrderedDict or of another class's; None for anything else."""
    if isinstance(value, Table):
        return value.pairs()
    if isinstance(value, Call) and value.table is not None:
        return value.table.pairs()
    if is_ordered(value):
        assert isinstance(value, Call)
        first = value.args[0] if isinstance(value.args, tuple) and value.args else ()
        if isinstance(first, list):  # Python 2 gives the items to the constructor
            return [(one[0], one[1]) for one in first if isinstance(one, (list, tuple)) and len(one) == 2]
        return []
    return None


def is_ordered(value: object) -> bool:
    return (
        isinstance(value, Call)
        and isinstance(value.function, Global)
        and value.function.path
        in ("collections.OrderedDict", "collections.defaultdict", "collections.Counter")
    )


def children(value: object) -> Iterator[tuple[str, object]]:
    """What a value is made of, each with the step that leads to it."""
    pairs = pairs_of(value)
    if pairs is not None:
        for key, item in pairs:
            yield (key if isinstance(key, str) else f"[{key}]" if isinstance(key, int) else "[…]"), item
    if isinstance(value, (list, tuple)):
        for number, item in enumerate(value):
            yield f"[{number}]", item
    elif isinstance(value, Bag):
        for item in value.items:
            yield "{…}", item
    elif isinstance(value, Call):
        if not is_ordered(value):
            yield "(…)", value.args
        if value.state is not None:
            yield ".", value.state
        if value.items is not None:
            yield "[…]", value.items
