"""What to search a tracker for, of a message that no rule knows: its words and names, without its values."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from torchdoctor.model import ReadingKind
from torchdoctor.native_asserts import native

if TYPE_CHECKING:
    from torchdoctor.model import Suspect

# what a tracker should not be asked for: addresses, paths, numbers, times, and values that somebody gave;
# groups[0] is a name
_ADDRESS = r"\b([a-z][a-z0-9+]{1,9}://)[^\s'\"`]*"
_GIVEN = r"(?:(?<==)|(?<=\bfor user )|(?<=\bserver at ))(?:'[^'\n]*'|\"[^\"\n]*\")"
_PATH = (
    r"(?:[A-Za-z]:)?[\w.~<>-]*(?:[\\/][\w.<>+-]+){2,}[\\/]?|(?:[A-Za-z]:)?[~.]{0,2}[\\/][\w.<>+-]+"
    r"|[\w.~-]+[\\/][\w.<>-]+"
)
_NUMBER = (
    r"0x[0-9a-fA-F]+|(?<!\w\[)(?<![\w.])(?<!rrno )(?<!WinError )[\d][\d.,:]*(?:[KMGT]i?B)?(?![\w.])"
    r"|\b(?=[0-9a-f]*\d)[0-9a-f]{8,}\b"
)
_CLOCK = r"\d\d:\d\d:\d\d(?:[.,]\d+)?"
_STAMP = rf"\d{{1,4}}[-/]\d\d(?:[-/]\d\d)?[ T,]+{_CLOCK}(?: ?[+-]\d{{4}}| UTC|Z)?|\b{_CLOCK}"
# a name that a message puts between quotation marks: of a module, a header, a symbol, a type
_QUOTED = r"(?<!\w)(['\"`])([^'\"`\n]{1,200})\1(?!\w)"
_NAME = r"-{0,2}[A-Za-z_~<][\w.:<>,*&+()\[\]~ -]{0,59}(?:::[\w./]{1,59})?"
_IDENTIFIER = r"[A-Za-z_]\w*(?:(?:\.|::|_)[A-Za-z_]\w*)+"  # in what is quoted at length
_LIBRARY = r"(?:[\w.~<>:+-]*[\\/])+(?=[\w.+-]+\.(?:so|dll|pyd|dylib)\b)"  # what stands before its name
# a number that a program has a table for, by its word or by the name behind it: error code 304, protocol: 5,
# synStatus=9, result=3 (timed out)
_CODE = (
    r"((?:\b|_|(?<=[a-z])(?=[A-Z]))(?i:code|error|errno|status|protocol|opset)(?:(?: is)?[:=]? |\s?[:=])"
    r"|(?<=\w)=(?=\d{1,6} ?[\[(][A-Za-z]{2}))(\d{1,6})(?![\w.])"
)


def search_line(item: Suspect) -> str:
    """The message without paths, numbers and addresses, for a tracker; names between quotation marks stay."""
    lines = [line.strip() for line in item.message[:4_000].splitlines() if line.strip()]
    shown = 2 if lines and lines[0].endswith(":") else 1  # what is announced stands below
    message = " ".join(lines[:shown])[:1_000].strip("`* ")
    if message.startswith("CMake Error"):  # what it says stands in the lines below
        message = " ".join(item.message[:400].split())
    elif (asserts := native(message)) is not None:  # without the function and the folder it was built in
        message = f"{asserts[0]} failed: {asserts[1]}"
    elif item.reading is not None and item.reading.kind is ReadingKind.LIBRARY_REPORTED:
        message = message[max(0, message.find(item.reading.owner or "")) :]  # behind node, process and GPU
    kept: list[str] = []

    def keep(found: re.Match[str]) -> str:
        """A mark for a name, or for what an address begins with; nothing for what else is quoted."""
        inside = re.sub(_LIBRARY, "", re.sub(_ADDRESS, r"\1", found[2]))
        named = re.fullmatch(_NAME, inside) is not None and inside.count(" ") <= 3
        if not named and not inside.endswith("://"):
            path = "/" in inside or "\\" in inside
            return " " if path else f" {' '.join(re.findall(_IDENTIFIER, inside)[:2])} "
        kept.append(f"{found[1]}{inside}{found[1]}")
        return f"\0{len(kept) - 1}\0"

    def keep_code(found: re.Match[str]) -> str:
        kept.append(found[2])
        return f"{found[1]}\0{len(kept) - 1}\0"

    bare = re.sub(r"https?://\S+|(?<![\w/.\\])b'[^'\n]*'", " ", re.sub(_GIVEN, " ", message))
    bare = re.sub(_QUOTED, keep, re.sub(_STAMP, " ", bare))
    bare = re.sub(_CODE, keep_code, re.sub(_LIBRARY, "", bare))
    bare = re.sub(_ADDRESS, r"\1", bare)
    bare = re.sub(rf"(?<![\0:\w])(?:{_PATH})", " ", bare)
    bare = re.sub(rf"(?<!\0)(?:{_NUMBER})(?!\0)", " ", bare)
    bare = re.sub(r"(?<!\w)[(\[{][\s,:]*[)\]}]", " ", bare)
    bare = re.sub(r"([(\[{])\s+|\s+(?=[)\]}])", r"\1", bare)
    bare = re.sub(r"\0(\d+)\0", lambda found: kept[int(found[1])], bare)
    words = [word for word in bare.split() if any(sign.isalnum() for sign in word)]
    return " ".join([*([item.type] if item.type else []), *words])[:160]
