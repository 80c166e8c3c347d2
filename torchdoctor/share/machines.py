"""Where the name of a machine stands: in prefixes of launchers, messages of networks, lists of nodes."""

from __future__ import annotations

import re
from collections.abc import Callable

from torchdoctor.share.names import tells
from torchdoctor.share.people import PROMPT

UNC = re.compile(r"(?P<lead>(?<![\\\w:?.])\\{2,4})(?P<host>(?!wsl\b)[A-Za-z][\w.-]{1,62})(?=\\{1,2}[\w$.-]+)")
PRINCIPAL = re.compile(
    r"(?P<lead>\b(?:host|HTTP|nfs|cifs|ldap|afs)/)(?P<host>[\w.-]{2,100})@(?P<realm>[A-Z][A-Z0-9.-]{2,60})\b"
)
NODE_LIST = re.compile(
    r"(?P<lead>\b(?:SLURM_(?:JOB_)?NODELIST|NodeList|BatchHost|ReqNodeList"
    r"|nodelist)[\"']?\s*[=:]\s*[\"']?|\bsalloc: Nodes )(?P<list>[A-Za-z][\w.,\[\]-]{1,400})"
)
# a digit or hyphen in the first part: torch.distributed.elastic.local is a module
_FULL_NAME = re.compile(
    r"(?<![\w./@-])(?P<host>(?=[A-Za-z]{1,62}[\d-])[A-Za-z][\w-]{1,62}(?:\.[A-Za-z][\w-]{0,62}){0,5}"
    r"\.(?:internal|local|lan|cluster|compute|corp|intra|hpc|edu|private|ac\.\w\w|"
    r"(?:svc\.)?cluster\.local|amazonaws\.com))\b"
)
# what clouds name their machines, and the domains that only machines of a cloud have
_CLOUD = re.compile(
    r"(?<![\w./@-])(?P<host>(?:ip|ec2)-\d{1,3}-\d{1,3}-\d{1,3}-\d{1,3}(?:\.[a-z0-9-]{1,40}){0,6}"
    r"|(?:DESKTOP|LAPTOP|WIN)-[A-Z0-9]{7,12}|gke-[a-z0-9-]{1,40}-[0-9a-f]{8}-[a-z0-9]{4}|aks-[a-z0-9]{1,20}-\d{8}-vmss[0-9a-z]{6}"
    r"|[A-Za-z][\w-]{0,62}(?:\.[\w-]{1,62}){0,3}\.(?:internal\.cloudapp\.net|c\.[\w-]{1,40}\.internal"
    r"|compute(?:-1)?\.(?:internal|amazonaws\.com)))(?![\w-])"
)
_SHELL = re.compile(
    r"(?P<lead>(?<![\w./+-])[a-z_][\w.-]{0,31}@)(?P<host>[A-Za-z][\w-]{1,62}(?:\.[\w-]{1,62}){0,6})"
    r"(?=:[~/][^\n$#]{0,200}[$#](?:\s|$)|[ :][^\]\n]{0,100}\][$#])"
)
HOST_NAME = r"(?P<host>[A-Za-z][A-Za-z0-9-]{1,62}(?:\.[A-Za-z0-9][A-Za-z0-9-]{0,62}){0,6})"
_PLACES = re.compile(
    r"(?:\b(?:MASTER_ADDR|HOSTNAME|SLURMD_NODENAME|SLURM_LAUNCH_NODE_IPADDR|SLURM_TOPOLOGY_ADDR"
    r"|NODE_NAME|COMPUTERNAME"
    r"|NODENAME|POD_NAME)[\"']?\s*[=:]\s*[\"']?"
    r"|^[ \t]{0,40}\[?\d{0,3}\]?:?[ \t]{0,40}host(?:name)?[ \t]{0,40}: |\bhost(?:name)?[=:][\"']?"
    r"|\bnode[=:]\s?[\"']?"
    r"|\b(?:on|from|of) node |\bclient socket .{0,40}?\["
    r"|\b[Cc]onnect(?:ing|ion|ed)? (?:to|from|with) (?:the )?\[?"
    r"|\b[Rr]emote (?:peer|host) |\bnode name |\b[Nn]ode failure on |\bkubelet, |\bnode/|\bNode:\s{1,12}"
    r"|\b(?:not known|resolve host(?:name)?):? [\"']?|\bgetaddrinfo\(?[\"' ]?|\blookup "
    r"|\bgethostname\(\)[ =>:-]{1,6}[\"']?|\bssh (?:-[a-zA-Z]{1,8} ){0,4}"
    r"|\b(?:tcp|rdzv|c10d|etcd|http)://)" + HOST_NAME + r"(?![\w.-]*[(])(?!/(?!\d)|[\w.-]*/(?!\d))",
    re.MULTILINE,
)
# prefixes and messages that hold nothing but a host there, so that a bare word is one too
_SURE = tuple(
    re.compile(form.replace("HOST", HOST_NAME), re.MULTILINE)
    for form in (
        r"\bsrun: error: HOST: tasks? \d",
        r"\bsrun: error: Node failure on HOST",
        r"\b(?:STEP|JOB) [\d.+]{1,30} ON HOST CANCELLED",
        r"\bslurm(?:stepd|d)-HOST: ",
        r"^(?:\[\d{10}\.\d{6}\] )?\[HOST:\d{1,8}:\d{1,8}(?::\d{1,8})?\] +"
        r"(?:[a-z_0-9]{1,40}\.[ch]:\d|Caught signal )",
        r"^\[HOST:\d{1,8}\] "
        r"(?:\*\*\* |PMIX |PRTE |ORTE |OPAL |\[\[\d|mca_|Signal: |Signal code|Failing at|\[ ?\d+\] )",
        r"^(?:\[?\d?\]?:? ?)HOST:\d{1,8}:\d{1,8} \[\d{1,4}\] NCCL ",
        r"^ {0,8}(?:Local|Remote|Peer) host: {1,12}HOST",
        r"\bon node HOST exited on signal",
        r"\[(?:proxy:\d{1,5}:\d{1,5}|mpiexec|hydra\w{0,20})@HOST\]",
        r"^\[HOST:mpi_rank_\d{1,6}\]",
        r"^HOST: (?:bash|sh|zsh|ssh|ksh|csh|tcsh): ",
        r"\bpdsh@HOST: ",
        r"\bSuccessfully assigned \S{1,200} to HOST",
        r"\bnode/HOST (?:cordoned|uncordoned|drained|already|evicted|labeled|tainted)",
        r"\bkubelet, HOST\b",
        r"\bNode HOST (?:status is now|has been|is not)",
        r"\bconnect to host HOST port \d",
        r"^Node: {1,12}HOST/\d",
        r"\bName or service not known: [\"']?HOST",
        r"\bnetwork addresses of \(HOST, \d",
        r"\b[Rr]esolve host(?:name)? [\"']?HOST",
        r"\bgetaddrinfo\([\"']?HOST[\"']?,",
        r"^HOST(?::\d{1,3})? {1,8}slots ?= ?\d",
        r"^(?:\d{1,3}\.){3}\d{1,3}[ \t]{1,12}HOST[ \t]{1,12}[A-Za-z][\w.-]{2,100}$",
        r"^(?:\d{1,3}\.){3}\d{1,3}[ \t]{1,12}[A-Za-z][\w.-]{2,100}[ \t]{1,12}HOST$",
    )
)
_BEFORE = re.compile(
    r"^(?:\[?\d?\]?:? ?)"
    + HOST_NAME
    + r"(?=:\d{1,8}:\d{1,8} \[|:\d{3,8}:\d{3,8} NCCL| kernel: |: \[\d{4}-\d\d-\d\d)",
    re.MULTILINE,
)
_SYSLOG = re.compile(
    r"^(?:[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d|\d{4}-\d\d-\d\dT[\d:.,+Z-]{8,24}) "
    + HOST_NAME
    + r" [\w./()-]{1,60}(?:\[\d+\])?: ",
    re.MULTILINE,
)
# "[default0]:2026-11-27" is torchrun's prefix before a time, no host with a port
_PORTED = re.compile(
    r"\["
    + HOST_NAME
    + r"\]:\d{2,5}\b(?!-\d\d-|/\d\d/|:\d\d:\d\d)|(?<![\w./-])(?=[\w.-]{0,60}\d)"
    + HOST_NAME.replace("host", "other")
    + r"<\d{2,5}>"
)


def machines(text: str) -> set[str]:
    """Names of machines that the text shows to be such; of a full name its first part too."""
    likely: set[str] = set()
    for pattern in (PROMPT, _FULL_NAME, _CLOUD, _PLACES, _BEFORE, _SYSLOG, _PORTED):
        for match in pattern.finditer(text):
            likely.add(match["host"] or match["other"] if pattern is _PORTED else match["host"])
    for match in NODE_LIST.finditer(text):
        likely.update(
            name for name in re.split(r"[,\s]", match["list"]) if "[" not in name and "]" not in name
        )
    sure = {match["host"] for pattern in _SURE for match in pattern.finditer(text)}
    return {name for name in _parts(likely) if tells(name, "hosts")} | {
        name for name in _parts(sure) if tells(name, "hosts", sure=True)
    }


def in_prompts(text: str, stand_in: Callable[[str], str]) -> str:
    """The text with ``stand_in(name)`` for hosts in prompts: "box" is one there only."""
    return _SHELL.sub(
        lambda found: (
            found["lead"] + stand_in(found["host"]) if tells(found["host"], "hosts", sure=True) else found[0]
        ),
        text,
    )


def _parts(names: set[str]) -> set[str]:
    return {part for name in names if name for part in (name, name.split(".")[0])}
