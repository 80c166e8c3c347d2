"""What importing a program switches for the whole process, and by which line.

    python imported.py TARGET REPORT

TARGET is the name of a module, or a file, which is run under another name than "__main__": what stands under
``if __name__ == "__main__"`` does not run. One JSON line for each call that changed a setting, then all
settings before and after. Standard library and the target's own torch; Python 3.6 or later.
"""

import json
import os
import sys
import traceback

MYPY = False
if MYPY:
    from collections.abc import Callable
    from typing import Any

# setter (path below torch) -> the setting that it switches
SETTERS = {
    "_C._set_grad_enabled": "grad_enabled",
    "_C._set_deterministic_algorithms": "deterministic_algorithms",
    "set_default_dtype": "default_dtype",
    "set_default_tensor_type": "default_dtype",
    "set_default_device": "default_device",
}
FRAMES = 30


def settings(torch: "Any") -> "dict[str, object]":
    """name -> value, of those this torch has."""
    found = {}  # type: dict[str, object]
    readers = {  # type: dict[str, Callable[[], object]]
        "grad_enabled": lambda: torch.is_grad_enabled(),
        "inference_mode": lambda: torch.is_inference_mode_enabled(),
        "default_dtype": lambda: str(torch.get_default_dtype()),
        "default_device": lambda: str(torch.get_default_device()),
        "deterministic_algorithms": lambda: torch.are_deterministic_algorithms_enabled(),
        "anomaly_mode": lambda: torch.is_anomaly_enabled(),
    }
    for name, read in readers.items():
        try:
            found[name] = read()
        except Exception:  # an older torch has no such setting
            continue
    return found


def own_stack() -> "list[dict[str, object]]":
    """Frames of the program, outermost first: neither torch's, nor the import system's, nor ours."""
    found = []  # type: list[dict[str, object]]
    for frame in traceback.extract_stack():
        path = frame.filename.replace("\\", "/")
        if path.startswith("<") or "/torch/" in path or os.path.abspath(frame.filename) == HERE:
            continue
        if path.endswith(("/runpy.py", "/importlib/__init__.py")) or "/importlib/" in path:
            continue
        found.append(
            {
                "file": frame.filename,
                "line": frame.lineno,
                "function": frame.name,
                "code": (frame.line or "")[:300],
            }
        )
    return found[-FRAMES:]


HERE = os.path.abspath(__file__)


class Report:
    """The file of results: one JSON object a line."""

    def __init__(self, path: str) -> None:
        self.stream = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self.pid = os.getpid()

    def write(self, **record: object) -> None:
        if os.getpid() == self.pid:  # a forked child of the target is not the target
            os.write(self.stream, (json.dumps(record) + "\n").encode("ascii"))


def recorder(
    torch: "Any", setter: "Callable[..., Any]", setting: str, report: Report
) -> "Callable[..., Any]":
    """The setter, with a line in the report for each call that changes the setting."""

    def recorded(*args: "Any", **kwargs: "Any") -> "Any":
        was = settings(torch).get(setting)
        answer = setter(*args, **kwargs)
        now = settings(torch).get(setting)
        if was != now:
            report.write(kind="set", setting=setting, was=str(was), to=str(now), stack=own_stack())
        return answer

    return recorded


def watch(torch: "Any", report: Report) -> None:
    """Put a recorder in the place of each setter that this torch has."""
    for path, setting in SETTERS.items():
        owner = torch
        names = path.split(".")
        for folder in names[:-1]:
            owner = getattr(owner, folder)
        setter = getattr(owner, names[-1], None)
        if setter is not None:
            setattr(owner, names[-1], recorder(torch, setter, setting, report))


def run(target: str) -> None:
    """Import the target: a file by its path, else a module by its name."""
    if target.endswith(".py") or os.path.sep in target:
        import runpy

        sys.path.insert(0, os.path.dirname(os.path.abspath(target)))
        runpy.run_path(target, run_name="__torchdoctor_target__")
    else:
        import importlib

        sys.path.insert(0, os.getcwd())
        importlib.import_module(target)


def main() -> None:
    target, path = sys.argv[1], sys.argv[2]
    report = Report(path)
    sys.stdin = open(os.devnull)  # noqa: SIM115 - it stays open for the target
    sys.argv = [target]
    try:
        import torch
    except BaseException as error:
        report.write(kind="no-torch", type=type(error).__name__, message=str(error)[:2000])
        return
    before = settings(torch)
    watch(torch, report)
    report.write(kind="begun")
    try:
        run(target)
    except BaseException as error:
        frames = [
            {"file": f.filename, "line": f.lineno, "function": f.name, "code": (f.line or "")[:300]}
            for f in traceback.extract_tb(error.__traceback__)
            if os.path.abspath(f.filename) != HERE and not f.filename.startswith("<frozen")
        ]
        report.write(
            kind="ended", type=type(error).__name__, message=str(error)[:2000], stack=frames[-FRAMES:]
        )
    report.write(kind="done", before=before, after=settings(torch))


if __name__ == "__main__":
    main()
    # threads and exit handlers of the target must not keep us
    sys.stdout.flush()
    os._exit(0)
