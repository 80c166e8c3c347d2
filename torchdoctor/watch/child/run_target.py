"""Runs a target and writes down who changes process-wide settings.

A program of its own in the target's Python, called as ``python run_target.py SPEC FILE``: SPEC is a JSON
object (kind, name, args, limit_s), FILE gets one JSON object a line the moment it is known, so that what came
before a crash survives it. Standard library only, syntax of Python 3.6.

kind ``module`` imports a module; ``script`` runs the top level of a file under its own name, not as
``__main__``, so that a main guard holds; ``code`` runs a text; ``main`` and ``main-module`` run a program
with its arguments as ``python FILE`` and ``python -m MODULE`` do.
"""

import contextlib
import importlib.util
import json
import os
import sys
import time
import traceback
import types

MYPY = False
if MYPY:
    from typing import Any

HERE = os.path.dirname(os.path.abspath(__file__))
CODE_FILE = "<-c>"
PID = os.getpid()


def sibling(name: str) -> "Any":
    """A module beside this file, under a name that no program has."""
    spec = importlib.util.spec_from_file_location("_torchdoctor_" + name, os.path.join(HERE, name + ".py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


REPORT = sys.argv[2] if len(sys.argv) > 2 else ""


def record(entry: "dict[str, Any]") -> None:
    if os.getpid() != PID:
        return
    # Opened anew for each line: the program under test may close descriptors that it did not open.
    stream = os.open(REPORT, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(stream, (json.dumps(entry) + "\n").encode("ascii"))
    finally:
        os.close(stream)


def watch_clock(limit_s: float) -> None:
    """Have the Python stack written to stderr on a crash and at the limit, at which the process ends."""
    import faulthandler

    faulthandler.enable()
    if hasattr(faulthandler, "dump_traceback_later"):
        faulthandler.dump_traceback_later(limit_s, exit=True)


def run_target(kind: str, name: str, args: "list[str]", tracer: "Any") -> None:
    import runpy

    if kind == "module":
        search("")
        sys.argv[:] = [name]
        importlib.import_module(name)
    elif kind == "code":
        search("")
        sys.argv[:] = ["-c", *args]
        import linecache

        linecache.cache[CODE_FILE] = (len(name), None, name.splitlines(True), CODE_FILE)
        tracer.trace_file(CODE_FILE)
        main = types.ModuleType("__main__")
        sys.modules["__main__"] = main
        exec(compile(name, CODE_FILE, "exec"), main.__dict__)
    elif kind == "script":
        path = os.path.abspath(name)
        search(os.path.dirname(path))
        sys.argv[:] = [name]
        tracer.trace_file(path)
        run_top_level(path)
    elif kind == "main":
        path = os.path.abspath(name)
        search(os.path.dirname(path))
        sys.argv[:] = [name, *args]
        tracer.trace_file(path)
        runpy.run_path(path, run_name="__main__")
    else:
        search("")
        sys.argv[:] = [name, *args]
        runpy.run_module(name, run_name="__main__", alter_sys=True)


def search(folder: str) -> None:
    """Look for modules in the folder where Python would, instead of in ours; nowhere under -P and -I."""
    if sys.path and os.path.abspath(sys.path[0] or os.curdir) == HERE:
        sys.path[0] = folder


def run_top_level(path: str) -> None:
    name = os.path.splitext(os.path.basename(path))[0]
    module = types.ModuleType(name)
    module.__file__ = path
    if name in sys.modules or not name.isidentifier():
        name = module.__name__ = "_target_" + name
    sys.modules[name] = module
    with open(path, "rb") as stream:
        source = stream.read()
    exec(compile(source, path, "exec"), module.__dict__)


def describe(error: BaseException) -> "dict[str, Any]":
    try:
        text = str(error)
    except Exception:  # a broken __str__ of a foreign exception class
        text = "?"
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename.startswith((HERE, "<frozen")):
        trace = trace.tb_next
    while trace is not None and trace.tb_next is not None and _is_ours(trace):
        trace = trace.tb_next
    lines = traceback.format_exception(type(error), error, trace)
    code = None
    if isinstance(error, SystemExit):
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
    return {
        "ended": "exit" if isinstance(error, SystemExit) else "error",
        "type": type(error).__name__,
        "message": text[:2000],
        "code": code,
        "traceback": "".join(lines)[-12000:],
        "stack": _frames(trace),
        "stdin": asks(error, text),
        "syntax": isinstance(error, SyntaxError),
    }


def asks(error: BaseException, text: str) -> bool:
    """Does it end because it asked a person, and standard input was empty? pdb raises BdbQuit then."""
    if type(error).__name__ == "BdbQuit":
        return True
    last = traceback.extract_tb(error.__traceback__)[-1:]
    asked = "reading a line" in text or (last and os.path.basename(last[0].filename) == "getpass.py")
    return isinstance(error, EOFError) and bool(asked)


def _is_ours(trace: "types.TracebackType") -> bool:
    name = trace.tb_frame.f_code.co_filename
    return (
        name.startswith((HERE, "<frozen"))
        or os.path.basename(name) == "runpy.py"
        or (os.path.basename(os.path.dirname(name)) == "importlib")
    )


def _frames(trace: "types.TracebackType | None") -> "list[dict[str, Any]]":
    return [
        {"file": item.filename, "line": item.lineno, "function": item.name, "code": item.line or ""}
        for item in traceback.extract_tb(trace)
        if not item.filename.startswith("<frozen")
    ][-40:]


def own_stack(tracer: "Any") -> "list[dict[str, Any]]":
    return list(tracer.stack(sys._getframe(), 0))


def note_ends(tracer: "Any") -> None:
    """Note who ends the process past all handlers, or makes another: nothing else would tell."""
    leave = os._exit

    def leaving(status: int) -> None:
        if os.getpid() == PID:
            tracer.tell_held()
            record({"ended": "os._exit", "code": int(status), "stack": own_stack(tracer)})
        leave(status)

    os._exit = leaving  # type: ignore[assignment]
    for name in ("execv", "execve"):  # all others of the family end in one of these
        setattr(os, name, replacing(getattr(os, name), tracer))
    if hasattr(os, "register_at_fork"):  # Python 3.7 and later
        os.register_at_fork(
            before=lambda: record({"fork": own_stack(tracer)}), after_in_child=lambda: sys.settrace(None)
        )


def replacing(execute: "Any", tracer: "Any") -> "Any":
    """``os.execv`` with a note of it, which a later end replaces should it fail."""

    def replaced(path: "Any", *args: "Any") -> "Any":
        if os.getpid() == PID:
            tracer.tell_held()
            record({"ended": "exec", "message": os.fsdecode(path), "stack": own_stack(tracer)})
        return execute(path, *args)

    return replaced


def main() -> None:
    spec = json.loads(sys.argv[1])
    settings, places, patches, tracing = [
        sibling(name) for name in ("settings", "places", "patches", "tracer")
    ]
    leave = os._exit
    watch_clock(float(spec["limit_s"]))
    tracer = tracing.Tracer(settings, places, patches.Patches, record, (HERE,))
    note_ends(tracer)
    record({"stage": "target", "state": "begin"})
    begun = time.time()
    tracer.baseline(True)
    tracer.begin()
    try:
        run_target(spec["kind"], spec["name"], spec["args"], tracer)
        outcome = {"ended": "ok"}  # type: dict[str, Any]
    except BaseException as error:  # SystemExit and KeyboardInterrupt too: they are what the target did
        outcome = describe(error)
    if os.getpid() != PID:
        leave(0)
    outcome["traced"] = tracer.end()
    tracer.last_look(None)
    torch = sys.modules.get("torch")
    outcome["seconds"] = round(time.time() - begun, 3)
    outcome["torch"] = str(getattr(torch, "__version__", "")) or None
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):  # the target may have closed it, or put anything in its place
            stream.flush()
    record(outcome)
    # Not through the interpreter's end: a thread that the target left behind may hold it for ever.
    leave(0)


if __name__ == "__main__":
    main()
