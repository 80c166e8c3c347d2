"""Calls the factory and examines what it gives. A program of its own, in the target's Python.

``python run_factory.py MODULE:FACTORY LIMIT_S FILE``: FILE gets one JSON object a line. What the target
prints is not protocol. Standard library and the target's torch.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import sys
import traceback

MYPY = False
if MYPY:
    from typing import Any

HERE = os.path.dirname(os.path.abspath(__file__))
PID = os.getpid()
REPORT = os.devnull
EXPECTED = "(model, inputs, loss_fn), or (model, inputs), or a dict or object with those names"


class Mistake(Exception):
    """What was named is not a factory, or does not return what one returns."""


def record(**entry: Any) -> None:
    if os.getpid() == PID:  # a forked child of the target is not the target
        with open(REPORT, "a", encoding="ascii") as stream:
            stream.write(json.dumps(entry) + "\n")


def found(name: str) -> Any:
    """The factory. What its module raises at import comes through."""
    where, _, attribute = name.rpartition(":")
    if where.endswith(".py"):
        if not os.path.isfile(where):
            raise Mistake(f"{where}: no such file")
        sys.path.insert(0, os.path.dirname(os.path.abspath(where)))
        spec = importlib.util.spec_from_file_location(os.path.basename(where)[:-3], where)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
    else:
        sys.path.insert(0, os.getcwd())
        try:
            module = importlib.import_module(where)
        except ModuleNotFoundError as error:
            # only when it is the module itself, or a package above it, that is not there
            if error.name and (where + ".").startswith(error.name + "."):
                raise Mistake(
                    f"no module named {error.name!r} for {sys.executable}, looked for in {os.getcwd()} too"
                ) from None
            raise
    value: Any = module
    for part in attribute.split("."):
        if not hasattr(value, part):
            near = [one for one in vars(module) if not one.startswith("_") and callable(getattr(module, one))]
            raise Mistake(f"{where} has no {attribute!r}; it has: {', '.join(near[:12]) or 'no functions'}")
        value = getattr(value, part)
    if not callable(value):
        raise Mistake(
            f"{name} is of type {type(value).__name__}; expected a function that returns {EXPECTED}"
        )
    return value


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
        for f in traceback.extract_tb(error.__traceback__)
        if not f.filename.startswith((HERE, "<frozen")) and "importlib" not in f.filename
    ]
    return {
        "stage": stage,
        "type": type(error).__name__,
        "message": str(error)[:4000],
        "stack": frames[-30:],
        "traceback": "".join(traceback.format_exception(type(error), error, error.__traceback__))[-20000:],
    }


def main() -> None:
    import faulthandler

    faulthandler.enable()
    if hasattr(faulthandler, "dump_traceback_later"):
        faulthandler.dump_traceback_later(float(sys.argv[2]), exit=True)
    global REPORT
    name, REPORT = sys.argv[1], sys.argv[3]
    sys.argv = [name.rpartition(":")[0]]  # the target sees no arguments
    sys.stdin = open(os.devnull)  # noqa: SIM115 - it stays open for the target
    record(begun=True)
    stage = "torch"
    try:
        import torch  # noqa: F401

        stage = "import"
        factory = found(name)
        stage = "factory"
        model, inputs, loss_fn = parts(factory())
        stage = "examine"
        sys.path.append(HERE)
        import examine  # type: ignore[import-not-found]  # beside this file

        try:
            record(seen=examine.examine(model, inputs, loss_fn))
        except examine.Mistake as error:
            record(mistake=f"{name}: {error}")
    except Mistake as error:
        record(mistake=f"{name}: {error}" if not str(error).startswith(name) else str(error))
    except BaseException as error:
        record(error=failure(stage, error))


if __name__ == "__main__":
    main()
    sys.stdout.flush()
    os._exit(0)  # threads and exit handlers of the target must not keep us
