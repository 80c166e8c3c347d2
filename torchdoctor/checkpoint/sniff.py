"""What a file is by its first bytes, when it is no checkpoint: a pointer, a web page, another format."""

from __future__ import annotations

import re
from typing import Final

from torchdoctor.checkpoint import pickle_machine
from torchdoctor.checkpoint.contents import Contents
from torchdoctor.checkpoint.stretch import OpenFile, Stretch
from torchdoctor.model import Fix, counted

# magic bytes at the beginning -> what it is, and how it is read
_MAGIC: Final = (
    (b"GGUF", "a GGUF file of llama.cpp", "Load it with llama.cpp, or transformers' gguf_file=."),
    (b"ggml", "a GGML file of llama.cpp", "Load it with an old llama.cpp, or convert it to GGUF."),
    (b"tjgg", "a GGML file of llama.cpp", "Load it with an old llama.cpp, or convert it to GGUF."),
    (b"\x89HDF\r\n\x1a\n", "an HDF5 file, as Keras writes it", "Load it with Keras or h5py."),
    (b"\x93NUMPY", "an array of NumPy (.npy)", "Load it with numpy.load."),
    (b"\x1f\x8b", "packed with gzip", "Unpack it first: gunzip."),
    (b"BZh", "packed with bzip2", "Unpack it first: bunzip2."),
    (b"\xfd7zXZ\x00", "packed with xz", "Unpack it first: unxz."),
    (b"\x28\xb5\x2f\xfd", "packed with zstd", "Unpack it first: unzstd."),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive", "Unpack it first: 7z x."),
    (b"Rar!", "a RAR archive", "Unpack it first: unrar x."),
    (b"Salted__", "encrypted with openssl", "Decrypt it first: openssl enc -d, with the password."),
    (b"age-encryption.org", "encrypted with age", "Decrypt it first: age -d."),
    (b"-----BEGIN PGP", "encrypted or signed with PGP", "Decrypt it first: gpg -d."),
    (b"\x85\x01\x0c", "encrypted with PGP", "Decrypt it first: gpg -d."),
    (b"\x85\x02\x0c", "encrypted with PGP", "Decrypt it first: gpg -d."),
    (b"\x7fELF", "a program or library (ELF)", "It is code, no weights: take the file of the weights."),
    (b"MZ", "a Windows program", "It is code, no weights: take the file of the weights."),
    (b"%PDF", "a PDF document", "Take the file of the weights."),
    (b"\x89PNG", "a picture (PNG)", "Take the file of the weights."),
    (b"\xff\xd8\xff", "a picture (JPEG)", "Take the file of the weights."),
    (b"\xd0\xcf\x11\xe0", "an Office document", "Take the file of the weights."),
    (b"LLVM", "a TensorFlow or LLVM file", "Load it with the program that wrote it."),
    (b"ftrtengine", "a TensorRT engine", "Load it with TensorRT."),
    (b"ptrt", "a TensorRT engine", "Load it with TensorRT."),
    (b"SQLite format 3", "a database (SQLite)", "Take the file of the weights."),
)  # fmt: skip
_WEB: Final = re.compile(
    rb"\s*(?:<!--.{0,400}?-->\s*)?<(?:!doctype\s+html|html|head|body|title|script)\b",
    re.IGNORECASE | re.DOTALL,
)
_PAGE_TITLE: Final = re.compile(rb"<title[^>]{0,80}>([^<]{1,200})", re.IGNORECASE)
_POINTER: Final = b"version https://git-lfs.github.com/spec/"
_TAKE_WEIGHTS: Final = Fix("Open it as text to read what it says, and fetch the file itself.")


def identify(source: OpenFile, contents: Contents) -> bool:
    """Name a file that is no checkpoint; False when it may be one."""
    head = source.read(0, 4096)
    if not source.size:
        contents.found(
            "checkpoint-empty-file", "the file has 0 bytes",
            fixes=(Fix("Fetch it again, or take the checkpoint before it: what wrote this one ended "
                       "before the first byte."),),
        )  # fmt: skip
        return True
    if not head.strip(b"\0") and _zeros(source):
        contents.found(
            "checkpoint-empty-file", f"all that was looked at of its {counted(source.size, 'byte')} is zero",
            fixes=(Fix("Fetch it again, or take the checkpoint before it: its room was reserved and never "
                       "filled (a download or a "
                       "save that ended, a machine that went down before the data reached the disk)."),),
        )  # fmt: skip
        return True
    if head.startswith(_POINTER) or b"\n" + _POINTER in head[:64]:
        _lfs(head, source.size, contents)
        return True
    body = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if _WEB.match(body) or (body.startswith((b"<?xml", b"<")) and b"</" in head):
        _page(head, contents)
        return True
    for magic, what, do in _MAGIC:
        if head.startswith(magic):
            contents.found("checkpoint-other-format", f"it is {what}", fixes=(Fix(do),))
            return True
    if head[4:8] == b"TFL3":
        contents.found(
            "checkpoint-other-format",
            "it is a TensorFlow Lite model",
            fixes=(Fix("Load it with TensorFlow Lite."),),
        )
        return True
    if b"onnx" in head[:256].lower() and head[:1] == b"\x08":
        contents.found(
            "checkpoint-other-format",
            "it is an ONNX model",
            fixes=(Fix("Load it with onnx or onnxruntime."),),
        )
        return True
    return _words(source, head, contents)


def _lfs(head: bytes, size: int, contents: Contents) -> None:
    wanted = re.search(rb"^size (\d{1,20})\s*$", head, re.MULTILINE)
    oid = re.search(rb"^oid ([a-z0-9]{1,16}:[0-9a-f]{8,128})", head, re.MULTILINE)
    says = [
        "the file is a git-lfs pointer"
        + (f" to {counted(int(wanted[1]), 'byte')}" if wanted else "")
        + f", itself {counted(size, 'byte')}"
    ]
    if oid:
        says.append(oid[1].decode())
    contents.format = "git-lfs pointer"
    contents.found(
        "checkpoint-lfs-pointer", *says,
        fixes=(Fix("Fetch the content that it points to, in the folder of the repository, then check its "
                   "size.",
                   "git lfs install && git lfs pull"),),
    )  # fmt: skip


def _page(head: bytes, contents: Contents) -> None:
    title = _PAGE_TITLE.search(head)
    code = re.search(rb"<Code>([^<]{1,80})</Code>", head)
    says = "the file is a web page" if not code else "the file is the error of a storage service"
    told = title or code
    if told:
        says += f": {told[1].decode('utf-8', 'replace').strip()[:160]}"
    contents.format = "web page"
    contents.found(
        "checkpoint-web-page", says,
        fixes=(Fix("The address gave a page instead of the file: it needs a log-in or a confirmation, is "
                   "over its quota, or is "
                   "that of the page about the file (on a hub: /blob/ instead of /resolve/). Fetch it "
                   "again in the way that the page names."),),
    )  # fmt: skip


def _words(source: OpenFile, head: bytes, contents: Contents) -> bool:
    """A short text, as a server's refusal saved under the file's name; a pickle of protocol 0 is text too."""
    if source.size > 1 << 16:
        return False
    try:
        text = source.read(0, 1 << 16).decode()
    except UnicodeDecodeError:
        return False
    printable = all(char.isprintable() or char in "\r\n\t" for char in text)
    if not printable or (text.rstrip().endswith(".") and not pickle_machine.read(source).fault):
        return False  # the full stop ends a pickle
    contents.format = "text"
    first = next((line.strip() for line in text.splitlines() if line.strip()), "")
    lines = counted(text.count("\n") + 1, "line")
    contents.found(
        "checkpoint-other-format",
        f"it is a text of {lines}, no checkpoint: {first[:160]!r}",
        fixes=(_TAKE_WEIGHTS,),
    )
    return True


def _zeros(source: Stretch) -> bool:
    """Zero at 64 places spread over the file, which is read in part only."""
    step = max(1, source.size // 64)
    return not any(
        source.read(at, 4096).strip(b"\0") for at in range(0, source.size, step)
    ) and not source.read(source.size - 4096 if source.size > 4096 else 0, 4096).strip(b"\0")
