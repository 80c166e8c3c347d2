"""What tells who and where, taken out of a log before it is published. What tells why stays.

The same name gets the same stand-in throughout, so that "the same node" can still be told.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass

_HOME = re.compile(
    r"(?P<lead>(?:/home|/Users|/data/home|[A-Za-z]:\\+Users|[A-Za-z]:/Users)[/\\]+)(?P<name>[^/\\\s\"':,;)\]]+)"
)
_EMAIL = re.compile(r"(?<![\w.+/:-])[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){0,5}\.[A-Za-z]{2,24}\b")
_PROMPT = re.compile(
    r"(?<![\w./])(?P<user>[a-z_][\w.-]{0,31})@(?P<host>(?!example\.)[A-Za-z][\w-]{1,62}(?:\.[\w-]+)*)(?=[:\s~])"
)
# a digit or hyphen in the first part: torch.distributed.elastic.local is a module
_FULL_NAME = re.compile(
    r"(?<![\w./@-])(?P<host>(?=[A-Za-z]{1,62}[\d-])[A-Za-z][\w-]{1,62}(?:\.[A-Za-z][\w-]{0,62}){0,5}"
    r"\.(?:internal|local|lan|cluster|compute|corp|intra|hpc|edu|ac\.\w\w))\b"
)
# four numbers alone are as likely a version (nvidia-cublas 12.4.5.8): an address has a sign of one beside it
_IPV4 = re.compile(
    r"(?P<lead>://|\[|(?:\b(?:addr\w*|host|ip|from|to|peer|remote|connect\w*|inet|endpoint|listen\w*|bind\w*|at|on)\b"
    r"[\s:=('\"\[]{1,4}))?(?P<address>(?<![\d.])\d{1,3}(?:\.\d{1,3}){3}(?![\d.]))(?P<port>[:<]\d{1,5}\b)?",
    re.IGNORECASE,
)
_IPV6 = re.compile(
    r"(?<![\w:])(?:(?:[0-9a-fA-F]{1,4}:){7}[0-9a-fA-F]{1,4}"
    r"|(?:[0-9a-fA-F]{1,4}:){1,6}(?::[0-9a-fA-F]{1,4}){1,6})(?![\w:])"
)
_MAC = re.compile(r"\b(?:[0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}\b")
_UUID = re.compile(r"\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b")
_TOKENS = re.compile(
    r"\b(?:hf_[A-Za-z0-9]{16,}|gh[pousr]_[A-Za-z0-9]{16,}|github_pat_\w{20,}|glpat-[\w-]{16,}|sk-[\w-]{16,}"
    r"|xox[abpr]-[\w-]{10,}|A[KS]IA[A-Z0-9]{12,}|AIza[\w-]{30,}|eyJ[\w-]{10,}\.[\w-]{5,}(?:\.[\w-]+)?)"
)
_NAMED_SECRET = re.compile(
    r"(?P<lead>\b\w*(?:token|secret|passw(?:or)?d|api[_-]?key|access[_-]?key|auth\w*)\w*[\"']?\s*[=:]\s*[\"']?"
    r"(?:Bearer\s+|Basic\s+)?|\bBearer\s+)(?P<value>[^\s\"',;&]{6,})",
    re.IGNORECASE,
)
_IN_URL = re.compile(r"(?P<lead>\b[a-z][a-z0-9+.-]*://)[^/\s:@]+(?::[^/\s@]*)?@")
_QUERY = re.compile(r"(?P<lead>[?&](?:X-Amz-\w+|Signature|sig|token|key|Policy)=)[^&\s\"']+")

# names that tell nobody
_COMMON = frozenset({
    "user", "users", "root", "ubuntu", "runner", "jovyan", "me", "app", "admin", "shared", "public",
    "default",
    "ec2-user", "localhost", "conda", "node", "host", "worker", "master", "name", "you",
})  # fmt: skip
_PUBLIC = re.compile(r"(?:127|0|255|169\.254)\.|192\.0\.2\.|198\.51\.100\.|203\.0\.113\.|8\.8\.")
_LEAST = 3


@dataclass(frozen=True, slots=True)
class Redacted:
    """A text without names and secrets; ``replaced`` says in words what was taken out, most first."""

    text: str
    replaced: tuple[str, ...]


class _StandIns:
    """Gives each name its stand-in and counts what was replaced."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self._given: dict[tuple[str, str], str] = {}

    def name(self, kind: str, original: str, form: str) -> str:
        """``form`` holds one {} for the number of the name within its kind."""
        self.counts[kind] += 1
        key = (kind, original)
        if key not in self._given:
            number = 1 + sum(1 for other, _ in self._given if other == kind)
            self._given[key] = form.format(number)
        return self._given[key]


def redact(text: str, hosts: Iterable[str] = ()) -> Redacted:
    """Take out home folders' names, users, hosts, addresses, e-mails, ids and secrets.

    ``hosts`` are names known to be hosts, as the reading of the log found them.
    """
    stand_ins = _StandIns()

    def put(pattern: re.Pattern[str], make: Callable[[re.Match[str]], str]) -> None:
        nonlocal text
        text = pattern.sub(make, text)

    def secret(found: re.Match[str]) -> str:
        return found["lead"] + stand_ins.name("secrets", "", "REDACTED")

    put(_IN_URL, lambda found: found["lead"] + stand_ins.name("secrets", "", "REDACTED") + "@")
    put(_QUERY, secret)
    put(_TOKENS, lambda _: stand_ins.name("secrets", "", "REDACTED"))
    put(_NAMED_SECRET, lambda found: found[0] if _plain_value(found["value"]) else secret(found))
    put(_EMAIL, lambda found: stand_ins.name("e-mails", found[0], "person{}@example.org"))
    users = {found["name"] for found in _HOME.finditer(text)} | {
        found["user"] for found in _PROMPT.finditer(text)
    }
    machines = {found["host"] for pattern in (_PROMPT, _FULL_NAME) for found in pattern.finditer(text)} | set(
        hosts
    )
    for kind, names, form in (("hosts", machines, "node{}"), ("users", users, "user{}")):
        for name in sorted(names, key=lambda item: (-len(item), item)):
            if (
                len(name) < _LEAST
                or name.lower() in _COMMON
                or name[0].isdigit()
                or re.fullmatch(form.format(r"\d+"), name)
            ):
                continue
            word = re.compile(rf"(?<![A-Za-z0-9_]){re.escape(name)}(?![A-Za-z0-9_])")
            put(word, lambda _, kind=kind, name=name, form=form: stand_ins.name(kind, name, form))  # type: ignore[misc]
    put(_MAC, lambda found: stand_ins.name("addresses", found[0], "02:00:00:00:00:{:02x}"))
    put(_IPV6, lambda found: _address6(found[0], stand_ins))
    put(_IPV4, lambda found: _address(found, stand_ins))
    put(_UUID, lambda found: stand_ins.name("ids", found[0], "00000000-0000-0000-0000-{:012d}"))
    return Redacted(text, tuple(f"{kind} ({count})" for kind, count in stand_ins.counts.most_common()))


def _plain_value(value: str) -> bool:
    """A number, a setting or a call says no secret: max_tokens=2048, token = tokenizer(…)."""
    return (
        value.replace(".", "").isdigit()
        or value.lower().rstrip(".)")
        in ("none", "null", "true", "false", "redacted", "missing", "required", "invalid")
        or not re.search(r"\d", value)
        or "(" in value
    )


def _address6(address: str, stand_ins: _StandIns) -> str:
    if address.startswith("2001:db8:"):
        return address
    return stand_ins.name("addresses", address, "2001:db8::{}")


def _address(found: re.Match[str], stand_ins: _StandIns) -> str:
    address = found["address"]
    is_one = (
        found["lead"]
        or found["port"]
        or re.match(r"10\.\d+\.\d+\.\d+$|192\.168\.|172\.(?:1[6-9]|2\d|3[01])\.", address)
    )
    if not is_one or _PUBLIC.match(address) or any(int(part) > 255 for part in address.split(".")):
        return found[0]
    before = found[0][: found.start("address") - found.start()]
    return before + stand_ins.name("addresses", address, "192.0.2.{}") + (found["port"] or "")
