"""Statements of ``planted.cases`` that change a setting of the process: each is found, nothing else is.

A line that changes something says so in a comment: ``# <- setting: before -> after, setting: *``; a ``*``
stands for any value. All modules are imported by one child, which puts everything back after each.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from planted_modules import unpacked

from torchdoctor.model import Report, Verdict
from torchdoctor.watch.report import report_of
from torchdoctor.watch.target import Change, Run, Target, run

pytestmark = pytest.mark.skipif(find_spec("torch") is None, reason="torch is what is watched")

PLANTED = unpacked()
FILES = sorted(PLANTED.rglob("*.py"))
MODULES = sorted(path.stem for path in PLANTED.glob("*.py") if path.stem != "__init__")

RESTORE = """
import importlib, os, random, signal, sys, multiprocessing.context
sys.path.insert(0, {folder!r})
import torch, numpy
from torch.nn.modules import module

CLASSES = [torch.nn.Linear, torch.Tensor, torch.utils.data.DataLoader, torch.optim.Adam, torch.nn.LSTM]
MODULES = [torch, torch.nn.functional, torch.nn, torch.hub]
KEPT = [dict(vars(space)) for space in MODULES + CLASSES]
VARIABLES = dict(os.environ)
THREADS, LIMIT = torch.get_num_threads(), sys.getrecursionlimit()

def restore():
    while torch.is_inference_mode_enabled():
        sys.modules["planted.inference"].mode.__exit__(None, None, None)
    if "planted.stack_left_open" in sys.modules:
        sys.modules["planted.stack_left_open"].kept.close()
    torch.set_grad_enabled(True)
    torch.autograd.set_detect_anomaly(False)
    torch.set_default_device(None)
    torch.use_deterministic_algorithms(False)
    torch.backends.cudnn.benchmark = torch.backends.cudnn.deterministic = False
    torch.backends.cudnn.enabled = torch.backends.cudnn.allow_tf32 = True
    torch.set_float32_matmul_precision("highest")
    torch.set_autocast_enabled("cpu", False)
    torch.set_autocast_dtype("cuda", torch.float16)
    torch.set_num_threads(THREADS)
    multiprocessing.context._default_context._actual_context = None
    torch.multiprocessing.set_sharing_strategy("file_descriptor")
    signal.signal(signal.SIGUSR1, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.environ.clear()
    os.environ.update(VARIABLES)
    sys.setrecursionlimit(LIMIT)
    module._global_forward_pre_hooks.clear()
    torch.cuda._initialized = False
    for space, kept in zip(MODULES + CLASSES, KEPT):
        for name in list(vars(space)):
            if name not in kept and space in (torch.Tensor, torch.nn.LSTM):
                delattr(space, name)
            elif name in kept and vars(space)[name] is not kept[name]:
                setattr(space, name, kept[name])
    torch.hub.load = KEPT[3]["load"]
    import ctypes
    for name in (b"NCCL_ALGO", b"CUDA_LAUNCH_BLOCKING"):
        ctypes.CDLL(None).unsetenv(name)

for name in {modules!r}:
    importlib.import_module("planted." + name)
    restore()
"""

Expected = tuple[str, int, str]


def marks(path: Path) -> Iterator[tuple[Expected, str]]:
    """What the comments of a file promise: place and setting, and the values."""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        _, found, promise = line.partition("# <- ")
        for part in promise.split(", ") if found else ():
            setting, _, values = part.partition(": ")
            yield (str(path), number, setting), values


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Run:
    script = tmp_path_factory.mktemp("watched") / "everything.py"
    script.write_text(RESTORE.format(folder=str(PLANTED.parent), modules=MODULES), encoding="utf-8")
    for name in ("CUDA_VISIBLE_DEVICES", "NCCL_DEBUG", "TOKENIZERS_PARALLELISM"):
        os.environ.pop(name, None)
    return run(Target("main", str(script)), sys.executable)


def told(watched: Run, path: Path) -> dict[Expected, Change]:
    found: dict[Expected, Change] = {}
    for change in watched.changes:
        place = change.stack[-1]
        # torch 2.9 and later tell TF32 in a second way
        if place.file == str(path) and not change.setting.startswith("fp32-precision"):
            found.setdefault((place.file, place.line or 0, change.setting), change)
    return found


def value_of(text: str | None) -> str:
    return "not set" if text is None else text


def test_the_child_came_to_its_end(watched: Run) -> None:
    assert (watched.ended, watched.message, watched.output) == ("ok", "", "")
    assert watched.traced


def test_enough_is_planted() -> None:
    assert len([mark for path in FILES for mark in marks(path)]) >= 45
    assert len(FILES) >= 35


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(PLANTED).as_posix())
def test_statements_are_told_and_no_others(watched: Run, path: Path) -> None:
    found = told(watched, path)
    if path.name == "restored.py":
        assert len(found) >= 8
        return
    if path.name == "native.py":
        return
    expected = dict(marks(path))
    assert sorted(found) == sorted(expected)
    for key, values in expected.items():
        if values == "*":
            continue
        for promised, observed in zip(
            values.split(" -> "), (found[key].before, found[key].after), strict=True
        ):
            assert promised in ("*", value_of(observed)), key
        assert found[key].unsure == ()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the environment of the C library is read")
def test_what_native_code_changes_is_told_without_a_line(watched: Run) -> None:
    path = PLANTED / "native.py"
    found = {change.setting: change for change in told(watched, path).values()}
    assert sorted(found) == ["env.CUDA_LAUNCH_BLOCKING", "env.NCCL_ALGO"]
    assert [change.stack[-1].line for change in found.values()] == [None, None]
    (warning,) = (one for one in one_by_one(watched, "native").checks if one.verdict is Verdict.WARN)
    assert any("the line could not be determined" in item.text for item in warning.evidence)


def test_the_statement_is_quoted_whole(watched: Run) -> None:
    change = told(watched, PLANTED / "dtype.py")[str(PLANTED / "dtype.py"), 3, "default-dtype"]
    assert change.stack[-1].code.startswith("torch.set_default_dtype( # <-")
    assert change.stack[-1].code.endswith("torch.float64, )")


def test_the_import_chain_is_told(watched: Run) -> None:
    path = PLANTED / "deep" / "switch.py"
    (change,) = told(watched, path).values()
    chain = [(Path(place.file).name, place.line, place.function) for place in change.stack[1:]]
    assert chain == [
        ("grad_dynamic.py", 3, "<module>"),
        ("inner.py", 3, "<module>"),
        ("switch.py", 6, "off"),
        ("switch.py", 7, "off"),
    ]


def test_what_was_asked_too_early_is_told(watched: Run) -> None:
    path = PLANTED / "visible_late.py"
    change = told(watched, path)[str(path), 7, "visible-devices-late"]
    assert change.asked == "is_available"
    assert [(Path(place.file).name, place.line) for place in change.asked_at[-1:]] == [("visible_late.py", 5)]


def one_by_one(watched: Run, name: str) -> Report:
    """The report on one planted module alone, as if nothing had been put back."""
    path = str(PLANTED / f"{name}.py")
    changes = tuple(change for change in watched.changes if change.stack[-1].file == path)
    return report_of([Run(Target("module", f"planted.{name}"), changes, "ok", torch="2")])


@pytest.mark.parametrize(
    ("name", "ids"),
    [
        ("grad_call", ["grad-mode-disabled"]),
        ("inference", ["inference-mode-enabled", "grad-mode-disabled"]),
        ("anomaly", ["anomaly-mode-enabled"]),
        ("device", ["default-device-changed"]),
        ("deterministic", ["deterministic-mode-changed"]),
        ("cudnn", ["cudnn-deterministic-changed", "cudnn-switched"]),
        ("start_method", ["start-method-set"]),
        ("hooks", ["module-hooks-global"]),
        ("cuda", ["cuda-initialized-at-import"]),
        ("visible_late", ["cuda-visible-set-late"]),
        ("replaced_class", ["torch-patched"] * 3),
        ("deleted", ["torch-patched"]),
        ("patches", ["torch-patched"] * 4),
        ("signals", ["signal-handler-set"] * 2),
        ("threads", ["threads-changed"]),
        ("dtype", []),
        ("silent", []),
        ("restored", []),
        ("seeds", []),
        ("sharing", []),
        ("recursion", []),
    ],
)
def test_what_it_means(watched: Run, name: str, ids: list[str]) -> None:
    checks = one_by_one(watched, name).checks
    assert sorted(one.id for one in checks if one.verdict is Verdict.WARN) == sorted(ids)
    assert not [one for one in checks if one.verdict is Verdict.FAIL]


def test_a_seed_is_a_note(watched: Run) -> None:
    notes = one_by_one(watched, "seeds").notes
    assert len([note for note in notes if re.search(r"seed-set.*seeds\.py:\d+", note)]) == 3
