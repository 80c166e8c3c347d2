"""Calls the factory, writes names and shapes of its state dict: a program of its own, in the target's Python.

``python call_factory.py MODULE:FACTORY LIMIT_S FILE``: FILE gets one JSON object a line. What the target
prints is not protocol. Standard library and the target's torch; 3.6 syntax.
"""

import importlib
import importlib.util
import json
import os
import sys
import traceback

MYPY = False
if MYPY:
    from typing import Any  # noqa: F401 - in comments, which Python 3.6 reads too

HERE = os.path.dirname(os.path.abspath(__file__))
PID = os.getpid()
REPORT = os.devnull
EXPECTED = "a model (torch.nn.Module), a state dict, or a tuple or dict that begins with one"
CHUNK = 400


class Mistake(Exception):
    """What was named is not a factory, or does not return a model."""


def record(**entry):
    # type: (Any) -> None
    if os.getpid() == PID:  # a forked child of the target is not the target
        with open(REPORT, "a", encoding="ascii") as stream:
            stream.write(json.dumps(entry) + "\n")


def found(name):
    # type: (str) -> Any
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
        sys.path.insert(0, os.getcwd())  # the user named a program that lies there
        try:
            module = importlib.import_module(where)
        except ImportError as error:
            # only when it is the module itself, or a package above it, that is not there
            if error.name and (where + ".").startswith(error.name + "."):
                where = f"{sys.executable}, looked for in {os.getcwd()} too"
                raise Mistake(f"no module named {error.name!r} for {where}") from None
            raise
    value = module  # type: Any
    for part in attribute.split("."):
        if not hasattr(value, part):
            near = [one for one in vars(module) if not one.startswith("_") and callable(getattr(module, one))]
            raise Mistake("{} has no {!r}; it has: {}".format(
                where, attribute, ", ".join(near[:12]) or "no functions"))  # fmt: skip
        value = getattr(value, part)
    return value


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
    import faulthandler

    faulthandler.enable()
    if hasattr(faulthandler, "dump_traceback_later"):
        faulthandler.dump_traceback_later(float(sys.argv[2]), exit=True)
    global REPORT
    name, REPORT = sys.argv[1], sys.argv[3]
    sys.argv = [name.rpartition(":")[0]]  # the target sees no arguments
    sys.stdin = open(os.devnull)  # noqa: SIM115 - it stays open for the target
    record(begun=True)
    try:
        factory = found(name)
        rows = state_of(factory() if callable(factory) and not hasattr(factory, "state_dict") else factory)
        for start in range(0, len(rows), CHUNK):
            record(rows=rows[start : start + CHUNK])
        record(names=len(rows))
    except Mistake as error:
        record(mistake=str(error))
    except BaseException as error:
        words = "".join(traceback.format_exception_only(type(error), error)).strip()
        place = [
            one
            for one in traceback.extract_tb(error.__traceback__)
            if not one.filename.startswith((HERE, "<frozen"))
        ]
        at = [f"{one.filename}:{one.lineno} in {one.name}" for one in place[-3:]]
        record(error=words[:4000], at=at)


if __name__ == "__main__":
    main()
    sys.stdout.flush()
    os._exit(0)  # threads and exit handlers of the target must not keep us
