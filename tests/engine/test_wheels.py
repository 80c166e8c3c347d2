"""Which torch a command can install under the reader's Python, and where from."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from torchdoctor.catalog import RuleSet
from torchdoctor.engine import FactBook, diagnose, wheels
from torchdoctor.intake import read_text
from torchdoctor.model import Fact

LINUX = {"system": frozenset({"linux"})}
WINDOWS = {"system": frozenset({"windows"})}
PINNED = 'pip install "torch<2.6" "torchvision<0.21"'


def known(**facts: str) -> Callable[[str], Fact]:
    told = {name.replace("_", ".", 1): value for name, value in facts.items()}
    return lambda name: Fact.known(name, told[name], "test") if name in told else Fact.absent(name, "test")


@pytest.mark.parametrize(
    ("command", "python", "seen", "release"),
    [
        (PINNED, "3.12", LINUX, "2.5.1"),
        (PINNED, "", LINUX, "2.5.1"),
        (PINNED, "3.8", LINUX, "2.4.1"),
        # torch 2.5 has wheels for 3.13 on Linux alone, and no torchvision beside them
        (PINNED, "3.13.1", LINUX, None),
        ('pip install "torch<2.6"', "3.13", LINUX, "2.5.1"),
        ('pip install "torch<2.6"', "3.13", WINDOWS, None),
        (PINNED, "3.14", LINUX, None),
        ("pip install torch==2.3.1", "3.13", LINUX, None),
        ("pip install torch==2.3.1", "3.11.4", LINUX, "2.3.1"),
        ("uv venv --python 3.11 && uv pip install torch==2.3.1", "3.14", LINUX, "2.3.1"),
        # older than the table
        ("pip install torch==1.0.1", "3.7", LINUX, ""),
        ("pip install -U torch", "3.14", LINUX, ""),
    ],
)
def test_the_newest_torch_that_a_command_can_install(
    command: str, python: str, seen: dict[str, frozenset[str]], release: str | None
) -> None:
    assert wheels.newest(command, seen, known(python_version=python) if python else known()) == release


@pytest.mark.parametrize(
    ("release", "told", "one"),
    [("2.6.0", "3.9 to 3.13", "3.12"), ("2.6.*", "3.9 to 3.13", "3.12"), ("2.1", "3.8 to 3.11", "3.10")],
)
def test_the_pythons_of_a_release(release: str, told: str, one: str) -> None:
    ask = known(match_want=release, python_version="3.14")
    assert wheels.fact("install.pythons", ask).value == told
    assert wheels.fact("install.python", ask).value == one
    assert wheels.fact("install.fits", ask).value == "no"


@pytest.mark.parametrize("release", ["0.4.1", "nightly", ""])
def test_a_release_that_no_row_has_tells_no_python(release: str) -> None:
    assert wheels.fact("install.pythons", known(match_want=release)).value is None


LOADS = (
    'Traceback (most recent call last):\n  File "{0}segtool{1}load.py", line 7, in restore\n'
    '    torch.load(path)\n  File "{0}torch{1}serialization.py", line 1470, in load\n'
    "    raise pickle.UnpicklingError(_get_wo_message(str(e))) from None\n"
    "_pickle.UnpicklingError: Weights only load failed. (1) In PyTorch 2.6, we changed the default value\n"
)


@pytest.mark.parametrize(
    ("folder", "slash", "index"),
    [
        (
            "C:\\env\\Python311\\Lib\\site-packages\\",
            "\\",
            "--index-url https://download.pytorch.org/whl/cu124",
        ),
        ("/home/u/lib/python3.11/site-packages/", "/", ""),
    ],
)
def test_a_bound_is_asked_of_the_index_of_the_build(
    folder: str, slash: str, index: str, rules: RuleSet
) -> None:
    found = diagnose(read_text(LOADS.format(folder, slash)), FactBook(None), rules).diagnoses[0]
    run = next(fix.run for fix in found.fixes if "below 2.6" in fix.do)
    assert run is not None
    assert run.endswith(index or '"torchaudio<2.6"')


def test_a_bound_that_no_wheel_keeps_gives_way_to_the_update(rules: RuleSet) -> None:
    text = LOADS.format("/home/u/lib/python3.13/site-packages/", "/")
    fixes = diagnose(read_text(text), FactBook(None), rules).diagnoses[0].fixes
    assert fixes[0].run is not None
    assert fixes[0].run.endswith("pip install --upgrade segtool")
    assert not [fix for fix in fixes if "torch<" in (fix.run or "")]
