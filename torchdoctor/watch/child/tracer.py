"""Who changed a process-wide setting: looks after each line of the program's own code.

Runs in the examined interpreter: standard library only, syntax of Python 3.6. Frames of the standard library
and of torch are not traced, so that a change made inside of them is laid at the line that called them.
"""

import linecache
import os
import sys
import threading

MYPY = False
if MYPY:
    from collections.abc import Callable
    from types import CodeType, FrameType
    from typing import Any


_SKIP, _TRACED, _CUDA, _TORCH = range(4)
_WARM, _SEEDS, _PATCH = 1, 2, 4
_WARM_NAMES = frozenset((
    "environ", "putenv", "unsetenv", "setenv", "signal", "faulthandler", "set_start_method",
    "register_module_forward_hook", "register_module_forward_pre_hook", "register_module_backward_hook",
    "register_module_full_backward_hook", "register_module_full_backward_pre_hook",
    "register_module_module_registration_hook", "register_module_parameter_registration_hook",
    "register_module_buffer_registration_hook",
))  # fmt: skip
_SEED_NAMES = frozenset((
    "seed", "setstate", "set_state", "seed_everything", "set_seed", "manual_seed", "random_seed", "seed_all",
    "set_random_seed", "fix_seed",
))  # fmt: skip
_SETTERS = frozenset(("setattr", "patch", "wrap_function_wrapper", "patch_function", "__dict__"))
_COUNTING = ("is_available", "device_count", "_lazy_init", "init", "current_device")
# A method that stores attributes may run a million times; a patch shows at its first runs.
_PATCH_LOOKS = 8
_FRAMES = 40
_ABSENT = object()


def _store_attr() -> int:
    import opcode

    return opcode.opmap["STORE_ATTR"]


class Tracer:
    """Tells ``record`` of each change: the setting, before, after, and the stack with the statement last.

    ``files`` are file names to be traced though they look like generated code; ``hidden`` are folders whose
    frames belong to the examination. One thread only, the one that calls ``begin``.
    """

    def __init__(self, settings: "Any", patches: "Any", record: "Callable[..., None]", hidden: "Any") -> None:
        self._settings = settings
        self._make_patches = patches
        self._record = record
        self._hidden = tuple(hidden)
        self._files = {}  # type: dict[str, int]
        self._gates = {}  # type: dict[int, tuple[CodeType, int, dict[int, int]]]
        self._getters = settings.plain_getters()  # type: list[tuple[str, Callable[[], Any]]]
        self._read = [getter for _, getter in self._getters]
        self._hot = self._look()
        self._warm = settings.warm()  # type: dict[str, object]
        self._seeds = {}  # type: dict[str, object]
        self._patches = None  # type: Patches | None
        self._counted = None  # type: list[dict[str, object]] | None
        self._thread = 0
        self._pid = os.getpid()
        self._op = _store_attr()
        self._torch_seen = False
        self._loading = False  # inside of `import torch`: nothing there is the program's doing
        self._library = os.path.dirname(os.path.abspath(os.__file__)) + os.sep
        if getattr(sys.modules.get("torch"), "_C", None) is not None:
            self._torch_ready()

    def trace_file(self, name: str) -> None:
        self._files[name] = _TRACED

    def begin(self) -> None:
        self._thread = threading.get_ident()
        self._seeds = self._settings.seeds()
        sys.settrace(self._call)

    def trace_running(self, frame: "FrameType") -> "Any":
        """A trace function for a frame that already runs."""
        return self._trace(frame)

    def end(self) -> None:
        sys.settrace(None)

    def last_look(self, frame: "FrameType | None") -> None:
        """Compare everything once more; what is new is laid at the given frame."""
        self._compare_hot(frame, 0)
        self._compare_warm(frame, 0)
        self._compare_patches(frame, 0)

    # -- events ----------------------------------------------------------------------------------------

    def _call(self, frame: "FrameType", event: str, arg: object) -> "Any":
        if self._loading:
            return None
        name = frame.f_code.co_filename
        kind = self._files.get(name)
        if kind is None:
            kind = self._files[name] = self._kind(frame, name)
        if kind == _SKIP:
            return None
        if kind == _TRACED:
            return self._trace(frame)
        if kind == _CUDA:
            if self._counted is None and frame.f_code.co_name in _COUNTING:
                self._counted = self.stack(frame.f_back, 0)
            return None
        if frame.f_code.co_name != "<module>" or self._torch_seen:
            return None
        self._loading = True
        frame.f_trace_lines = False
        return self._torch_body

    def _kind(self, frame: "FrameType", name: str) -> int:
        if name.startswith("<"):
            return _SKIP
        path = os.path.abspath(name)
        if path.startswith(self._hidden):
            return _SKIP
        if path.startswith(self._library) and "-packages" not in path[len(self._library) :]:
            return _SKIP
        package, _, rest = str(frame.f_globals.get("__name__", "")).partition(".")
        if package in ("torch", "functorch", "torchgen"):
            if rest == "cuda":
                return _CUDA
            return _TORCH if package == "torch" and not rest else _SKIP
        return _TRACED

    def _torch_body(self, frame: "FrameType", event: str, arg: object) -> "Any":
        """The body of torch/__init__.py: at its end the settings have their defaults."""
        if event == "return":
            self._loading = False
            if not self._torch_seen and hasattr(sys.modules.get("torch"), "get_default_dtype"):
                self._torch_ready()
        return self._torch_body

    def _torch_ready(self) -> None:
        torch = sys.modules["torch"]
        self._torch_seen = True
        self._getters = self._settings.plain_getters() + self._settings.torch_getters(torch)
        self._read = [getter for _, getter in self._getters]
        self._hot = self._look()
        now = self._settings.warm()  # what torch's own import registers is no change
        self._warm = {key: self._warm.get(key, value) for key, value in now.items()}
        self._patches = self._make_patches(torch)

    def _trace(self, frame: "FrameType") -> "Any":
        if threading.get_ident() != self._thread:
            return None
        code = frame.f_code
        gate = self._gates.get(id(code))
        if gate is None:
            gate = self._gates[id(code)] = (code, self._classify(code), {})
        flags, looks = gate[1], gate[2]
        top = code.co_name == "<module>"
        above = self._traced_above(frame.f_back)
        self._compare_hot(above, 0)
        if flags & _WARM:
            self._compare_warm(above, 0)
        if flags & _SEEDS:
            self._compare_seeds(above, 0)
        last = frame.f_lineno
        read_all = self._look

        def local(frame: "FrameType", event: str, arg: object) -> "Any":
            nonlocal last
            if read_all() != self._hot:
                self._compare_hot(frame, last)
            if flags:
                if flags & _WARM:
                    self._compare_warm(frame, last)
                if flags & _SEEDS:
                    self._compare_seeds(frame, last)
                if flags & _PATCH and (top or looks.get(last, 0) < _PATCH_LOOKS):
                    looks[last] = looks.get(last, 0) + 1
                    self._compare_patches(frame, last)
            if event == "line":
                last = frame.f_lineno
            elif event == "return" and top:
                self._compare_patches(frame, -1)
            return local

        return local

    def _classify(self, code: "CodeType") -> int:
        names = frozenset(code.co_names)
        top = code.co_name == "<module>"
        flags = _WARM if top or names & _WARM_NAMES else 0
        if names & _SEED_NAMES:
            flags |= _SEEDS
        stores = self._op in code.co_code[::2]
        if names & _SETTERS or (stores and (top or self._patches is None or names & self._patches.names)):
            flags |= _PATCH
        return flags

    # -- comparisons -----------------------------------------------------------------------------------

    def _look(self) -> "list[object]":
        try:
            return [read() for read in self._read]
        except Exception:  # torch refuses to tell TF32 when old and new ways to set it were mixed
            return [_or_refusal(read) for read in self._read]

    def _compare_hot(self, frame: "FrameType | None", line: int) -> None:
        now = self._look()
        if now == self._hot:
            return
        before, self._hot = self._hot, now
        for (name, _), old, new in zip(self._getters, before, now):
            if old != new:
                self._tell(name, old, new, frame, line)

    def _compare_warm(self, frame: "FrameType | None", line: int) -> None:
        now = self._settings.warm()
        if now == self._warm:
            return
        before, self._warm = self._warm, now
        for name in sorted(set(before) | set(now)):
            old, new = before.get(name, _ABSENT), now.get(name, _ABSENT)
            if old is new or old == new:
                continue
            if old is _ABSENT and not name.startswith("env."):
                continue  # its module was only now imported
            self._tell(name, None if old is _ABSENT else old, None if new is _ABSENT else new, frame, line)
            if name in ("env.CUDA_VISIBLE_DEVICES", "env.HIP_VISIBLE_DEVICES") and self._late():
                self._tell("visible-devices-late", old, new, frame, line, {"counted": self._counted})

    def _late(self) -> bool:
        return self._counted is not None

    def _compare_seeds(self, frame: "FrameType | None", line: int) -> None:
        now = self._settings.seeds()
        before, self._seeds = self._seeds, now
        for name in sorted(now):
            # a draw moves the generator too; only seeding sets it to its start
            if name in before and before[name] != now[name] and now[name][1]:
                self._tell(name, "unseeded", "seeded", frame, line)

    def _compare_patches(self, frame: "FrameType | None", line: int) -> None:
        if self._patches is None:
            return
        for name, old, new in self._patches.changes():
            self._tell("patch." + name, old, new, frame, line)

    # -- telling ---------------------------------------------------------------------------------------

    def _tell(
        self, name: str, old: object, new: object, frame: "FrameType | None", line: int, more: "Any" = None
    ) -> None:
        if os.getpid() != self._pid:
            return  # a forked child goes on with our trace function; its settings are its own
        change = {
            "change": name,
            "before": None if old is None or old is _ABSENT else self._settings.words(old),
            "after": None if new is None or new is _ABSENT else self._settings.words(new),
            "stack": self.stack(frame, line),
        }
        change.update(more or {})
        self._record(change)

    def _traced_above(self, frame: "FrameType | None") -> "FrameType | None":
        while frame is not None and self._files.get(frame.f_code.co_filename) != _TRACED:
            frame = frame.f_back
        return frame

    def stack(self, frame: "FrameType | None", line: int) -> "list[dict[str, object]]":
        """The program's own frames, outermost first. ``line`` is that of the innermost; -1 when not known."""
        found = []
        innermost = True
        while frame is not None and len(found) < _FRAMES:
            name = frame.f_code.co_filename
            if self._files.get(name) == _TRACED:
                number = line if innermost and line else frame.f_lineno
                text = linecache.getline(name, number, frame.f_globals).strip() if number > 0 else ""
                if innermost and text:
                    text = statement(name, number) or text
                found.append(
                    {
                        "file": name,
                        "line": number if number > 0 else None,
                        "function": frame.f_code.co_name,
                        "code": text[:300],
                        "module": str(frame.f_globals.get("__name__", "")),
                    }
                )
                innermost = False
            frame = frame.f_back
        return found[::-1]


def _or_refusal(read: "Callable[[], Any]") -> object:
    try:
        return read()
    except Exception as error:
        return f"refused: {type(error).__name__}"


def statement(name: str, line: int) -> str:
    """The whole statement at a line, on one line; empty when the file is no Python of this version."""
    import ast

    lines = linecache.getlines(name)
    try:
        tree = ast.parse("".join(lines))
    except (SyntaxError, ValueError, RecursionError):
        return ""
    best = None
    for node in ast.walk(tree):
        end = getattr(node, "end_lineno", None)  # Python 3.8 and later
        if not isinstance(node, ast.stmt) or end is None or not node.lineno <= line <= end:
            continue
        if getattr(node, "body", None) is None and (best is None or node.lineno >= best[0]):
            best = (node.lineno, end)
    if best is None:
        return ""
    return " ".join(" ".join(part.strip() for part in lines[best[0] - 1 : best[1]]).split())
