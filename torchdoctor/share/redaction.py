"""What tells who and where, taken out of a log before it is published. What tells why stays.

The same name gets the same stand-in throughout, so that "the same node" can still be told.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from torchdoctor.share import addresses, secrets
from torchdoctor.share.machines import NODE_LIST, PRINCIPAL, UNC, in_prompts, machines
from torchdoctor.share.names import COMMON, FORMS, NameSearch, is_stand_in, tells
from torchdoctor.share.people import in_places, people

_EMAIL = re.compile(
    r"(?<![\w.+/:@-])(?!git@)[\w.+-]{1,64}@(?!example\.)[\w-]{1,63}"
    r"(?:\.[\w-]{1,63}){0,5}\.[A-Za-z]{2,24}\b(?![\w(])"
)


class Redacted(NamedTuple):
    """A text without names and secrets; ``replaced`` says in words what was taken out, most first."""

    text: str
    replaced: tuple[str, ...]


class Redactor:
    """Takes names and secrets out of texts that belong together: a name has one stand-in in all of them.

    It reads all texts for names before it changes one: a host that one line calls so is a host in each.
    ``hosts`` and ``users`` are names known to be such already. Time grows linearly with the texts.
    """

    def __init__(self, texts: Iterable[str], hosts: Iterable[str] = (), users: Iterable[str] = ()) -> None:
        self._counts: Counter[str] = Counter()
        self._kinds: Counter[str] = Counter()
        self._given: dict[tuple[str, str], str] = {}
        users_found = {name for name in users if tells(name, "users")}
        hosts_found = {name for name in hosts if tells(name, "hosts")}
        for text in texts:
            if text:
                users_found |= people(text)
                hosts_found |= machines(text)
        self._words = dict.fromkeys(hosts_found, "hosts") | dict.fromkeys(users_found - hosts_found, "users")
        self._search = NameSearch(self._words)

    def replaced(self) -> tuple[str, ...]:
        """What was taken out so far, with how often: ``hosts (3)``."""
        return tuple(f"{kind} ({count})" for kind, count in self._counts.most_common())

    def stand_ins(self) -> tuple[str, ...]:
        """The stand-ins of hosts and users, which a reader has to know as such."""
        return tuple(given for (kind, _), given in self._given.items() if kind in FORMS)

    def __call__(self, text: str) -> str:
        """The text without them; what is redacted already stays as it is."""
        text = secrets.take_out(text, self._secret)
        text = _EMAIL.sub(lambda found: self._name("e-mails", found[0], "person{}@example.org"), text)
        text = PRINCIPAL.sub(lambda found: self._host(found) + "@REALM", text)
        text = UNC.sub(self._host, text)
        text = in_places(text, lambda name: self._name("users", name, FORMS["users"]))
        text = in_prompts(text, lambda name: self._name("hosts", name, FORMS["hosts"]))
        text = addresses.without_caches(text, self._name)
        text = NODE_LIST.sub(self._node_list, text)
        text = self._search.replaced(text, self._word)
        return addresses.take_out(text, self._name, secrets.STAND_IN)

    def _name(self, kind: str, original: str, form: str) -> str:
        """``form`` holds one {} for the number of the name within its kind."""
        self._counts[kind] += 1
        key = (kind, original)
        if key not in self._given:
            self._kinds[kind] += 1
            self._given[key] = form.format(self._kinds[kind])
        return self._given[key]

    def _secret(self) -> str:
        return self._name("secrets", "", secrets.STAND_IN)

    def _word(self, name: str) -> str:
        kind = self._words[name]
        return self._name(kind, name, FORMS[kind])

    def _host(self, found: re.Match[str]) -> str:
        host = found["host"]
        return found["lead"] + (
            host if is_stand_in(host, "hosts") else self._name("hosts", host, FORMS["hosts"])
        )

    def _node_list(self, found: re.Match[str]) -> str:
        if found["list"].lower() in COMMON or is_stand_in(found["list"], "hosts"):
            return found[0]
        return found["lead"] + self._name("hosts", found["list"], FORMS["hosts"])


def redact(text: str, hosts: Iterable[str] = ()) -> Redacted:
    """Take out home folders' names, users, hosts, addresses, e-mails, serials, ids and secrets.

    ``hosts`` are names known to be hosts, as the reading of the log found them.
    """
    redactor = Redactor((text,), hosts)
    return Redacted(redactor(text), redactor.replaced())
