"""The finding about ``weights_only``: what torch refuses in a file, and the line that admits it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from torchdoctor.checkpoint import danger, weights_only
from torchdoctor.checkpoint.contents import Contents, Finding
from torchdoctor.checkpoint.target import Target
from torchdoctor.model import Fix, Severity, counted

_SHOWN: Final = 12
# what BUILD makes of numpy.dtype('f4'): the class that must be admitted too (numpy/dtypes.py)
_DTYPES: Final = {
    "f2": "Float16", "f4": "Float32", "f8": "Float64", "i1": "Int8", "i2": "Int16", "i4": "Int32",
    "i8": "Int64", "u1": "UInt8", "u2": "UInt16", "u4": "UInt32", "u8": "UInt64", "b1": "Bool",
    "c8": "Complex64", "c16": "Complex128", "O8": "Object",
}  # fmt: skip
_OLD_FORMAT: Final = (1, 6)  # the first torch that reads archives


def findings(contents: Contents, target: Target) -> Iterator[Finding]:
    """What this target refuses; for an unknown one, what the newest torch refuses."""
    if contents.format in ("safetensors", "", "pickle") or contents.format.startswith(
        ("git", "web", "text", "zip", "tar ar", "DCP")
    ):
        return
    if target.torch is not None and target.torch < _OLD_FORMAT and contents.format.endswith("archive"):
        yield Finding(
            "checkpoint-newer-format", ("it is a zip archive, which torch reads since 1.6, and this is "
                                        f"torch {target.shown}",),
            file=contents.path,
            fixes=(Fix("Save it again where it can be read: torch.save(state, path, "
                       "_use_new_zipfile_serialization=False)."),),
        )  # fmt: skip
        return
    version = target.torch or weights_only.NEWEST
    whole = _archive_refused(contents, version)
    names = _refused(contents, version)
    codes = weights_only.refused_codes(contents.codes, version)
    if not whole and not names and not codes:
        return
    says = [whole] if whole else []
    if names:
        says.append(
            f"refused: {', '.join(names[:_SHOWN])}"
            + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")
        )
        says.append(_by_version(contents))
    if contents.sources:
        says.append(
            f"{counted(contents.sources, 'class', 'classes')} are saved with their sources, as torch "
            "before 1.6 did: "
            "weights_only refuses such references altogether"
        )
    if codes:
        says.append(
            "its pickle uses instructions that weights_only does not know (0x"
            + ", 0x".join(f"{code:02x}" for code in codes[:8]) + f"): protocol {contents.protocol}, "
                                                                 "torch.save writes 2"
        )  # fmt: skip
    yield Finding(
        "checkpoint-weights-only", tuple(says), _severity(contents, target),
        tuple(_fixes(contents, names, codes, version)),
        missing=() if target.torch else ("which torch will load it: name its interpreter with --python, "
                                         "or its version with --torch",),
        file=contents.path,
    )  # fmt: skip


def _severity(contents: Contents, target: Target) -> Severity:
    """Fatal where it is the default; a TorchScript archive is for torch.jit.load."""
    if contents.format.startswith("TorchScript"):
        return Severity.INFO
    if target.torch is None:
        return Severity.WARNING
    return Severity.FATAL if target.torch >= weights_only.DEFAULT else Severity.INFO


def _archive_refused(contents: Contents, version: tuple[int, int]) -> str:
    if contents.format.startswith("TorchScript") and version >= weights_only.DEFAULT:
        return "it is a TorchScript archive: torch.jit.load reads it, torch.load with weights_only does not"
    if contents.format == "torch tar format" and version >= weights_only.DEFAULT:
        return "it has the format of torch 0.1, which weights_only does not read"
    return ""


def _refused(contents: Contents, version: tuple[int, int]) -> list[str]:
    if contents.format.startswith("TorchScript"):
        return []
    return weights_only.refused(
        [(one.module, one.name) for one in contents.imports], contents.protocol, version
    )


def _by_version(contents: Contents) -> str:
    """How many names each version refuses, versions with the same answer together."""
    groups: list[tuple[list[str], int]] = []
    for version in weights_only.SHOWN:
        number = len(_refused(contents, version))
        shown = ".".join(map(str, version))
        if groups and groups[-1][1] == number:
            groups[-1][0].append(shown)
        else:
            groups.append(([shown], number))
    told = [
        (versions[0] if len(versions) == 1 else f"{versions[0]} to {versions[-1]}")
        + (f" refuses {number}" if number else " reads it")
        for versions, number in groups
    ]
    return f"with weights_only=True torch {'; '.join(told)}"


def _fixes(contents: Contents, names: list[str], codes: list[int], version: tuple[int, int]) -> Iterator[Fix]:
    if contents.format.startswith("TorchScript"):
        yield Fix("Load it with torch.jit.load(path).")
        return
    if any(danger.meaning(*name.rpartition(".")[::2]) for name in names):
        return  # nobody is to be told how to admit those
    admit = add_safe_globals(contents, names, version) if names and not codes and not contents.sources else ""
    if admit:
        yield Fix("Admit these names, if you know them, before torch.load:", admit)
    elif names and version < weights_only.ADMITTING:
        yield Fix(
            "This torch can admit no single name (2.4 and later can): load it there, and save plain tensors.",
            None,
            "changes-environment",
        )
    yield Fix(
        "Only if the file is your own, or from somebody you trust: torch.load(path, weights_only=False). "
        "It runs whatever "
        "the file holds.", None, "runs-code",
    )  # fmt: skip


def add_safe_globals(contents: Contents, names: list[str], version: tuple[int, int]) -> str:
    """The line of Python that admits the names; "" where this torch cannot, or a name is none."""
    if version < weights_only.ADMITTING or not all(
        part.isidentifier() for name in names for part in name.split(".")
    ):
        return ""
    if any(name.partition(".")[0] in weights_only.BLOCKED for name in names):
        return ""
    items = [_item(name, version) for name in names]
    if "numpy.dtype" in names:
        kinds = [_DTYPES[kind] for kind in contents.array_types if kind in _DTYPES]
        items += [f"numpy.dtypes.{kind}DType" for kind in dict.fromkeys(kinds)]
    modules = sorted(
        {name.rpartition(".")[0] for name in names if not name.startswith(("__main__.", "builtins."))} - {""}
    )
    imports = ", ".join(["torch", *(one for one in modules if one != "torch")])
    return f"import {imports}; torch.serialization.add_safe_globals([{', '.join(items)}])"


def _item(name: str, version: tuple[int, int]) -> str:
    """NumPy 2 keeps the old names of numpy.core, but its functions say another module of themselves."""
    if name.startswith(("numpy.core.", "numpy._core.")) and version >= (2, 6):
        return f"({name}, {name!r})"
    return name.removeprefix("__main__.").removeprefix("builtins.")
