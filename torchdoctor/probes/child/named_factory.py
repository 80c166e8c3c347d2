"""What programs share that call ``MODULE:FACTORY`` in the target's Python: start, report, the factory.

It is found beside its program, not in a package. Standard library; 3.6 syntax.
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


class Mistake(Exception):
    """What was named is not a factory, or does not return what one returns."""


class Report:
    """The file that gets one JSON object a line."""

    def __init__(self, path):
        # type: (str) -> None
        self.path = path

    def record(self, **entry):
        # type: (Any) -> None
        if os.getpid() == PID:  # a forked child of the target is not the target
            with open(self.path, "a", encoding="ascii") as stream:
                stream.write(json.dumps(entry) + "\n")


def begin(name, limit_s, path):
    # type: (str, str, str) -> Report
    """Limit the time, take arguments and input from the target, and say that it has begun."""
    import faulthandler

    faulthandler.enable()
    if hasattr(faulthandler, "dump_traceback_later"):
        faulthandler.dump_traceback_later(float(limit_s), exit=True)
    sys.argv = [name.rpartition(":")[0]]
    sys.stdin = open(os.devnull)  # noqa: SIM115 - it stays open for the target
    report = Report(path)
    report.record(begun=True)
    return report


def found(name):
    # type: (str) -> Any
    """What ``MODULE:ATTRIBUTE`` names. What its module raises at import comes through. Raises Mistake."""
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
        except ModuleNotFoundError as error:
            # only when it is the module itself, or a package above it, that is not there
            if error.name and (where + ".").startswith(error.name + "."):
                place = f"{sys.executable}, looked for in {os.getcwd()} too"
                raise Mistake(f"no module named {error.name!r} for {place}") from None
            raise
    value = module  # type: Any
    for part in attribute.split("."):
        if not hasattr(value, part):
            near = [one for one in vars(module) if not one.startswith("_") and callable(getattr(module, one))]
            raise Mistake(f"{where} has no {attribute!r}; it has: {', '.join(near[:12]) or 'no functions'}")
        value = getattr(value, part)
    return value


def frames_of(error, program):
    # type: (BaseException, str) -> Any
    """The frames of an exception, without those of ``program``'s folder, of this file and of the import."""
    left_out = (HERE, program, "<frozen")
    return [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith(left_out) and "importlib" not in frame.filename
    ]
