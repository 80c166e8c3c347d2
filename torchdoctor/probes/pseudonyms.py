"""Names that tell who and where, replaced by stable ones before a recording leaves the machine.

The same name always gets the same pseudonym within one recording, in the order of appearance, so that
"the same GPU" and "another user's folder" can still be told.
"""

from __future__ import annotations

import re

from torchdoctor.probes.machine import Json

# "pod" stands before the ids of Kubernetes' pods, in names of control groups with "_" for "-"
_BEFORE, _AFTER = r"(?:(?<=pod)|(?<![0-9A-Za-z]))", r"(?![0-9A-Za-z])"
_UUID = re.compile(rf"{_BEFORE}[0-9a-fA-F]{{8}}(?:-[0-9a-fA-F]{{4}}){{3}}-[0-9a-fA-F]{{12}}{_AFTER}")
_POD = re.compile(rf"{_BEFORE}[0-9a-f]{{8}}(?:_[0-9a-f]{{4}}){{3}}_[0-9a-f]{{12}}{_AFTER}")
_ID = re.compile(r"\b[0-9a-f]{64}\b|\b[0-9a-f]{32}\b")
_MAC = re.compile(r"\b(?:[0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}\b")
# An address with a port, or in a URL. Bare ones look like versions: nvidia-curand 10.4.0.35.
_ADDRESS = re.compile(r"(?<=://)\d{1,3}(?:\.\d{1,3}){3}\b|\b\d{1,3}(?:\.\d{1,3}){3}(?=:\d{2,5}\b)")
_SERIAL = re.compile(r"((?:Serial Number|GPU PDI|GUID)\s*:\s*)(?!N/A\b)(\S+)")
_WHOLE = frozenset({"MASTER_ADDR", "KUBERNETES_SERVICE_HOST", "HOSTNAME"})

# Words that are names of users or hosts now and then, and parts of paths that must stay what they are.
_COMMON = frozenset({
    "root", "home", "user", "users", "usr", "bin", "lib", "lib64", "local", "opt", "var", "tmp", "etc",
    "dev", "proc", "sys", "run", "data", "work", "workspace", "mnt", "media", "nvidia", "cuda", "torch",
    "python", "conda", "venv", "cache", "gpu", "node", "host", "vm", "localhost", "linux", "ubuntu",
    "debian", "docker", "runner", "main", "default", "admin", "site-packages",
})  # fmt: skip
_LEAST = 3


class Pseudonyms:
    """Replaces in texts: host and user names, the home folder, UUIDs, serial numbers, addresses."""

    def __init__(self, *, hosts: tuple[str, ...] = (), users: tuple[str, ...] = (), home: str = "") -> None:
        self._given: dict[tuple[str, str], str] = {}
        self._words: list[tuple[re.Pattern[str], str, str]] = []
        self._whole_hosts = {host for host in hosts if host}
        if home and home not in ("/root", "/"):
            name = home.rpartition("/")[2]
            users = (*users, name)
        for kind, names in (("host", hosts), ("user", users)):
            for name in dict.fromkeys(names):
                short = name.partition(".")[0]
                for word in dict.fromkeys((name, short)):
                    if len(word) >= _LEAST and word.lower() not in _COMMON:
                        # the short name of a host is the same host
                        pattern = re.compile(rf"(?<![A-Za-z0-9]){re.escape(word)}(?![A-Za-z0-9])")
                        self._words.append((pattern, kind, short))
        # the longest first: node7.cluster before node7
        self._words.sort(key=lambda item: -len(item[0].pattern))

    def text(self, text: str) -> str:
        """The text without anything that tells who or where."""
        for pattern, kind, name in self._words:
            text = pattern.sub(lambda _, kind=kind, name=name: self._name(kind, name), text)  # type: ignore[misc]
        text = _UUID.sub(lambda match: self._uuid(match[0]), text)
        text = _POD.sub(lambda match: self._uuid(match[0].replace("_", "-")).replace("-", "_"), text)
        text = _ID.sub(lambda match: self._numbered("id", match[0], len(match[0])), text)
        text = _MAC.sub(lambda match: f"02:00:00:00:00:{self._number('mac', match[0]):02x}", text)
        text = _ADDRESS.sub(lambda match: f"192.0.2.{self._number('address', match[0])}", text)
        return _SERIAL.sub(lambda match: match[1] + self._numbered("serial", match[2], 13), text)

    def tree(self, value: Json) -> Json:
        """All texts in a JSON value, keys too."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self.tree(item) for item in value]
        if isinstance(value, dict):
            return {self.text(key): self.tree(item) for key, item in value.items()}
        return value

    def variable(self, name: str, value: Json) -> Json:
        """The value of an environment variable: some are an address or a host as a whole."""
        if isinstance(value, str) and value and (name in _WHOLE or value in self._whole_hosts):
            return value if value in ("localhost", "127.0.0.1", "::1") else self._name("host", value)
        return self.tree(value)

    def host(self, value: str) -> str:
        return self._name("host", value.partition(".")[0]) if value else value

    def _number(self, kind: str, name: str) -> int:
        same = [key for key in self._given if key[0] == kind]
        key = (kind, name.lower())
        if key not in self._given:
            self._given[key] = str(len(same) + 1)
        return int(self._given[key])

    def _name(self, kind: str, name: str) -> str:
        return f"{kind}-{self._number(kind, name)}"

    def _numbered(self, kind: str, name: str, length: int) -> str:
        return f"{self._number(kind, name):0{length}d}"

    def _uuid(self, name: str) -> str:
        return f"00000000-0000-0000-0000-{self._number('uuid', name):012d}"
