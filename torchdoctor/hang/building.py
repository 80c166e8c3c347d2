"""Builds of extensions and compilations: running, or waited for behind a lock that nobody holds."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from typing import Final

from torchdoctor.hang import procfs, stacks
from torchdoctor.hang.look import Seen
from torchdoctor.hang.wait import Group, Wait, at
from torchdoctor.model import Fix, Standing
from torchdoctor.probes.machine import Command
from torchdoctor.probes.spawn import Running

_COMPILERS: Final = re.compile(
    r"^(?:ninja|nvcc|cicc|ptxas|cc1plus|cc1|c\+\+|g\+\+|gcc|clang(?:\+\+)?|hipcc|as|ld|ld\..*|collect2|nvlink|fatbinary|cudafe\+\+)(?:-\d+)?$"
)
_COMPILING: Final = (
    "torch/_inductor/",
    "torch/_dynamo/",
    "triton/compiler/",
    "triton/backends/",
    "torch/_functorch/_aot_autograd/",
)
_WAITS_FOR_LOCK: Final = (
    ("torch/utils/file_baton.py", "wait"),
    ("filelock/_api.py", "acquire"),
    ("filelock/_unix.py", "_acquire"),
)


def lock(one: Seen, group: Group) -> Iterator[Wait]:
    """A process that waits for the lock of a build: who holds it, and whether that one still builds."""
    main, task = one.main, one.second.main
    in_baton = main is not None and any(main.has(file, function) for file, function in _WAITS_FOR_LOCK)
    in_kernel = task is not None and task.call in ("flock", "fcntl") and task.state in "SD"
    if not in_baton and not in_kernel:
        return
    paths = _locks(one, in_kernel)
    if not _of_a_build(one, paths):
        return
    held = {path: [pid for pid in holders(path) if pid != one.pid] for path in paths}
    working = [(path, pid) for path, pids in held.items() for pid in pids]
    place = f"it stands at {at(main)}" if main is not None else ""
    if working:
        path, pid = working[0]
        compilers = [name for name in _names_below(pid) if _COMPILERS.match(name)]
        doing = f"which runs {', '.join(dict.fromkeys(compilers))}" if compilers else "which runs no compiler"
        rule = "hang-build-running" if compilers else "extension-stale-lock"
        yield Wait(
            rule, one.pid, (f"process {one.pid} waits for {path}, held by process {pid}, "
                            f"{doing}", *filter(None, (place,))),
            main.own if main is not None else None,
            (Fix("Wait for it, or see how far it is.", f"ps -o pid,etime,stat,cmd --ppid {pid}"),),
            Standing.CONFIRMED if compilers else Standing.POSSIBLE,
        )  # fmt: skip
        return
    building = [name for other in group.all for name in _compilers(other, group)]
    if building:
        yield Wait(
            "hang-build-running",
            one.pid,
            (f"process {one.pid} waits for a build: {', '.join(building[:3])} runs", place),
        )
        return
    shown = paths[0] if paths else "a lock file"
    yield Wait(
        "extension-stale-lock", one.pid,
        (f"process {one.pid} waits for {shown}, which no process of this machine "
         "holds", *filter(None, (place,))),
        main.own if main is not None else None,
        (Fix("The build that made it was ended. Make sure that no build runs on another node that shares "
             "the folder, then remove it.",
             f"rm {shown}" if paths and _plain(shown) else "rm ~/.cache/torch_extensions/*/*/lock",
             "loses-work"),),
        Standing.CONFIRMED if paths else Standing.POSSIBLE,
    )  # fmt: skip


def _of_a_build(one: Seen, paths: list[str]) -> bool:
    """Is it the lock of an extension? Others lock files too: downloads, data sets, caches."""
    if one.main is not None and (
        one.main.has("utils/file_baton.py") or one.main.has("utils/cpp_extension.py")
    ):
        return True
    root = one.second.variable("TORCH_EXTENSIONS_DIR")
    return any("/torch_extensions/" in path or (root and path.startswith(root)) for path in paths)


def _plain(path: str) -> bool:
    return re.fullmatch(r"[\w./+-]+", path) is not None


def _locks(one: Seen, in_kernel: bool) -> list[str]:
    """The lock file: of the call, of the frame's variables, or those that lie in the cache of extensions."""
    task = one.second.main
    if in_kernel and task is not None:
        path = procfs.file_of(one.pid, task.argument)
        if path.startswith("/"):
            return [path]
    named = _from_locals(one.pid)
    if named:
        return named
    home = one.second.variable("HOME")
    cache = one.second.variable("XDG_CACHE_HOME") or (f"{home}/.cache" if home else "")
    root = one.second.variable("TORCH_EXTENSIONS_DIR") or (f"{cache}/torch_extensions" if cache else "")
    return sorted(_lock_files(root, 3)) if root.startswith("/") else []


def _lock_files(folder: str, depth: int) -> Iterator[str]:
    try:
        entries = list(os.scandir(folder))[:2000]
    except OSError:
        return
    for entry in entries:
        if entry.name == "lock" and entry.is_file(follow_symlinks=False):
            yield entry.path
        elif depth > 0 and entry.is_dir(follow_symlinks=False):
            yield from _lock_files(entry.path, depth - 1)


def _from_locals(pid: int) -> list[str]:
    """Variables of the waiting frames that name the lock, or the folder in which it lies."""
    spy = stacks.program()
    if not spy:
        return []
    argv = (spy, "dump", "--json", "--nonblocking", "--locals", "--locals", "--pid", str(pid))
    ended = Running(Command("py-spy locals", argv, stacks.LIMIT_S), tail=stacks.MAX_PRINTED).finish()
    try:
        threads = json.loads(ended.stdout)
    except (ValueError, RecursionError):
        return []
    found: list[str] = []
    for thread in threads if isinstance(threads, list) else ():
        for frame in thread.get("frames", ()) if isinstance(thread, dict) else ():
            for local in (frame.get("locals") or ()) if isinstance(frame, dict) else ():
                name, value = str(local.get("name")), str(local.get("repr") or "").strip("'\"")
                if name in (
                    "build_directory",
                    "lock_file_path",
                    "lock_file",
                    "lock_filename",
                ) and value.startswith("/"):
                    path = value if not name.startswith("build") else os.path.join(value, "lock")
                    if os.path.isfile(path):
                        found.append(path)
    return list(dict.fromkeys(found))


def holders(path: str) -> list[int]:
    """Who has it open (FileBaton keeps its descriptor) or locked (/proc/locks)."""
    found = procfs.holders_of(path)
    try:
        inode = os.stat(path).st_ino
        with open("/proc/locks", encoding="ascii", errors="replace") as stream:
            for line in stream.read(1 << 20).splitlines():
                parts = line.replace("->", "").split()
                if (
                    len(parts) > 5
                    and parts[5].rpartition(":")[2] == str(inode)
                    and "->" not in line
                    and parts[4].isdecimal()
                ):
                    found.append(int(parts[4]))
    except OSError:
        pass
    return sorted(set(found))


def _compilers(one: Seen, group: Group) -> list[str]:
    """Compilers and linkers among its descendants."""
    return [
        other.second.name
        for other in group.below(one)
        if _COMPILERS.match(other.second.name) and other.second.state != "Z"
    ]


def _names_below(pid: int) -> list[str]:
    names = []
    for inner in procfs.descendants([pid], 64)[1:]:
        try:
            names.append(procfs.read(inner).name)
        except procfs.Gone:
            continue
    return names


def running(one: Seen, group: Group) -> Iterator[Wait]:
    """It builds an extension itself: ninja or a compiler works under it."""
    main = one.main
    names = _compilers(one, group)
    in_build = main is not None and (main.has("utils/cpp_extension.py") or main.has("command/build_ext.py"))
    if names and (in_build or any(name in ("ninja", "nvcc") for name in names)):
        told = ", ".join(dict.fromkeys(names))
        place = (f"it stands at {at(main)}",) if main is not None else ()
        yield Wait(
            "hang-build-running",
            one.pid,
            (f"process {one.pid} builds an extension: {told} runs under it", *place),
        )


def compiling(one: Seen, group: Group) -> Iterator[Wait]:
    """torch.compile or Triton compiles, in the process or in its workers, and something works."""
    main = one.main
    if main is None or not any(
        part in frame.file.replace("\\", "/") for frame in main.frames for part in _COMPILING
    ):
        return
    # a compiled program runs below a frame of eval_frame.py; that alone is no compilation
    inner = [
        frame for frame in main.frames if any(part in frame.file.replace("\\", "/") for part in _COMPILING)
    ]
    if all(frame.file.endswith(("_dynamo/eval_frame.py", "_dynamo/external_utils.py")) for frame in inner):
        return
    share = one.busy() + sum(other.busy() for other in group.below(one))
    if share < 0.1:
        return
    yield Wait(
        "hang-compile-running", one.pid,
        (f"process {one.pid} compiles: {inner[-1].file.rpartition('/')[2]} in {inner[-1].function}; "
         f"it uses {100 * share:.0f} % of a processor",
         f"it was asked to at {at(main)}"),
        main.own,
    )  # fmt: skip
