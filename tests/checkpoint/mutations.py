"""Files changed at random places, by a seed: what a fuzzer does to them, and what must hold of the answer."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

from checkpoint import made
from checkpoint.broken import tensors

from torchdoctor.checkpoint import judge
from torchdoctor.checkpoint.inspect import inspect
from torchdoctor.checkpoint.stretch import CheckpointError
from torchdoctor.checkpoint.target import Target

SEEDS = (
    "2.13/state.pt", "2.13/legacy.pt", "1.4/state.pt", "1.4/whole.pt", "2.6/trainer.pt",
        "2.6/state.safetensors", "2.13/kinds.pt",
    "1.13/numpy.pt", "2.13/dcp/.metadata", "2.6/script.pt", "2.13/net.pt", "1.13/kinds.pt",
)  # fmt: skip
_TELLING = (0, 1, 0x7F, 0x80, 0xFF, *b".(}]RbcQXhqtuse\x8a\x85\x93PK")


def originals() -> list[bytes]:
    return [*((made.folder() / name).read_bytes() for name in SEEDS), tensors({"a": [2, 3], "b": [4]})]


def mutations(count: int, seed: int) -> Iterator[bytes]:
    """Bytes flipped, overwritten, cut out, doubled, taken from another file; huge lengths, ends cut off."""
    chance = random.Random(seed)
    files = originals()
    for _ in range(count):
        data = bytearray(chance.choice(files))
        for _ in range(chance.choice((1, 1, 2, 4, 16))):
            at = chance.randrange(len(data)) if data else 0
            kind = chance.randrange(8)
            if kind == 0 and data:
                data[at] ^= 1 << chance.randrange(8)
            elif kind == 1 and data:
                data[at] = chance.choice(_TELLING)
            elif kind == 2:
                del data[at : at + chance.randrange(1, 64)]
            elif kind == 3:
                data[at:at] = data[at : at + chance.randrange(1, 64)]
            elif kind == 4:
                other = chance.choice(files)
                start = chance.randrange(len(other))
                data[at : at + 32] = other[start : start + 32]
            elif kind == 5:
                data[at : at + 4] = chance.choice(
                    (b"\xff\xff\xff\xff", b"\xff\xff\xff\x7f", b"\0\0\0\0", b"\0\0\0\x80")
                )
            elif kind == 6:
                del data[at:]
            elif kind == 7:
                data[at:at] = bytes(chance.choice(_TELLING) for _ in range(chance.randrange(1, 9)))
        yield bytes(data)


def examine(data: bytes, path: Path) -> None:
    """Must not raise, whatever the bytes are."""
    path.write_bytes(data)
    try:
        contents = inspect(str(path), look_at_values=True)
    except CheckpointError as error:
        raise AssertionError(f"a regular file was refused: {error}") from error
    judge.judge(contents, Target((2, 13), "2.13"))
    for one in contents.findings:
        assert one.says
        assert all(isinstance(words, str) and len(words) < 5000 for words in one.says)
