"""What README.md shows of each command: run for real, written between its marks, compared by a test.

``python docs/tools/shown.py`` runs the examples and writes README.md and the pictures; ``--check NAME…``
runs some of them and says what README.md shows otherwise. Numbers of a machine are not compared.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
COLUMNS = 92
_FOLDER = "/home/user/exp"  # what the folder of an example is called; the real one has as many characters
_SAMPLE = (ROOT / "fixtures/samples/label-out-of-range.log").read_text(encoding="utf-8")

_TRAIN = """\
import torch
from torch import nn

model = nn.Sequential(nn.Flatten(), nn.Linear(3 * 28 * 28, 128), nn.ReLU(), nn.Linear(128, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(100):
    images, labels = torch.randn(32, 3, 32, 32), torch.randint(10, (32,))
    loss = nn.functional.cross_entropy(model(images), labels)
    loss.backward()
    optimizer.step()
"""
_STUCK = """\
import threading
import time

batches, results = threading.Lock(), threading.Lock()


def load():
    with results:
        time.sleep(1)
        with batches:
            pass


threading.Thread(target=load).start()
with batches:
    time.sleep(1)
    with results:
        pass
"""
_MODEL = """\
import torch


def build_model():
    return torch.nn.Linear(4, 2)
"""
_SAVE = """\
import torch
from net import build_model

torch.save(torch.nn.DataParallel(build_model()).state_dict(), "model.pt")
"""


class Example(NamedTuple):
    """One call: what it is given, and which part of the output is shown, from a line to a line."""

    call: str
    files: Mapping[str, str] = MappingProxyType({})
    first: str = ""  # a program that runs before, to its end
    beside: str = ""  # a program that runs beside it; PID in the call is its process
    start: str = ""  # how the first shown line begins
    stop: str = ""  # how the first line that is left out begins


EXAMPLES = {
    "explain": Example("explain train.log", {"train.log": _SAMPLE}),
    "run": Example("run -- python train.py", {"train.py": _TRAIN}, start="RuntimeError", stop="  Why"),
    "check": Example("check", {"torch.py": "", "train.py": _TRAIN}, stop="Notes:"),
    "lint": Example("lint train.py", {"train.py": _TRAIN}),
    "checkpoint": Example(
        "checkpoint model.pt --against net:build_model", {"net.py": _MODEL, "save.py": _SAVE}, first="save.py"
    ),
    "hang": Example("hang PID", {"train.py": _STUCK}, beside="train.py"),
    "selftest": Example("selftest --only gemm-exact --device cpu"),
    "gate": Example("gate --tier passive --gpus 1", stop="! "),
}


def output(example: Example, colour: bool = False) -> tuple[str, str]:
    """The call as it was made, and what it printed, with names that stand for those of this machine."""
    with _folder(example) as folder:
        environment = _environment(colour)
        if example.first:
            subprocess.run([sys.executable, example.first], cwd=folder, env=environment, check=True)
        pid, other = "", None
        if example.beside:
            other = subprocess.Popen([sys.executable, example.beside], cwd=folder, env=environment)
            time.sleep(2.5)
            pid = str(other.pid)
        try:
            words = [pid if word == "PID" else word for word in example.call.split()]
            done = subprocess.run(
                [sys.executable, "-m", "torchdoctor", *words],
                cwd=folder,
                env={**environment, "PYTHONSAFEPATH": "1", "PYTHONPATH": str(ROOT)},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                encoding="utf-8",
                timeout=120,
            )
        finally:
            if other is not None:
                other.kill()
                other.wait()
        text = done.stdout.replace(sys.prefix, f"{_FOLDER}/.venv").replace(folder, _FOLDER)
        text = re.sub(r"(\.venv/bin/python)3(?:\.\d+)?\b", r"\1", text)  # as this one happens to be called
        if pid:
            text = re.sub(rf"\b{pid}\b", "4711", text)
        return example.call.replace("PID", "4711"), text.replace(socket.gethostname(), "node17")


@contextmanager
def _folder(example: Example) -> Iterator[str]:
    folder = tempfile.mkdtemp(prefix="x", dir="/tmp")
    try:
        for name, text in example.files.items():
            Path(folder, name).write_text(text, encoding="utf-8")
        yield folder
    finally:
        shutil.rmtree(folder)


def _environment(colour: bool) -> dict[str, str]:
    """Of this process, without what speaks of its terminal or changes what Python prints."""
    kept = {name: text for name, text in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR")}
    path = os.pathsep.join((os.path.dirname(sys.executable), kept.get("PATH", os.defpath)))
    more = {"FORCE_COLOR": "1"} if colour else {"NO_COLOR": "1"}
    return {**kept, **more, "PATH": path, "COLUMNS": str(COLUMNS), "PYTHONDONTWRITEBYTECODE": "1"}


def shown(example: Example) -> str:
    """The text of an example's block: the call, and the part of its output."""
    call, text = output(example)
    lines = text.rstrip().splitlines()
    start = next((at for at, line in enumerate(lines) if example.start and line.startswith(example.start)), 0)
    ends = (at for at, line in enumerate(lines) if example.stop and line.startswith(example.stop))
    stop = next(ends, len(lines))
    kept = "\n".join(lines[start:stop]).rstrip()
    parts = [f"$ torchdoctor {call}", *(["…"] if start else []), kept, *(["…"] if stop < len(lines) else [])]
    return "\n".join(parts)


def _block(name: str) -> re.Pattern[str]:
    return re.compile(rf"(?<=<!-- shown: {name} -->\n```text\n).*?(?=\n```$)", re.DOTALL | re.MULTILINE)


def alike(one: str, other: str) -> bool:
    """Do two outputs say the same, in whatever lines, and with whatever numbers of time and process?"""

    def words(text: str) -> str:
        return re.sub(r"\d+(?:\.\d+)?", "0", " ".join(text.split()))

    return words(one) == words(other)


def differences(names: list[str]) -> list[str]:
    """What README.md shows otherwise than these examples print now."""
    text = README.read_text(encoding="utf-8")
    found = []
    for name in names:
        there, now = _block(name).search(text), shown(EXAMPLES[name])
        if there is None or not alike(there[0], now):
            found.append(f"{name}: README.md does not show what the command prints now:\n{now}")
    return found


def write() -> None:
    """Run all, and write README.md and the pictures."""
    import picture

    text = README.read_text(encoding="utf-8")
    for name, example in EXAMPLES.items():
        block = _block(name).search(text)
        assert block is not None, f"README.md has no block for {name}"
        now = shown(example)
        if not alike(block[0], now):
            text = text[: block.start()] + now + text[block.end() :]
    README.write_text(text, encoding="utf-8")
    call, coloured = output(EXAMPLES["explain"], colour=True)
    for shade in picture.SHADES:
        place = ROOT / f"docs/pictures/explain-{shade}.svg"
        place.parent.mkdir(exist_ok=True)
        place.write_text(picture.drawn(f"torchdoctor {call}", coloured, shade), encoding="utf-8")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--check"]:
        wrong = differences(sys.argv[2:] or list(EXAMPLES))
        print("\n".join(wrong) or "README.md shows what the commands print")
        sys.exit(bool(wrong))
    write()
