"""Calls the factory, writes names and shapes of its state dict: a program of its own, in the target's Python.

``python call_factory.py MODULE:FACTORY LIMIT_S FILE``: FILE gets one JSON object a line. What the target
prints is not protocol. Standard library and the target's torch; 3.6 syntax.
"""

import os
import sys
import traceback

MYPY = False
if MYPY:
    from typing import Any  # noqa: F401 - in comments, which Python 3.6 reads too

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(HERE)), "probes", "child"))
if MYPY:
    from torchdoctor.probes.child.named_factory import Mistake, begin, found, frames_of
else:
    from named_factory import Mistake, begin, found, frames_of
del sys.path[0]
EXPECTED = "a model (torch.nn.Module), a state dict, or a tuple or dict that begins with one"
CHUNK = 400


def state_of(value):
    # type: (Any) -> Any
    """The state dict of what the factory gave."""
    if isinstance(value, (tuple, list)) and value:
        value = value[0]
    if isinstance(value, dict) and "model" in value:
        value = value["model"]
    if hasattr(value, "state_dict"):
        value = value.state_dict()
    if not hasattr(value, "items"):
        raise Mistake(f"the factory returned a {type(value).__name__}; expected {EXPECTED}")
    rows = []
    for name, tensor in value.items():
        shape = getattr(tensor, "shape", None)
        if isinstance(name, str) and shape is not None:
            rows.append([name, [int(size) for size in shape], str(getattr(tensor, "dtype", ""))])
    if not rows:
        raise Mistake(f"what the factory returned has no tensors; expected {EXPECTED}")
    return rows


def main():
    # type: () -> None
    name = sys.argv[1]
    report = begin(*sys.argv[1:4])
    try:
        factory = found(name)
        rows = state_of(factory() if callable(factory) and not hasattr(factory, "state_dict") else factory)
        for start in range(0, len(rows), CHUNK):
            report.record(rows=rows[start : start + CHUNK])
        report.record(names=len(rows))
    except Mistake as error:
        report.record(mistake=str(error))
    except BaseException as error:
        words = "".join(traceback.format_exception_only(type(error), error)).strip()
        at = [f"{one.filename}:{one.lineno} in {one.name}" for one in frames_of(error, HERE)[-3:]]
        report.record(error=words[:4000], at=at)


if __name__ == "__main__":
    main()
    sys.stdout.flush()
    os._exit(0)  # threads and exit handlers of the target must not keep us
