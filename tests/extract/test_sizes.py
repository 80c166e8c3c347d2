"""Sizes as people and programs write them, and what is none; one reader for all who ask."""

from __future__ import annotations

import pytest

from torchdoctor.extract.readings.amounts import amounts
from torchdoctor.extract.readings.figures import cell_size, sizes

MIB = 1024.0**2


@pytest.mark.parametrize(
    ("text", "mib"),
    [
        ("22873MiB / 24576MiB", [22873, 24576]),
        ("Swp[|||7.5G/16.0G]", [7680, 16384]),
        ("1,190 MB", [1190]),  # a comma before three digits parts thousands
        ("5,1 Go", [5222.4]),
        ("0,22100MiB,24564MiB", [22100, 24564]),  # CSV without blanks
        ("3.1GB,4.2GB", [3174.4, 4300.8]),
        ("611Mi", [611]),
        ("43.2 \u0413\u0411, 12 \u043c\u0431", [44236.8, 12]),
        ("1\u202f126 Mo", [1126]),
        ("50: 2.60 GB", [2662.4]),
        ("10 GB/s over v1.5G", []),
        ("12 steps in 3 minutes", []),
    ],
)
def test_sizes_of_a_line(text: str, mib: list[float]) -> None:
    found = [figure.value / MIB for figure in sizes(text)]
    assert found == pytest.approx(mib)
    assert [size / MIB for size in amounts(text)] == pytest.approx(mib)


def test_figures_know_their_columns() -> None:
    text = "in use: 5,1 Go of 16 Go"
    assert [text[figure.start : figure.end] for figure in sizes(text)] == ["5,1 Go", "16 Go"]


@pytest.mark.parametrize(
    ("cell", "mib"),
    [("1 126 Mo", 1126), ("12 345 678 MB", 12345678), ("188 Mo", 188), ("3.41 GB", 3491.84)],
)
def test_a_cell_may_part_thousands_by_blanks(cell: str, mib: float) -> None:
    found = cell_size(cell)
    assert found is not None
    assert found / MIB == pytest.approx(mib)


def test_a_cell_without_a_unit_has_no_size() -> None:
    assert cell_size("1 190") is None
