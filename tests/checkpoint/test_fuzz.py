"""A short run of the fuzzer; ``benchmarks/checkpoint_fuzz.py`` makes the long one."""

from __future__ import annotations

from pathlib import Path

from checkpoint.mutations import examine, mutations


def test_no_mutation_makes_it_raise(tmp_path: Path) -> None:
    for data in mutations(1500, seed=2):
        examine(data, tmp_path / "model.pt")


def test_random_instructions(tmp_path: Path) -> None:
    """Pickles of random opcodes: the machine must end each in a value, a fault or a budget."""
    import random

    chance = random.Random(5)
    codes = b"(0123NIJKMLFGSTUVXRQPbcioaselduthjgqrp})]."
    codes += b"\x80\x81\x85\x86\x87\x88\x89\x8a\x8c\x8f\x90\x91\x92\x93\x94"
    for _ in range(1500):
        body = bytes(chance.choice(codes) for _ in range(chance.randrange(1, 200)))
        examine(b"\x80\x02" + body, tmp_path / "model.pkl")
