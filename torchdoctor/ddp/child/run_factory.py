"""Calls the factory and examines what it gives. A program of its own, in the target's Python.

``python run_factory.py MODULE:FACTORY LIMIT_S FILE``: FILE gets one JSON object a line. What the target
prints is not protocol. Standard library and the target's torch.
"""

from __future__ import annotations

import os
import sys
import traceback

MYPY = False
if MYPY:
    from typing import Any

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(HERE)), "probes", "child"))
if MYPY:
    from torchdoctor.probes.child.named_factory import Mistake, begin, found, frames_of
else:
    from named_factory import Mistake, begin, found, frames_of
del sys.path[0]
EXPECTED = "(model, inputs, loss_fn), or (model, inputs), or a dict or object with those names"


def parts(value: Any) -> tuple[Any, Any, Any]:
    """Model, inputs and loss function out of what the factory returned."""
    if isinstance(value, dict) and "model" in value and "inputs" in value:
        return value["model"], value["inputs"], value.get("loss_fn")
    if hasattr(value, "model") and hasattr(value, "inputs"):
        return value.model, value.inputs, getattr(value, "loss_fn", None)
    if isinstance(value, (tuple, list)) and len(value) in (2, 3):
        return value[0], value[1], value[2] if len(value) == 3 else None
    what = f"a {type(value).__name__}"
    if isinstance(value, (tuple, list)):
        what += f" of {len(value)}"
    elif isinstance(value, dict):
        what += f" with the keys {', '.join(map(str, list(value)[:8]))}"
    raise Mistake(f"the factory returned {what}; expected {EXPECTED}")


def failure(stage: str, error: BaseException) -> dict[str, Any]:
    frames = [
        {"file": f.filename, "line": f.lineno, "function": f.name, "code": (f.line or "")[:300]}
        for f in frames_of(error, HERE)
    ]
    return {
        "stage": stage,
        "type": type(error).__name__,
        "message": str(error)[:4000],
        "stack": frames[-30:],
        "traceback": "".join(traceback.format_exception(type(error), error, error.__traceback__))[-20000:],
    }


def main() -> None:
    name = sys.argv[1]
    report = begin(*sys.argv[1:4])
    stage = "torch"
    try:
        import torch  # noqa: F401

        stage = "import"
        factory = found(name)
        if not callable(factory):
            kind = type(factory).__name__
            raise Mistake(f"{name} is of type {kind}; expected a function that returns {EXPECTED}")
        stage = "factory"
        model, inputs, loss_fn = parts(factory())
        stage = "examine"
        sys.path.append(HERE)
        import examine  # type: ignore[import-not-found]  # beside this file

        try:
            report.record(seen=examine.examine(model, inputs, loss_fn))
        except examine.Mistake as error:
            report.record(mistake=f"{name}: {error}")
    except Mistake as error:
        report.record(mistake=f"{name}: {error}" if not str(error).startswith(name) else str(error))
    except BaseException as error:
        report.record(error=failure(stage, error))


if __name__ == "__main__":
    main()
    sys.stdout.flush()
    os._exit(0)  # threads and exit handlers of the target must not keep us
