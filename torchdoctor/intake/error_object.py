"""An error as ComfyUI's window copies it: JSON with its message, class and traceback under keys."""

from __future__ import annotations

import re

from torchdoctor.patterns import pattern

_HEADER = "Traceback (most recent call last):"
_FIELD = r'\s*"exception_(?P<key>message|type)": "(?P<value>(?:[^"\\\n]|\\.)*)",?\s*$'
_OPENS = r'\s*"traceback": \[\s*$'
_ITEM = r'\s*"(?P<value>(?:[^"\\\n]|\\.)*)(?:",?)?\s*$'
_ESCAPE = r"\\(.)"


class ErrorObject:
    """Takes physical lines; those of the object come back as the traceback that they hold."""

    __slots__ = ("_fields", "_held", "_inside")

    def __init__(self) -> None:
        self._fields: dict[str, str] = {}
        self._held: list[str] = []  # the fields as they stand, until the traceback opens
        self._inside = False  # the list of its entries

    def take(self, text: str) -> list[str] | None:
        """The lines to read instead of this one; None to read it as it stands."""
        if not self._held and not self._inside and '"exception_' not in text:
            return None
        if self._inside:
            item = pattern(_ITEM).match(text)
            if item is not None:
                return _plain(item["value"]).splitlines()
            return [*self.rest(), *([text] if text.strip() not in ("]", "],") else [])]
        field = pattern(_FIELD).match(text)
        if field is not None:
            self._held.append(text)
            self._fields[field["key"]] = _plain(field["value"]).strip()
            return []
        if len(self._fields) == 2 and pattern(_OPENS).match(text):
            self._inside, self._held = True, []
            return [_HEADER]
        return [*self.rest(), text] if self._held else None

    def rest(self) -> list[str]:
        """What is still held when the object, or the input, ends."""
        fields, held = self._fields, self._held
        raised = f"{fields['type']}: {fields['message']}".splitlines() if self._inside else held
        self._fields, self._held, self._inside = {}, [], False
        return raised


def _plain(quoted: str) -> str:
    """The text of a JSON string, or of as much of one as was copied."""
    import json

    try:
        return str(json.loads(f'"{quoted}"'))
    except ValueError:
        return re.sub(_ESCAPE, lambda found: {"n": "\n", "t": "\t"}.get(found[1], found[1]), quoted)
