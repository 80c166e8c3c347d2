"""What a live machine does to answer. Every function takes one text and gives JSON, or raises OSError."""

from __future__ import annotations

import errno
import os
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from torchdoctor.model import Reason
from torchdoctor.probes.machine import TEXT_LIMIT, Json, Missing, Unreadable

if TYPE_CHECKING:
    from collections.abc import Callable

UNLIMITED = 2**63 - 1


def look(operation: str, subject: str) -> Json:
    """The answer. Raises Missing or Unreadable."""
    try:
        return OPERATIONS[operation](subject)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise Missing(subject) from error
    except PermissionError as error:
        raise Unreadable(subject, Reason.NOT_PERMITTED, error.strerror or "") from error
    except OSError as error:
        if error.errno in (errno.ENODEV, errno.ENXIO, errno.ELOOP):
            raise Missing(subject) from error
        raise Unreadable(subject, Reason.CRASHED, error.strerror or str(error)) from error
    except ValueError as error:  # a NUL in a path, a number that is none
        raise Unreadable(subject, Reason.UNPARSABLE, str(error)) from error


def _file(path: str) -> Json:
    with open(path, "rb", buffering=0) as stream:
        return stream.read(TEXT_LIMIT).decode("utf-8", "replace")


def _head(path: str) -> Json:
    """The first page: enough of /proc/cpuinfo, which repeats itself for every processor."""
    with open(path, "rb", buffering=0) as stream:
        return stream.read(4096).decode("utf-8", "replace")


def _headers(path: str) -> Json:
    """A file of headers and text, up to the empty line between them."""
    text = str(_file(path)).replace("\r\n", "\n")
    return text.partition("\n\n")[0]


def _mounts(path: str) -> Json:
    """Mounts of /proc/self/mountinfo: [place, root, type, options, controllers of a cgroup mount].

    What is mounted there is left out: for network disks it names servers and users.
    """
    found: list[Json] = []
    for line in str(_file(path)).splitlines():
        fields, _, rest = line.partition(" - ")
        parts, kinds = fields.split(), rest.split()
        if len(parts) < 6 or not kinds:
            continue
        controllers = kinds[-1] if kinds[0] == "cgroup" else ""
        found.append([_unescaped(parts[4]), _unescaped(parts[3]), kinds[0], parts[5], controllers])
    return found


def _unescaped(text: str) -> str:
    """A path of mountinfo, where blanks stand as \\040."""
    import re

    return re.sub(r"\\(\d{3})", lambda match: chr(int(match[1], 8)), text)


def _folder(question: str) -> Json:
    folder, _, patterns = question.partition("?")
    likes = patterns.split("|") if patterns else None
    names = os.listdir(folder)
    return [name for name in sorted(names) if likes is None or any(fnmatchcase(name, like) for like in likes)]


def _status(path: str) -> Json:
    found = os.stat(path)
    folder = (found.st_mode & 0o170000) == 0o040000
    mode = found.st_mode & 0o7777
    return {"folder": folder, "size": found.st_size, "modified": found.st_mtime, "mode": mode}


def _real(path: str) -> Json:
    os.stat(path)
    return os.path.realpath(path)


def _access(question: str) -> Json:
    how, _, path = question.partition(":")
    os.stat(path)
    letters = {"r": os.R_OK, "w": os.W_OK, "x": os.X_OK}
    return os.access(path, sum(letters[letter] for letter in how))


def _space(path: str) -> Json:
    if not hasattr(os, "statvfs"):
        import shutil

        usage = shutil.disk_usage(path)
        return {"total": usage.total, "free": usage.free, "used": usage.used}
    found = os.statvfs(path)
    unit = found.f_frsize
    used = (found.f_blocks - found.f_bfree) * unit
    return {"total": found.f_blocks * unit, "free": found.f_bavail * unit, "used": used}


def _variable(name: str) -> Json:
    return os.environ.get(name)


def _value(name: str) -> Json:
    if name.startswith("limit:"):
        return _limit(name[len("limit:") :])
    return VALUES[name]()


def _limit(name: str) -> Json:
    try:
        import resource
    except ImportError as error:
        raise FileNotFoundError(errno.ENOENT, "no resource limits on this system") from error
    return [
        UNLIMITED if bound in (resource.RLIM_INFINITY, -1) else bound
        for bound in resource.getrlimit(getattr(resource, name))
    ]


def _system() -> Json:
    import sys

    if sys.platform == "win32":
        machine = os.environ.get("PROCESSOR_ARCHITECTURE", "").lower().replace("amd64", "x86_64")
        return ["windows", "", machine, os.environ.get("COMPUTERNAME", "")]
    found = os.uname()
    return [found.sysname.lower().replace("darwin", "macos"), found.release, found.machine, found.nodename]


def _affinity() -> Json:
    if not hasattr(os, "sched_getaffinity"):
        raise FileNotFoundError(errno.ENOENT, "no affinity on this system")
    return len(os.sched_getaffinity(0))


def _glibc() -> Json:
    try:
        return os.confstr("CS_GNU_LIBC_VERSION")
    except (AttributeError, ValueError) as error:
        raise FileNotFoundError(errno.ENOENT, "no GNU C library") from error


def _now() -> Json:
    import time

    return time.time()


def _user() -> Json:
    """Number of the user, and a name when one is set: nobody is looked up."""
    number = os.geteuid() if hasattr(os, "geteuid") else -1
    return [number, os.environ.get("USER") or os.environ.get("LOGNAME") or os.environ.get("USERNAME") or ""]


def _named() -> Json:
    """Does getpass.getuser() find a name?"""
    if _user()[1] or os.environ.get("LNAME"):  # type: ignore[index]
        return True
    try:
        import pwd
    except ImportError:
        return False
    try:
        return bool(pwd.getpwuid(os.getuid()))
    except KeyError:
        return False


VALUES: dict[str, Callable[[], Json]] = {
    "system": _system,
    "cpus": os.cpu_count,
    "affinity": _affinity,
    "glibc": _glibc,
    "now": _now,
    "user": _user,
    "user named": _named,
    "home": lambda: os.path.expanduser("~"),
    "folder": os.getcwd,
    "temporary": lambda: os.environ.get("TMPDIR") or os.environ.get("TEMP") or "/tmp",
}


def _dynamic(path: str) -> Json:
    from torchdoctor.probes.elf import dynamic_section

    return dynamic_section(path)


def _marks(question: str) -> Json:
    import re

    prefix, _, path = question.partition(":")
    size = os.stat(path).st_size
    if size > 64 * 1024 * 1024:
        raise ValueError(f"{size} bytes are too many to search")
    with open(path, "rb") as stream:
        found = set(re.findall(re.escape(prefix).encode() + rb"(\d+(?:\.\d+){0,3})\0", stream.read()))
    return [
        *sorted((mark.decode() for mark in found), key=lambda mark: [int(part) for part in mark.split(".")])
    ]


def _holders(path: str) -> Json:
    """Who has the file open, from /proc/PID/fd; processes of other users are closed to all but root."""
    wanted = os.path.realpath(path)
    target = os.stat(wanted)
    pids: list[Json] = []
    complete = True
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            numbers = os.listdir(f"/proc/{entry}/fd")
        except FileNotFoundError:
            continue  # ended while we looked
        except OSError:
            complete = False
            continue
        for number in numbers:
            try:
                # by device and inode: the path may be named differently there (bind mounts, links)
                held = os.stat(f"/proc/{entry}/fd/{number}")
            except OSError:
                continue
            if (held.st_dev, held.st_ino) == (target.st_dev, target.st_ino):
                pids.append(int(entry))
                break
    return {"pids": pids, "complete": complete}


def _processes(names: str) -> Json:
    """Numbers of the processes whose short name (15 characters) is one of those given, split by commas."""
    wanted = {name[:15] for name in names.split(",")}
    found: list[Json] = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/comm", "rb") as stream:
                    name = stream.read(64).decode("utf-8", "replace").strip()
            except OSError:
                continue
            if name in wanted:
                found.append(int(entry))
    return found


def _pci_displays(folder: str) -> Json:
    """Display, 3D and accelerator controllers: [address, vendor, class] each."""
    found: list[Json] = []
    for address in sorted(os.listdir(folder)):
        try:
            with open(f"{folder}/{address}/class", "rb") as stream:
                kind = int(stream.read(16), 16)
            if kind >> 16 not in (0x03, 0x12):
                continue
            with open(f"{folder}/{address}/vendor", "rb") as stream:
                found.append([address, int(stream.read(16), 16), kind])
        except (OSError, ValueError):
            continue
    return found


def _loader_cache(sonames: str) -> Json:
    """Paths that the loader's cache holds for the libraries given, split by commas: {soname: [path]}."""
    from torchdoctor.probes.elf import loader_cache

    return loader_cache("/etc/ld.so.cache", sonames.split(","))


def _count(question: str) -> Json:
    """How many names of a folder match a shell pattern, and nothing of their names."""
    folder, _, like = question.partition("?")
    return sum(1 for name in os.listdir(folder) if fnmatchcase(name, like))


def _packages(question: str) -> Json:
    """Installed packages of these names in a folder of sys.path: [name, version, folder of its metadata]."""
    import re

    folder, _, names = question.partition("?")
    wanted = set(names.split(","))
    found: list[Json] = []
    for entry in sorted(os.listdir(folder)):
        if not entry.endswith((".dist-info", ".egg-info")):
            continue
        name, _, rest = entry.rpartition(".")[0].partition("-")
        name = re.sub(r"[-_.]+", "-", name).lower()
        if name in wanted:
            found.append([name, rest.split("-")[0], entry])
    return found


def _modules(question: str) -> Json:
    """Files and packages of a folder that an import of these names takes: a package comes before a file."""
    folder, _, names = question.partition("?")
    os.stat(folder)
    found: list[Json] = []
    for name in names.split(","):
        for place, file in ((f"{name}/__init__.py", name), (f"{name}.py", f"{name}.py")):
            if os.path.isfile(f"{folder}/{place}"):
                found.append(file)
                break
    return found


def _which(name: str) -> Json:
    from torchdoctor.probes.search_paths import program_on_path

    found = program_on_path(name)
    if not found:
        raise FileNotFoundError(errno.ENOENT, "not on PATH")
    return found


OPERATIONS: dict[str, Callable[[str], Json]] = {
    "file": _file,
    "head": _head,
    "headers": _headers,
    "mounts": _mounts,
    "folder": _folder,
    "status": _status,
    "real": _real,
    "access": _access,
    "space": _space,
    "variable": _variable,
    "set": lambda name: bool(os.environ.get(name)),
    "value": _value,
    "dynamic": _dynamic,
    "marks": _marks,
    "holders": _holders,
    "processes": _processes,
    "displays": _pci_displays,
    "cache": _loader_cache,
    "count": _count,
    "packages": _packages,
    "modules": _modules,
    "which": _which,
}
