"""Who changed a process-wide setting: looks after each line of the program's own code.

Runs in the examined interpreter: standard library only, syntax of Python 3.6. Frames of the standard library
and of torch are not traced, so that a change made inside of them is laid at the line that called them.
"""

import os
import sys
import threading

MYPY = False
if MYPY:
    from collections.abc import Callable, Iterable
    from types import FrameType
    from typing import Any

_SKIP, _TRACED, _CUDA, _TORCH, _RANDOM = range(5)
# Functions of torch.cuda after which CUDA_VISIBLE_DEVICES has been read.
_COUNTING = ("is_available", "device_count", "_lazy_init", "init", "current_device")
# Runs of a line, or calls of a function, after which no look is spent on each: a loop of a million rounds
# would take ten seconds more. What it changes then is found a little later, and told with all such lines.
_OFTEN = 500
_LOOKS = 32
_FEW = 5
_TELL = 20  # a loop may go in and out of no_grad() a million times
_UNTOLD = -1


class Tracer:
    """Tells ``record`` of each change: the setting, before, after, and the stack with the statement last.

    ``settings`` and ``places`` are modules, given and not imported: this file also runs by itself.
    ``hidden`` are folders whose frames belong to the examination. Threads that begin while it runs are traced
    too, for settings that are not a thread's own.
    """

    def __init__(
        self,
        settings: "Any",
        places: "Any",
        make_patches: "Any",
        record: "Callable[..., None]",
        hidden: "Any",
    ) -> None:
        self._settings = settings
        self._places = places
        self._make_patches = make_patches
        self._record = record
        self._hidden = tuple(hidden)
        self._files = {}  # type: dict[str, int]
        self._codes = {}  # type: dict[int, Any]
        self._getters = settings.plain_getters()  # type: list[tuple[str, Callable[[], Any]]]
        self._late = list(settings.LATE)  # type: list[str]
        self._reads = [getter for _, getter in self._getters]
        self._hot = self._look()
        self._environment = settings.environment()
        self._variables = dict(self._environment)
        self._modules = 0
        self._patches = None  # type: Any
        self._passed = set()  # type: set[tuple[str, int]]
        self._skipped = {}  # type: dict[tuple[str, int], frozenset[str] | None]
        self._counted = None  # type: dict[str, object] | None
        self._caught = settings.caught_signals()
        self._outside = settings.native_variables()  # type: dict[str, str]
        self._of_torch = settings.torchs_variables()  # type: set[str]
        self._thread = threading.get_ident()
        self._pid = os.getpid()
        self._torch_seen = False
        self._loading = False  # inside of `import torch`: nothing there is the program's doing
        self._library = os.path.dirname(os.path.abspath(os.__file__)) + os.sep
        self._former = None  # type: Any
        self._lock = threading.RLock()
        self._untraced = set()  # type: set[threading.Thread]
        self._told = {}  # type: dict[object, tuple[int, dict[str, object] | None]]
        self._held = {}  # type: dict[str, dict[str, object]]
        if getattr(sys.modules.get("torch"), "get_default_dtype", None) is not None:
            self._torch_ready()
        self._extend()

    def trace_file(self, name: str) -> None:
        """Trace this file though it looks like generated code."""
        self._files[name] = _TRACED

    def baseline(self, fresh: bool) -> None:
        """What is now is no change; in a ``fresh`` process, what is not as by default is one already."""
        if fresh:
            self._compare(None, 0, True, {"early": True})
        else:
            self._hot = self._look()
            self._variables = dict(self._environment)

    def begin(self) -> None:
        """Start tracing in this thread and in those that will begin."""
        self._untraced = set(threading.enumerate()) - {threading.current_thread()}
        self._former = getattr(threading, "gettrace", lambda: None)()
        threading.settrace(self._call)
        sys.settrace(self._call)

    def trace_running(self, frame: "FrameType") -> "Any":
        """A trace function for a frame that already runs."""
        return self._trace(frame)

    def end(self) -> bool:
        """Stop tracing; False when somebody else had put another trace function in our place."""
        kept = sys.gettrace() == self._call
        if kept:
            sys.settrace(None)
        threading.settrace(self._former)
        return kept

    def last_look(self, frame: "FrameType | None") -> None:
        """Compare everything once more; what is new is laid at the given frame, its line not known."""
        self._extend()
        self._compare(frame, _UNTOLD, True)
        self._compare_rest(frame)
        self.tell_held()

    # -- events ----------------------------------------------------------------------------------------

    def _call(self, frame: "FrameType", event: str, arg: object) -> "Any":
        code = frame.f_code
        name = code.co_filename
        kind = self._files.get(name)
        if kind is None:
            kind = self._files[name] = self._kind(frame, name)
        if kind == _SKIP:
            return None
        if self._loading:
            # plug-ins of foreign devices are loaded at the end of torch's import, and may do anything
            if kind == _TORCH and code.co_name == "_import_device_backends":
                self._loaded()
            return None
        if kind == _TRACED:
            return self._trace(frame)
        if kind == _CUDA:
            if self._counted is None and code.co_name in _COUNTING:
                above = self.stack(frame.f_back, 0)
                if above:
                    self._counted = {"function": code.co_name, "stack": above}
        elif kind == _RANDOM:
            generator = getattr(sys.modules.get("random"), "_inst", None)
            if code.co_name == "seed" and generator is not None and frame.f_locals.get("self") is generator:
                seed = frame.f_locals.get("a")
                if seed is not None:  # None asks the system for a seed
                    self._tell(
                        "seed-python", "not seeded", f"seed {self._settings.words(seed)}", frame.f_back, 0
                    )
        elif code.co_name == "<module>" and not self._torch_seen:
            self._loading = True
            return self._torch_body
        return None

    def _kind(self, frame: "FrameType", name: str) -> int:
        if name.startswith("<"):
            return _SKIP
        path = os.path.abspath(name)
        if path.startswith(self._hidden):
            return _SKIP
        if path.startswith(self._library) and "-packages" not in path[len(self._library) :]:
            return _RANDOM if path == self._library + "random.py" else _SKIP
        package, _, rest = str(frame.f_globals.get("__name__", "")).partition(".")
        if package in ("torch", "functorch", "torchgen"):
            if rest == "cuda":
                return _CUDA
            return _TORCH if package == "torch" and not rest else _SKIP
        return _TRACED

    def _torch_body(self, frame: "FrameType", event: str, arg: object) -> "Any":
        """The body of torch/__init__.py: at its end the settings have their defaults."""
        if event == "return" and self._loading:
            self._loaded()
        return self._torch_body

    def _loaded(self) -> None:
        self._loading = False
        try:
            if not self._torch_seen and hasattr(sys.modules.get("torch"), "get_default_dtype"):
                self._torch_ready()
        except Exception as error:
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        """A fault of ours must not become one of the program: it goes on, unwatched."""
        sys.settrace(None)
        place = error.__traceback__
        while place is not None and place.tb_next is not None:
            place = place.tb_next
        line = place.tb_lineno if place is not None else 0
        self._record({"fault": f"{type(error).__name__}: {error} at tracer line {line}"})

    def _torch_ready(self) -> None:
        torch = sys.modules["torch"]
        self._torch_seen = True
        # what torch's own import registers or sets is no change
        self._hot = self._look()
        self._variables = dict(self._environment)
        self._add_getters(self._settings.torch_getters(torch))
        self._patches = self._make_patches(torch)
        self._extend()

    def _add_getters(self, getters: "Iterable[tuple[str, Callable[[], Any]]]") -> None:
        defaults = self._settings.DEFAULTS
        for name, read in getters:
            self._getters.append((name, read))
            self._reads.append(read)
            self._hot.append(
                defaults[name]
                if name in defaults
                else self._settings.first(name, self._settings.answer(read))
            )

    def _trace(self, frame: "FrameType") -> "Any":
        code = frame.f_code
        known = self._codes.get(id(code))
        if known is None:
            known = self._codes[id(code)] = self._places.Code(code)
        top = code.co_name == "<module>"
        known.calls += 1
        above = frame.f_back
        if known.calls <= _OFTEN:
            self._check(self._traced_above(above), 0)
        elif above is not None and self._files.get(above.f_code.co_filename) == _TRACED:
            self._passed.add((above.f_code.co_filename, above.f_lineno))
        last = frame.f_lineno
        setters, runs = known.setters, known.runs

        def local(frame: "FrameType", event: str, arg: object) -> "Any":
            nonlocal last
            try:
                line, times = frame.f_lineno, runs.get(last, 0) + 1
                runs[last] = times
                if times > _OFTEN and (event != "line" or runs.get(line, 0) > _OFTEN):
                    self._passed.add((code.co_filename, last))
                else:
                    self._check(frame, last)
                if last in setters and self._patches is not None:
                    # each time at module level; in a function that may run a million times, ever more rarely
                    if top or times < _LOOKS or not times & (times - 1):
                        self._compare_patches(frame, last, setters[last])
                    else:
                        self._skipped[code.co_filename, last] = setters[last]
                if event == "line":
                    last = line
                elif event == "return" and top:
                    self._compare_rest(frame)
            except RecursionError:
                pass  # the program is about to meet its limit itself; a raise in here would end the tracing
            except Exception as error:
                self._fail(error)
            return local

        return local

    # -- comparisons -----------------------------------------------------------------------------------

    def _look(self) -> "list[Any]":
        try:
            return [read() for read in self._reads]
        except Exception:  # torch refuses to tell TF32 when old and new ways to set it were mixed
            return [self._settings.answer(read) for read in self._reads]

    def _check(self, frame: "FrameType | None", line: int) -> None:
        if len(sys.modules) != self._modules:
            self._extend()
        if self._look() != self._hot or self._environment != self._variables:
            self._compare(frame, line, threading.get_ident() == self._thread)
        if self._passed:
            self._passed.clear()

    def _extend(self) -> None:
        """Modules were imported: there may be more to read."""
        self._modules = len(sys.modules)
        for name in list(self._late):
            module = sys.modules.get(name)
            getters = None
            if module is not None and (self._torch_seen or not name.startswith("torch")):
                getters = self._settings.late_getters(name, module)
            if getters is not None:
                self._late.remove(name)
                self._add_getters(getters)
        if self._patches is not None:
            self._patches.extend()

    def _compare(self, frame: "FrameType | None", line: int, own: bool, more: "Any" = None) -> None:
        with self._lock:
            before, now = self._hot, self._look()
            if not own:
                of_a_thread = self._settings.OF_A_THREAD
                for at, (name, _) in enumerate(self._getters):
                    if name in of_a_thread:
                        now[at] = before[at]
            self._hot = now
            for at, (name, _) in enumerate(self._getters):
                old, new = before[at], now[at]
                if old is new or old == new or self._settings.of_dynamo(name, self._traced_above(frame)):
                    continue
                if name.startswith("signal."):
                    old, new = self._settings.handler(old), self._settings.handler(new)
                elif name == "seed-numpy":
                    if new is None:
                        continue  # it was drawn from
                    old = "not seeded" if old is None else old
                self._tell(name, old, new, frame, line, more)
            if self._environment != self._variables:
                self._compare_variables(frame, line)

    def _compare_variables(self, frame: "FrameType | None", line: int) -> None:
        before, self._variables = self._variables, dict(self._environment)
        for key in sorted(set(before) | set(self._variables)):
            old, new = before.get(key), self._variables.get(key)
            name = self._settings.variable(key) if old != new else None
            if name is None or name in self._of_torch:
                continue
            self._tell("env." + name, old, new, frame, line)
            if name in ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES") and self._counted is not None:
                self._tell("visible-devices-late", old, new, frame, line, {"counted": self._counted})

    def _compare_rest(self, frame: "FrameType | None") -> None:
        """What is too slow to be compared after each line: the line that changed it is not known."""
        self._compare_patches(frame, _UNTOLD, None)
        caught = self._settings.caught_signals()
        for name in self._settings.signal_names(caught & ~self._caught):
            self._tell("native-signal." + name, "default action", "handled by native code", frame, _UNTOLD)
        self._caught = caught
        outside = self._settings.native_variables()
        for name in sorted(set(outside) - set(self._outside)):
            self._tell(
                "env." + name, self._settings.words(os.environ.get(name)), outside[name], frame, _UNTOLD
            )
        self._outside = outside

    def _compare_patches(self, frame: "FrameType | None", line: int, names: "Iterable[str] | None") -> None:
        if self._patches is None:
            return
        for name, old, new, foreign in self._patches.changes(names):
            key = name.rpartition(".")[2]
            here = line if names is None or key in names else _UNTOLD
            # Torch wraps some functions of its own when parts of it are imported; a program that puts one of
            # torch's functions into another's place does so by a statement with that name.
            other = names is not None if new is None else str(getattr(new, "__name__", key)) != key
            if foreign or (here != _UNTOLD and other):
                passed = {place for place, keys in self._skipped.items() if keys is None or key in keys}
                self._tell("patch." + name, old, new, frame, here, {}, passed)
        if names is None:
            self._skipped.clear()

    # -- telling ---------------------------------------------------------------------------------------

    def _tell(
        self,
        name: str,
        old: object,
        new: object,
        frame: "FrameType | None",
        line: int,
        more: "dict[str, object] | None" = None,
        passed: "set[tuple[str, int]] | None" = None,
    ) -> None:
        if os.getpid() != self._pid:
            return  # a forked child goes on with our trace function; its settings are its own
        before = None if old is None else self._settings.words(old)
        after = None if new is None else self._settings.words(new)
        frame = self._traced_above(frame)
        place = (id(frame.f_code), line or frame.f_lineno) if frame is not None else (0, 0)
        key = (name, before, after, place)
        times, change = self._told.get(key, (0, None))
        if change is None or times < _TELL:
            change = {
                "change": name,
                "before": before,
                "after": after,
                "stack": self.stack(frame, line),
                "threads": 1 + len(self._untraced.intersection(threading.enumerate())),
            }
            if frame is not None:
                others = (self._passed if passed is None else passed) - {(frame.f_code.co_filename, place[1])}
                change["unsure"] = [{"file": file, "line": at} for file, at in sorted(others)[:_FEW]]
            change.update(more or {})
        self._told[key] = (times + 1, change)
        if times < _TELL:
            self._held.pop(name, None)
            self._record(change)
        else:
            self._held[name] = change

    def tell_held(self) -> None:
        """Tell how the settings stand that were switched to and fro so often that not all was told."""
        while self._held:
            self._record(self._held.popitem()[1])

    def _traced_above(self, frame: "FrameType | None") -> "FrameType | None":
        while frame is not None and self._files.get(frame.f_code.co_filename) != _TRACED:
            frame = frame.f_back
        return frame

    def stack(self, frame: "FrameType | None", line: int) -> "list[dict[str, object]]":
        """The program's own frames, outermost first. ``line`` is that of the innermost; -1 when not known."""
        frame = self._traced_above(frame)
        found = self._places.stack(frame, line, lambda name: self._files.get(name) == _TRACED)
        return list(found)
