"""Frames of exceptions and stacks under a DataLoader."""

from __future__ import annotations

import pytest

from torchdoctor.extract import loader, of_event
from torchdoctor.model import Event, EventKind, FactValue, Frame, Transcript

FETCH = Frame("/e/torch/utils/data/_utils/fetch.py", 54, "fetch", package="torch")
WORKER = Frame("D:\\e\\torch\\utils\\data\\_utils\\worker.py", 309, "_worker_loop", package="torch")


def getitem(code: str) -> Frame:
    return Frame("/home/u/data.py", 20, "__getitem__", code)


def extract(
    frames: tuple[Frame, ...], kind: EventKind = EventKind.EXCEPTION, text: str = ""
) -> dict[str, FactValue]:
    event = Event(0, kind, text, "run.log", 1, 1, frames=frames)
    found = list(of_event("loader", event, Transcript(("run.log",), (event,))))
    assert {fact.name for fact in found} <= set(loader.FACTS)
    return {fact.name.removeprefix("loader."): fact.value for fact in found}


@pytest.mark.parametrize(
    ("code", "claim"),
    [
        ("img, gt = self.pairs[idx]", True),
        ("row = self.df.iloc[index]", True),
        ("x = self.data[self.order[i]]", True),
        ("y = frames[idx // 4]", True),
        ('label = line.split("\\t")[3]', False),
        ("box = boxes[0]", False),
    ],
)
def test_the_sample_index(code: str, claim: bool) -> None:
    assert extract((FETCH, getitem(code)))["by_sample_index"] is claim


def test_a_library_below_getitem_may_raise() -> None:
    below = Frame("/e/pandas/core/indexing.py", 1557, "_validate_integer", package="pandas")
    assert extract((FETCH, getitem("row = self.df.iloc[idx]"), below))["by_sample_index"] is True


def test_own_code_below_getitem_is_another_matter() -> None:
    below = Frame("/home/u/boxes.py", 9, "crop", "return boxes[i]")
    assert extract((FETCH, getitem("return crop(self.items[idx])"), below))["by_sample_index"] is False


def test_worker_and_main_process() -> None:
    assert extract((WORKER, FETCH, getitem("return self.x[i]")))["fetching"] is True
    assert extract((WORKER,))["fetching"] is True
    assert extract((Frame("/home/u/a.py", 1, "main"),))["fetching"] is False


def test_no_frames_no_facts() -> None:
    assert extract(()) == {}


def test_a_forked_child_in_a_lock() -> None:
    child = (Frame("multiprocessing/popen_fork.py", 71, "_launch"), Frame("", None, "__lll_lock_wait"))
    assert extract(child, EventKind.STACK)["child_waits_for_lock"] is True
    parent = (Frame("multiprocessing/popen_fork.py", 27, "poll"),)
    assert "child_waits_for_lock" not in extract(parent, EventKind.STACK)
