"""The table of names that are gone, and what is said of one."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

import torchdoctor
from torchdoctor import catalog, intake
from torchdoctor.engine import FactBook, diagnose

TABLE = Path(torchdoctor.__file__).parent / "extract" / "renamed.tsv"
ROWS = [line.split("\t") for line in TABLE.read_text(encoding="utf-8").splitlines()[1:]]
# what the tests have installed can be asked itself
HERE = [row[:2] for row in ROWS if row[0].partition(".")[0] in ("torch", "collections", "inspect", "time")]


def exists(name: str) -> bool:
    module, _, attribute = name.rpartition(".")
    module = module or "builtins"
    return find_spec(module) is not None and hasattr(import_module(module), attribute)


def test_the_table_is_sorted_and_names_each_once() -> None:
    names = [name for name, *_ in ROWS]
    assert names == sorted(set(names))


@pytest.mark.parametrize(("name", "instead"), HERE)
def test_a_name_is_gone_and_the_other_is_there(name: str, instead: str) -> None:
    assert not exists(name) or name == "inspect.getargspec"  # Python 3.10 still has it
    assert exists(instead)


@pytest.mark.parametrize(
    ("line", "error", "fixes"),
    [
        (
            "from transformers import AdamW",
            "ImportError: cannot import name 'AdamW' from 'transformers' (/srv/env/transformers/__init__.py)",
            [
                "Write torch.optim.AdamW in place of transformers.AdamW, which transformers 4.50 took out.",
                "pip install 'transformers<4.50'",
            ],
        ),
        (
            "x = np.zeros(3, dtype=np.float)",
            "AttributeError: module 'numpy' has no attribute 'float'.",
            ["Write float in place of numpy.float, which numpy 1.24 took out.", "pip install 'numpy<1.24'"],
        ),
        (
            "from collections import Mapping",
            "ImportError: cannot import name 'Mapping' from 'collections' (/usr/lib/collections/__init__.py)",
            ["Write collections.abc.Mapping in place of collections.Mapping, which Python 3.10 took out."],
        ),
        (
            "from torchvision.models.utils import load_state_dict_from_url",
            "ModuleNotFoundError: No module named 'torchvision.models.utils'",
            ["Write torch.hub in place of torchvision.models.utils, which"],
        ),
        (
            "from distutils.util import strtobool",
            "ModuleNotFoundError: No module named 'distutils'",
            ["Install setuptools into this interpreter, which"],
        ),
    ],
)
def test_what_takes_its_place_is_the_first_fix(line: str, error: str, fixes: list[str]) -> None:
    stack = f'Traceback (most recent call last):\n  File "/srv/own/t.py", line 9, in <module>\n    {line}\n'
    shown = diagnose(intake.read_text(f"{stack}{error}\n"), FactBook(), catalog.load()).diagnoses[0].fixes
    assert shown[0].do.startswith(fixes[0])
    assert [fix.run for fix in shown if (fix.run or "").startswith("pip install '")] == fixes[1:]
