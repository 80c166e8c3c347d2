"""torch in a listing: beside the script it hides the package, in site-packages it is the package."""

from __future__ import annotations

import pytest

from torchdoctor.extract import of_event, torch_in_folder
from torchdoctor.model import Event, EventKind, FactValue, Transcript

ERROR = "No module named 'torch._custom_ops'"


def listed(*lines: str, error: str = ERROR, name: str = "ModuleNotFoundError") -> FactValue:
    events = [Event(0, EventKind.EXCEPTION, error, "ci.log", 1, 1, type=name)]
    events += [Event(n, EventKind.LOG, line, "ci.log", n + 1, n + 1) for n, line in enumerate(lines, 1)]
    found = list(of_event("listing", events[0], Transcript(("ci.log",), tuple(events))))
    assert {fact.name for fact in found} <= set(torch_in_folder.FACTS)
    return found[0].value if found else None


@pytest.mark.parametrize(
    ("lines", "name"),
    [
        (("+ ls /work/src", "configs  data.py  main.py  torch  tf"), "torch"),
        (("me@box:~/p$ ls -la", "drwxr-xr-x 4 me me 4096 Apr  2 10:01 torch/"), "torch/"),
        (("C:\\p> dir", "02.04.2024  10:01    812 torch.py"), "torch.py"),
        (("$ tree -L 1", ".", "\u251c\u2500\u2500 main.py", "\u2514\u2500\u2500 torch.py"), "torch.py"),
    ],
)
def test_a_listing_that_shows_it(lines: tuple[str, ...], name: str) -> None:
    assert listed(*lines) == name


@pytest.mark.parametrize(
    "lines",
    [
        ("$ ls /opt/venv/lib/python3.11/site-packages", "numpy  torch  torchvision"),
        ("$ ls /opt/conda/lib/python3.11/site-packages/torch", "torch  _C.so"),
        ("$ pip list", "torch    2.3.1"),
        ("$ ls", "torchvision-0.18.1  pytorch  torch-2.3.1.whl  my.torch"),
        ("torch", "$ ls", "main.py"),
    ],
)
def test_others_do_not(lines: tuple[str, ...]) -> None:
    assert listed(*lines) is None


def test_other_errors_are_not_asked_about() -> None:
    shown = ("$ ls", "torch")
    assert listed(*shown, error="No module named 'einops'") is None
    assert listed(*shown, name="RuntimeError") is None
