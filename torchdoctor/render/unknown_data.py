"""The step after what Python says of a path, of another program or of a call: no debugger shows more."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torchdoctor.model import Suspect

# a folder that Python's tempfile made, and that its maker deletes
_TEMPORARY = r"[\\/]tmp[a-z0-9_]{8}[\\/]"
# where a drive is mounted: the folder that a program makes there when it is not
_MOUNT = r"(?:/media|/run/media)(?:/[^/]+){1,2}|/mnt/[^/]+"
# a path that a message says is not there, whatever else it names
_SAID_MISSING = (
    r"(?i)\b(?:missing|not found|does not exist|no such (?:file|directory))\b[^'\"\n]{0,40}"
    r"['\"]([^'\"\n]{0,200}[\\/][^'\"\n]{1,200})['\"]"
)
# pyarrow, on values of which it is to make a column
_OF_ARROW = ("ArrowInvalid", "ArrowTypeError")
_MIXED = r"cannot mix |Could not convert |Expected bytes, got an? "
_ONE_TYPE = (
    "Give each column values of one type in all rows: print `{key: type(value) for key, value in "
    "row.items()}` of a row, and the types in its lists; a list in a list of numbers is another type."
)
# Python, on a call that does not fit what was called
_UNEXPECTED = r"(?P<called>[\w.]{1,100})\(\) got an unexpected keyword argument '(?P<name>\w{1,80})'"
_TAKES = (
    r"(?P<called>[\w.]{1,100})\(\) takes (?:from \d+ to )?(?P<takes>\d+) positional arguments? "
    r"but (?P<given>\d+) (?:was|were) given"
)


def of_data(item: Suspect) -> str:
    """For what Python says of a file or of another program, where a debugger shows nothing more."""
    kind = (item.type or "").rpartition(".")[2]
    if kind == "JSONDecodeError":
        where = re.search(r"line \d+ column \d+", item.message)
        reader = item.reading.function if item.reading is not None else None
        by = f"{reader} reads" if reader else "is read there"
        at = f", {where[0]}" if where is not None else ""
        return (
            f"Correct the JSON that {by}{at}: `python -m json.tool FILE` shows the place. Pack it again, if "
            "it is part of an archive; an empty file, or a page of HTML, was not downloaded as meant."
        )
    if "CERTIFICATE_VERIFY_FAILED" in item.message and "expired" not in item.message:
        name = "REQUESTS_CA_BUNDLE" if (item.type or "").startswith("requests.") else "SSL_CERT_FILE"
        return (
            f"Name the certificate of whoever signed the server's: `export {name}=/path/ca.pem`, in the "
            "environment in which the program starts; or give the server one of a known authority."
        )
    if kind in _OF_ARROW and re.match(_MIXED, item.message) is not None:
        return _ONE_TYPE
    if kind == "CalledProcessError" and re.search(_TEMPORARY, item.message) is not None:
        return (
            "Read what the command of the message printed above it: its input lay in a temporary folder, "
            "which is gone by now, and it cannot be run again as it stands."
        )
    if kind == "CalledProcessError":
        return "Run the command of the message by itself: what it prints says why it failed."
    if (unfit := re.match(_UNEXPECTED, item.message)) is not None:
        return (
            f"Leave {unfit['name']} out where {unfit['called']}() is called, or use a release, or a class, "
            "whose definition has it."
        )
    if (unfit := re.match(_TAKES, item.message)) is not None:
        return (
            f"Leave out what is too many where {unfit['called']}() is called, or let it take that as well: "
            f"{unfit['given']} came, and it takes {unfit['takes']}. A method's first one is self."
        )
    said = re.search(_SAID_MISSING, item.message)
    path = said or re.search(r"'([^'\n]{1,200})'", item.message)
    if path is not None and item.host:
        return (
            f"Look at the path on {item.host}, `ssh {item.host} ls -ld '{path[1]}'`: what another host has, "
            "or rank 0 wrote there, is to be copied to this one, or to lie on storage that all of them mount."
        )
    if path is not None and kind == "PermissionError" and re.fullmatch(_MOUNT, path[1]):
        return (
            f"Mount the drive, if `findmnt '{path[1]}'` prints nothing: without it the program tries to make "
            "that folder. Or name another folder where the program keeps this path."
        )
    opened = kind in ("FileNotFoundError", "NotADirectoryError", "PermissionError")
    if path is not None and (opened or said is not None):
        return look_at(path[1], item.system)
    named = re.fullmatch(r"(?s)(.{1,200}?) (?:does not exist|(?:was )?not found)\.?", item.message.strip())
    if kind == "FileNotFoundError" and named is not None:
        return (
            f"Give it a file that is there, or what you mean by `{named[1]}` in the form that its "
            "documentation names: it took that for the name of a file."
        )
    return ""


def look_at(path: str, system: str | None = None) -> str:
    """Where to look for a path that could not be opened."""
    show = "dir" if "\\" in path or system == "windows" else "ls -ld"
    whole = path[:1] in "/~\\" or path[1:2] == ":"
    where = "" if whole else " from the folder in which the program runs"
    return f"Look at the path{where}, as the user of the program: `{show} '{path}'`."
