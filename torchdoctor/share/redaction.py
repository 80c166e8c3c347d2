"""What tells who and where, taken out of a log before it is published. What tells why stays.

The same name gets the same stand-in throughout, so that "the same node" can still be told.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from torchdoctor.share import secrets

_NAME = r"(?P<name>[^/\\\s\"':,;)\]}<>*|%$]+)"
# /home/alice, /gpfs/home/alice, /Users/bob, C:\Users\carol, /lustre/scratch/dave, /data/users/erin
_HOME = re.compile(
    r"(?P<lead>(?:(?<![\w.-])|(?<=[\w-]))(?:/|\\\\?|[A-Za-z]:[/\\]{1,2})(?:homes?\d*|[Uu]sers?|nethome"
    r"|scratch\d*|lustre/work)"
    r"[/\\]{1,2}(?:(?:gpfs|lustre|beegfs|ssd|nvme|fs\d+|(?<=scratch/)users?)[/\\]{1,2})?(?:[a-z][/\\]{1,2})?)"
    + _NAME
)
# a name with a space in it, which only a path can end
_WINDOWS_HOME = re.compile(
    r"(?P<lead>\b[A-Za-z]:[/\\]{1,2}[Uu]sers[/\\]{1,2})"
    r"(?P<name>[^/\\\"'<>|:*?\n\s]{1,32}(?: [^/\\\"'<>|:*?\n\s]{1,32}){1,3})"
    r"(?=[/\\])"
)
_UNC = re.compile(
    r"(?P<lead>(?<![\\\w:?.])\\{2,4})(?P<host>(?!wsl\b)[A-Za-z][\w.-]{1,62})(?=\\{1,2}[\w$.-]+)"
)
_PRINCIPAL = re.compile(
    r"(?P<lead>\b(?:host|HTTP|nfs|cifs|ldap|afs)/)(?P<host>[\w.-]{2,100})@(?P<realm>[A-Z][A-Z0-9.-]{2,60})\b"
)
_CACHE = re.compile(r"(?P<lead>\bkrb5cc_)(?P<value>[1-9]\d{2,9}(?:_\w{1,20})?)")
_LDAP = re.compile(r"(?P<lead>\b(?:cn|CN|uid|UID)=)(?P<name>[^,\n=]{2,60})(?=, ?(?:ou|OU|dc|DC|o|O)=)")
# CORP\alice: not the "\n" of a text that was printed with its escapes
_DOMAIN = re.compile(
    r"(?P<lead>(?<![\\/\w:.])(?:(?<=user )|(?<=account )|(?<=owner )|(?<= as )|(?<= by )"
    r"|(?=[A-Z\d-]{2,15}\\[^abfnrtuvx0N]))"
    r"[A-Z][A-Z\d-]{1,14}\\)(?P<name>[A-Za-z][\w.-]{1,31})(?=[\s'\"),;:]|$)"
)
_STATE = re.compile(
    r"(?P<lead>(?<=[/\\])(?:torchinductor|triton|ray_tmp|matplotlib|pymp|pip-uid|wandb)_(?=[a-z]))"
    r"(?P<name>[a-z][\w.-]{1,31})(?=[/\\\s'\"]|$)"
)
_VARIABLE = re.compile(
    r"(?P<lead>\b(?:USER|LOGNAME|USERNAME|SLURM_JOB_USER|SUDO_USER|NB_USER)[\"']?\s*[=:]\s*[\"']?)"
    r"(?P<name>[A-Za-z][\w.-]{0,31})\b"
    r"(?![/(])"
)
_WHO = re.compile(
    r"(?P<lead>\buid=\d+\(|\bwandb\.ai/|\bwandb: Currently logged in as: |\buser(?:name)?[\"']?[=:]\s?[\"']?"
    r"|\bowned by (?:user )?)"
    r"(?P<name>[a-z][\w.-]{1,31})\b(?![(/]?\()"
)
_NUMBERED = re.compile(r"(?P<lead>\bUserId=|\bfor user )(?P<name>[a-z][\w.-]{1,31})(?=\((?:uid=)?\d)")
_EMAIL = re.compile(
    r"(?<![\w.+/:@-])(?!git@)[\w.+-]{1,64}@(?!example\.)[\w-]{1,63}"
    r"(?:\.[\w-]{1,63}){0,5}\.[A-Za-z]{2,24}\b(?![\w(])"
)
_PROMPT = re.compile(
    r"(?<![\w./+-])(?P<user>[a-z_][\w.-]{0,31})@(?P<host>(?!example\.)[A-Za-z][\w-]{1,62}"
    r"(?:\.[\w-]+)*)(?=[:\s~\]])"
)
# a digit or hyphen in the first part: torch.distributed.elastic.local is a module
_FULL_NAME = re.compile(
    r"(?<![\w./@-])(?P<host>(?=[A-Za-z]{1,62}[\d-])[A-Za-z][\w-]{1,62}(?:\.[A-Za-z][\w-]{0,62}){0,5}"
    r"\.(?:internal|local|lan|cluster|compute|corp|intra|hpc|edu|private|ac\.\w\w|"
    r"(?:svc\.)?cluster\.local|amazonaws\.com))\b"
)
_HOST_NAME = r"(?P<host>[A-Za-z][A-Za-z0-9-]{1,62}(?:\.[A-Za-z0-9][A-Za-z0-9-]{0,62}){0,6})"
_HOST_PLACES = re.compile(
    r"(?:\b(?:MASTER_ADDR|HOSTNAME|SLURMD_NODENAME|SLURM_LAUNCH_NODE_IPADDR|SLURM_TOPOLOGY_ADDR"
    r"|NODE_NAME|COMPUTERNAME"
    r"|NODENAME|POD_NAME)[\"']?\s*[=:]\s*[\"']?"
    r"|^\s*\[?\d{0,3}\]?:?\s*host(?:name)?\s*: |\bhost(?:name)?[=:][\"']?|\bnode[=:]\s?[\"']?"
    r"|\b(?:on|from|of) node |\bclient socket .{0,40}?\["
    r"|\b[Cc]onnect(?:ing|ion|ed)? (?:to|from|with) (?:the )?\[?"
    r"|\b[Rr]emote peer |"
    r"\b(?:tcp|rdzv|c10d|etcd|http)://)" + _HOST_NAME + r"(?![\w.-]*[(/])",
    re.MULTILINE,
)
_BEFORE = re.compile(
    r"^(?:\[?\d?\]?:? ?)" + _HOST_NAME + r"(?=:\d{1,8}:\d{1,8} \[|:\d{3,8}:\d{3,8} NCCL| kernel: )",
    re.MULTILINE,
)
_SYSLOG = re.compile(
    r"^(?:[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d|\d{4}-\d\d-\d\dT[\d:.,+Z-]{8,24}) "
    + _HOST_NAME
    + r" [\w./()-]{1,60}(?:\[\d+\])?: ",
    re.MULTILINE,
)
# "[default0]:2026-11-27" is torchrun's prefix before a time, no host with a port
_PORTED = re.compile(
    r"\["
    + _HOST_NAME
    + r"\]:\d{2,5}\b(?!-\d\d-|/\d\d/|:\d\d:\d\d)|(?<![\w./-])(?=[\w.-]{0,60}\d)"
    + _HOST_NAME.replace("host", "other")
    + r"<\d{2,5}>"
)
_NODE_LIST = re.compile(
    r"(?P<lead>\b(?:SLURM_(?:JOB_)?NODELIST|NodeList|BatchHost|ReqNodeList"
    r"|nodelist)[\"']?\s*[=:]\s*[\"']?)(?P<list>[A-Za-z][\w.,\[\]-]{1,400})"
)
# four numbers alone are as likely a version (nvidia-cublas 12.4.5.8): an address has a sign of one beside it
_IPV4 = re.compile(
    r"(?P<lead>://|\[|^[ \t]*|(?:\b(?:addr\w*|host|ip|from|to|peer|remote|connect\w*|inet|endpoint"
    r"|listen\w*|bind\w*|at|on"
    r"|address|server|client|node|via)\b[\s:=('\"\[]{1,4}))?"
    r"(?P<address>(?<![\d.])\d{1,3}(?:\.\d{1,3}){3}(?![\d.]|-\d))(?P<port>[:<]\d{1,5}\b)?(?P<after>:\s)?",
    re.IGNORECASE | re.MULTILINE,
)
_IPV6 = re.compile(
    r"(?<![\w:])(?:(?:[0-9a-fA-F]{1,4}:){7}[0-9a-fA-F]{1,4}"
    r"|(?=[0-9a-fA-F:]{0,4}\d|[fF][cdeE][0-9a-fA-F]{2}:)(?:[0-9a-fA-F]{1,4}:){1,6}"
    r"(?::[0-9a-fA-F]{1,4}){1,6})(?![\w:])"
)
_MAC = re.compile(
    r"\b(?:[0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}\b|(?<![\w-])(?:[0-9A-Fa-f]{2}-){5}[0-9A-Fa-f]{2}(?![\w-])"
)
_UUID = re.compile(r"\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b")
_SERIAL = re.compile(
    r"(?P<lead>\b(?:(?:gpu|board|chassis|module|product|drive|device|system)?[ _-]?(?:serial(?:[ _-]?"
    r"(?:number|no\.?|num))?|s/n|asset tag"
    r"|(?:node|system|port|sys[ _]image)[ _-]?guid|guid))[\"']?\s*[:=]\s*[\"']?)(?P<value>"
    r"(?=[\w:-]{0,30}\d)[\w:-]{6,40})",
    re.IGNORECASE,
)
_ACCOUNT = re.compile(
    r"(?P<lead>\barn:aws[\w-]*:[\w-]*:[\w-]*:)(?P<value>\d{12})|(?P<instance>\bi-[0-9a-f]{17}\b)"
)

# names that tell nobody
_COMMON = frozenset({
    "user", "users", "root", "ubuntu", "runner", "jovyan", "me", "app", "admin", "shared", "public",
    "default", "ec2-user", "localhost", "conda", "node", "host", "worker", "master", "name", "you",
    "builder", "jenkins", "linuxbrew", "git", "nobody", "vscode", "coder", "docker", "null", "none",
    "unknown", "fail", "example.com", "data", "the", "all", "any", "socket", "peer", "store",
    "redacted", "username", "kernel", "azureuser", "rendezvous", "c10d", "failed", "refused",
    "torch.distributed",
})  # fmt: skip
# a name that is also a word of torch is only taken out where it can be nothing else: in the path of a home
_WORDS = frozenset({
    "torch", "pytorch", "python", "cuda", "gpu", "train", "model", "models", "test", "main", "error",
    "max", "min", "sum", "mean", "log", "norm", "grad", "index", "loss", "rank", "step", "batch",
    "device", "tensor", "nccl", "gloo", "lightning", "triton", "conda", "miniconda3", "anaconda3",
    "project", "projects", "code", "work", "workspace", "nvidia", "amd", "rocm", "mark", "will",
    "grant", "page", "art", "chance", "case", "rand", "ray", "dot", "dask", "flow", "dim", "ada",
    "adam", "jit", "val", "eval", "dist", "run", "job", "jobs", "python3", "system",
})  # fmt: skip
# services of everybody, which say what was not reached
_SERVICES = re.compile(
    r"(?:^|\.)(?:huggingface\.co|hf\.co|github(?:usercontent)?\.com|pytorch\.org|pypi\.org|pythonhosted\.org|anaconda\.org"
    r"|googleapis\.com|wandb\.ai|docker\.io|nvidia\.com|ngc\.nvidia\.com|openai\.com|kaggle\.com|zenodo\.org)$|^cdn-"
)
_PUBLIC = re.compile(r"(?:127|0|255|169\.254)\.|192\.0\.2\.|198\.51\.100\.|203\.0\.113\.|8\.8\.")
_PRIVATE = re.compile(
    r"10\.\d+\.\d+\.\d+$|192\.168\.|172\.(?:1[6-9]|2\d|3[01])\.|100\.(?:6[4-9]|[7-9]\d|1[01]\d|12[0-7])\."
)
_LEAST = 3
_HIGHEST_MAJOR = 32  # no package that torch brings has a first version number as high as this
_FORMS = {"hosts": "node{}", "users": "user{}"}


class Redacted(NamedTuple):
    """A text without names and secrets; ``replaced`` says in words what was taken out, most first."""

    text: str
    replaced: tuple[str, ...]


class Redactor:
    """Takes names and secrets out of texts that belong together: a name has one stand-in in all of them.

    It reads all texts for names before it changes one: a host that one line calls so is a host in each.
    ``hosts`` and ``users`` are names known to be such already.
    """

    def __init__(self, texts: Iterable[str], hosts: Iterable[str] = (), users: Iterable[str] = ()) -> None:
        self._counts: Counter[str] = Counter()
        self._given: dict[tuple[str, str], str] = {}
        people, machines = set(users), set(hosts)
        for text in texts:
            if text:
                people |= _people(text)
                machines |= _machines(text)
        found = [("hosts", name) for name in machines] + [("users", name) for name in people - machines]
        self._words = {name: kind for kind, name in found if _tells(name, kind)}
        names = sorted(self._words, key=lambda item: (-len(item), item))
        self._word = (
            re.compile(
                r"(?<![A-Za-z0-9])(?:" + "|".join(map(re.escape, names)) + r")(?![A-Za-z0-9]|-[A-Za-z0-9])"
            )
            if names
            else None
        )

    def replaced(self) -> tuple[str, ...]:
        """What was taken out so far, with how often: ``hosts (3)``."""
        return tuple(f"{kind} ({count})" for kind, count in self._counts.most_common())

    def stand_ins(self) -> tuple[str, ...]:
        """The stand-ins of hosts and users, which a reader has to know as such."""
        return tuple(given for (kind, _), given in self._given.items() if kind in _FORMS)

    def __call__(self, text: str) -> str:
        """The text without them; what is redacted already stays as it is."""
        text = secrets.take_out(text, self._secret)
        text = _EMAIL.sub(lambda found: self._name("e-mails", found[0], "person{}@example.org"), text)
        text = _PRINCIPAL.sub(self._principal, text)
        text = _UNC.sub(self._share, text)
        for pattern in (_WINDOWS_HOME, _HOME, _LDAP, _DOMAIN):
            text = pattern.sub(self._home, text)
        text = _CACHE.sub(lambda found: found["lead"] + self._name("ids", found["value"], "{}"), text)
        text = _NODE_LIST.sub(self._node_list, text)
        if self._word is not None:
            text = self._word.sub(
                lambda found: self._name(self._words[found[0]], found[0], _FORMS[self._words[found[0]]]), text
            )
        text = _MAC.sub(lambda found: self._name("addresses", found[0], "02:00:00:00:00:{:02x}"), text)
        text = _IPV6.sub(self._address6, text)
        text = _IPV4.sub(self._address, text)
        text = _UUID.sub(lambda found: self._name("ids", found[0], "00000000-0000-0000-0000-{:012d}"), text)
        text = _SERIAL.sub(self._serial, text)
        return _ACCOUNT.sub(self._account, text)

    def _name(self, kind: str, original: str, form: str) -> str:
        """``form`` holds one {} for the number of the name within its kind."""
        self._counts[kind] += 1
        key = (kind, original)
        if key not in self._given:
            number = 1 + sum(1 for other, _ in self._given if other == kind)
            self._given[key] = form.format(number)
        return self._given[key]

    def _secret(self) -> str:
        return self._name("secrets", "", secrets.STAND_IN)

    def _home(self, found: re.Match[str]) -> str:
        name = found["name"]
        if name.lower() in _COMMON or _is_stand_in(name, "users") or not re.search(r"[A-Za-z]", name):
            return found[0]
        return found["lead"] + self._name("users", name, _FORMS["users"])

    def _share(self, found: re.Match[str]) -> str:
        if _is_stand_in(found["host"], "hosts"):
            return found[0]
        return found["lead"] + self._name("hosts", found["host"], _FORMS["hosts"])

    def _principal(self, found: re.Match[str]) -> str:
        if _is_stand_in(found["host"], "hosts"):
            return found[0]
        return found["lead"] + self._name("hosts", found["host"], _FORMS["hosts"]) + "@REALM"

    def _node_list(self, found: re.Match[str]) -> str:
        if found["list"].lower() in _COMMON or _is_stand_in(found["list"], "hosts"):
            return found[0]
        return found["lead"] + self._name("hosts", found["list"], _FORMS["hosts"])

    def _serial(self, found: re.Match[str]) -> str:
        if found["value"].startswith(("SERIAL", "00000000-0000")) or found["value"] == secrets.STAND_IN:
            return found[0]
        return found["lead"] + self._name("serials", found["value"], "SERIAL{}")

    def _account(self, found: re.Match[str]) -> str:
        if found["instance"]:
            return (
                self._name("ids", found["instance"], "i-{:017x}")
                if found[0][:12] != "i-0000000000"
                else found[0]
            )
        return found["lead"] + self._name("ids", found["value"], "{:012d}")

    def _address6(self, found: re.Match[str]) -> str:
        address = found[0]
        if address.startswith("2001:db8:") or re.fullmatch(r"\d\d?(?::\d\d?)+", address):
            return address
        return self._name("addresses", address, "2001:db8::{}")

    def _address(self, found: re.Match[str]) -> str:
        address = found["address"]
        parts = [int(part) for part in address.split(".")]
        lead = found["lead"]
        is_one = (
            (lead and not lead.isspace())
            or found["port"]
            or (lead is not None and found["after"])  # a node's address before each of its lines
            or parts[0] >= _HIGHEST_MAJOR
            or _PRIVATE.match(address)
        )
        if not is_one or _PUBLIC.match(address) or max(parts) > 255:
            return found[0]
        before = found[0][: found.start("address") - found.start()]
        return (
            before
            + self._name("addresses", address, "192.0.2.{}")
            + (found["port"] or "")
            + (found["after"] or "")
        )


def redact(text: str, hosts: Iterable[str] = ()) -> Redacted:
    """Take out home folders' names, users, hosts, addresses, e-mails, serials, ids and secrets.

    ``hosts`` are names known to be hosts, as the reading of the log found them.
    """
    redactor = Redactor((text,), hosts)
    return Redacted(redactor(text), redactor.replaced())


def _people(text: str) -> set[str]:
    found = {
        match["name"]
        for pattern in (_HOME, _STATE, _VARIABLE, _WHO, _NUMBERED)
        for match in pattern.finditer(text)
        if not match["name"].startswith("person")
    }
    return found | {match["user"] for match in _PROMPT.finditer(text)}


def _machines(text: str) -> set[str]:
    found: set[str] = set()
    for pattern in (_PROMPT, _FULL_NAME, _HOST_PLACES, _BEFORE, _SYSLOG, _PORTED):
        for match in pattern.finditer(text):
            found.add(match["host"] or match["other"] if pattern is _PORTED else match["host"])
    for match in _NODE_LIST.finditer(text):
        found.update(
            name for name in re.split(r"[,\s]", match["list"]) if "[" not in name and "]" not in name
        )
    # the short form of a host's full name is the host too
    return {part for name in found if name for part in (name, name.split(".")[0])}


def _tells(name: str, kind: str) -> bool:
    low = name.lower()
    if len(name) < _LEAST or low in _COMMON or low in _WORDS or name[0].isdigit() or _is_stand_in(name, kind):
        return False
    if kind == "hosts" and _SERVICES.search(low):
        return False
    if kind == "hosts":  # a bare word is as likely part of a sentence
        return any(char.isdigit() or char in "-." for char in name) and not name.startswith(
            ("python", "torch")
        )
    return True


def _is_stand_in(name: str, kind: str) -> bool:
    return bool(re.fullmatch(_FORMS[kind].format(r"\d+"), name))
