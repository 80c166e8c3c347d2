"""Where the name of a person stands: in paths, tables of tools, messages of logins."""

from __future__ import annotations

import re
from collections.abc import Callable

from torchdoctor.share.names import COMMON, is_folder, is_stand_in, tells

_NAME = r"(?P<name>[^/\\\s\"':,;)\]}<>*|%$]+)"
_LOGIN = r"(?P<name>[A-Za-z_][\w.-]{0,31})"
# /home/alice, /gpfs/home/alice, /Users/bob, C:\Users\carol, /lustre/scratch/dave, /data/users/erin;
# not /gpfs/u/home/PROJECT/alice, which has a form of its own
HOME = re.compile(
    r"(?P<lead>(?:(?<![\w.-])|(?<=[\w-])(?<!/gpfs/u))(?:/|\\\\?|[A-Za-z]:[/\\]{1,2})(?:homes?\d*|[Uu]sers?|nethome"
    r"|scratch\d*|lustre/work)"
    r"[/\\]{1,2}(?:(?:gpfs|lustre|beegfs|ssd|nvme|fs\d+|(?<=scratch/)users?|project_\d{3,10})[/\\]{1,2})?(?:[a-z][/\\]{1,2})?)"
    + _NAME
)
_PROJECT_HOME = re.compile(
    r"(?P<lead>/gpfs/u/(?:home|scratch|barn|scratch-shared)/[A-Z][A-Z0-9]{1,9}/)" + _NAME
)
# roots of shared file systems: what lies right under them is often a person's
_SHARED = re.compile(
    r"(?P<lead>(?<![\w.-])(?:/mnt|/work|/net|/export|/gpfs|/lustre|/p)?/(?:data\d*|nfs\d*|raid\d*|beegfs|gpfs\d*"
    r"|lustre\d*|panfs|weka|vast|nvme\d*|ssd\d*|hdd\d*|storage\d*|nas\d*|fsx|efs|filestore|netscratch|u)/)"
    r"(?P<name>(?=[\w.-]{3})[a-z][a-z0-9]{0,20}(?:[._-][a-z0-9]{1,16})?)(?=/)"
)
# a name with a space in it, which only a path can end
_WINDOWS_HOME = re.compile(
    r"(?P<lead>\b[A-Za-z]:[/\\]{1,2}[Uu]sers[/\\]{1,2})"
    r"(?P<name>[^/\\\"'<>|:*?\n\s]{1,32}(?: [^/\\\"'<>|:*?\n\s]{1,32}){1,3})"
    r"(?=[/\\])"
)
_PROFILE = re.compile(
    r"(?P<lead>\\{2,4}[\w.$-]{1,63}\\{1,2}(?:[Pp]rofiles?|[Uu]sers?|[Hh]omes?|[Uu]ser[Dd]ata|[Rr]edirected)\$?\\{1,2})"
    r"(?P<name>[A-Za-z][\w.-]{1,31})(?=\\|[\s'\"]|$)"
)
# ~alice/train.py; ~orch without a path is how pip names what it could not remove
_TILDE = re.compile(r"(?P<lead>(?<![\w/.~)])~)(?P<name>[a-z][\w.-]{1,31})(?=/)")
_LDAP = re.compile(r"(?P<lead>\b(?:cn|CN|uid|UID)=)(?P<name>[^,\n=]{2,60})(?=, ?(?:ou|OU|dc|DC|o|O)=)")
# CORP\alice: not the "\n" of a text that was printed with its escapes
_DOMAIN = re.compile(
    r"(?P<lead>(?<![\\/\w:.])(?:(?<=user )|(?<=account )|(?<=owner )|(?<= as )|(?<= by )"
    r"|(?=[A-Z\d-]{2,15}\\[^abfnrtuvx0N]))"
    r"[A-Z][A-Z\d-]{1,14}\\)(?P<name>[A-Za-z][\w.-]{1,31})(?=[\s'\"),;:]|$)"
)
# taken out where they stand; what they hold need not be a name elsewhere
PLACES = (_WINDOWS_HOME, _PROJECT_HOME, HOME, _PROFILE, _TILDE, _LDAP, _DOMAIN)

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
# messages that name who logged in, asked or owns
_TOLD = tuple(
    re.compile(form.replace("NAME", _LOGIN), re.MULTILINE)
    for form in (
        r"\bsudo:\s{1,8}NAME : ",
        r"\[sudo\] password for NAME",
        r"(?:^|\s)NAME is not in the sudoers file",
        r"\bsession (?:opened|closed) for user NAME",
        r"\b(?:Accepted|Failed) [a-z/-]{4,30} for (?:invalid user )?NAME from ",
        r"\bInvalid user NAME from ",
        r"\bmachine \S{1,80}\s{1,10}login NAME\s",
        r"\bownership of '[^'\n]{1,200}'(?:: | from \S{1,64} to )NAME:[a-z]",
        r"\bchown (?:-\S{1,20} ){0,3}NAME:",
        r"\b(?:snowsql|psql|mysql\w{0,8}|squeue|sacct|scancel|pkill|pgrep|quota|crontab)\b[^\n|;]{0,120}?"
        r" -[uU] ?NAME(?=\s|$)",
    )
)


def _row(*columns: str, indented: bool = False) -> re.Pattern[str]:
    """A row of a table: what each column holds, NAME being that of the person (ps cuts it with a "+")."""
    row = " {1,20}".join(columns).replace("NAME", r"(?P<name>[A-Za-z_][\w.-]{0,31})\+?")
    return re.compile(("^ {0,20}" if indented else "^") + row, re.MULTILINE)


_COUNT, _AMOUNT, _STATE_OF = r"\d{1,14}", r"[\d.]{1,9}[kmgtp]?", r"[DIRSTtWXZ]"
_TABLES = (
    # squeue: JOBID PARTITION NAME USER ST TIME NODES
    _row(
        r"\d{1,10}(?:_\S{1,20})?", r"\S{1,40}", r"\S{1,40}", "NAME", r"[A-Z]{1,3}",
        r"(?:\d+-)?[\d:]{4,8}", r"\d",
        indented=True,
    ),
    # ps aux: USER PID %CPU %MEM VSZ RSS TTY STAT
    _row("NAME", r"\d{1,8}", r"\d{1,5}\.\d", r"\d{1,3}\.\d", _COUNT, _COUNT, r"\S{1,10}", _STATE_OF),
    # ps -ef: UID PID PPID C STIME TTY TIME
    _row(
        "NAME", r"\d{1,8}", r"\d{1,8}", r"\d{1,3}", r"(?:\d\d:\d\d|[A-Z][a-z]{2}\d\d|\d{4})",
        r"(?:\?|pts/\d+|tty\w+) ",
    ),
    # top: PID USER PR NI VIRT RES SHR S
    _row(
        r"\d{1,8}", "NAME", r"(?:-?\d{1,3}|rt)", r"-?\d{1,3}", _AMOUNT, _AMOUNT, _AMOUNT, _STATE_OF + " ",
        indented=True,
    ),
    # who: NAME LINE TIME
    _row("NAME", r"(?:pts/\d{1,5}|tty\d{1,3})", r"\d{4}-\d\d-\d\d "),
)  # fmt: skip
_LISTED = re.compile(
    r"^[bcdlps-](?:[r-][w-][xsS-]){2}[r-][w-][xtT-][.+@]? {1,8}\d{1,8} {1,8}"
    r"(?P<name>[A-Za-z_][\w.-]{0,31}) {1,8}"
    r"(?P<group>[A-Za-z_][\w.-]{0,31}) {1,12}[\d.,]{1,20}[KMGTP]? ",
    re.MULTILINE,
)
_PASSWD = re.compile(
    r"^(?P<name>[a-z_][\w.-]{0,31}):[x*!]{0,2}:\d{1,10}:\d{1,10}:(?P<full>[^:\n,]{0,60})[^:\n]{0,60}:"
    r"[^:\n]{0,200}:[^:\n]{0,100}$",
    re.MULTILINE,
)
# Jane Doe <jane@lab.org>
_WITH_MAIL = re.compile(r"(?P<name>\b[A-Z][\w.'-]{1,30}(?: [A-Z][\w.'-]{0,30}){1,3}) <(?=[\w.+-]{1,64}@)")
PROMPT = re.compile(
    r"(?<![\w./+-])(?P<user>[a-z_][\w.-]{0,31})@(?P<host>(?!example\.)[A-Za-z][\w-]{1,62}"
    r"(?:\.[\w-]+)*)(?=[:\s~\]]|$)"
)


def people(text: str) -> set[str]:
    """Names of people that the text shows to be such, and that are then taken out wherever they stand."""
    found = {
        match["name"]
        for pattern in (HOME, _PROJECT_HOME, _PROFILE, _STATE, _VARIABLE, _WHO, _NUMBERED, *_TOLD, *_TABLES)
        for match in pattern.finditer(text)
        if not match["name"].startswith("person")
    }
    found |= {match["user"] for match in PROMPT.finditer(text)}
    found |= {match["name"] for match in _WITH_MAIL.finditer(text)}
    for pattern, groups in ((_LISTED, ("name", "group")), (_PASSWD, ("name", "full"))):
        found |= {match[group] for match in pattern.finditer(text) for group in groups if match[group]}
    return {name for name in found if tells(name, "users")}


def in_places(text: str, stand_in: Callable[[str], str]) -> str:
    """The text with ``stand_in(name)`` for what stands where only a person's name can."""

    def replaced(found: re.Match[str]) -> str:
        name = found["name"]
        if name.lower() in COMMON or is_stand_in(name, "users") or not re.search(r"[A-Za-z]", name):
            return found[0]
        return found["lead"] + stand_in(name)

    for pattern in PLACES:
        text = pattern.sub(replaced, text)
    return _SHARED.sub(lambda found: found[0] if is_folder(found["name"]) else replaced(found), text)
