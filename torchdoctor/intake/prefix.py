"""What stands before the message of a line: rank and stream tags, times, levels, logger names.

Known tags are taken off one after another. A prefix that is not known is learned from the place where a
traceback header or a frame stands behind it (``Prefixes.learn``).
"""

from __future__ import annotations

import re

from torchdoctor.intake.draft import NO_MARK, Mark, pattern

_MONTHS = {m: i for i, m in enumerate("Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(), 1)}
_LEVELS = (
    "INFO", "WARNING", "ERROR", "DEBUG", "CRITICAL", "FATAL", "WARN", "TRACE", "NOTICE", "EXCEPTION",
    "info", "warning", "error", "debug", "critical", "fatal", "warn",
)  # fmt: skip
_LEVEL = "|".join(_LEVELS[:10])
_LETTER_LEVELS = {"E": "ERROR", "W": "WARNING", "I": "INFO", "F": "FATAL", "D": "DEBUG", "V": "DEBUG"}

_TIME = (
    r"(?P<y>\d{4})[-/](?P<mo>\d\d)[-/](?P<d>\d\d)[T _](?P<h>\d\d):(?P<mi>\d\d):(?P<s>\d\d)(?:[.,](?P<f>\d{1,9}))?"
    r"(?: ?(?P<z>Z|[+-]\d\d:?\d\d))?"
    r"|(?P<mo2>\d\d)/(?P<d2>\d\d)/(?P<y2>\d{4}) (?P<h2>\d\d):(?P<mi2>\d\d):(?P<s2>\d\d)(?:[.,](?P<f2>\d{1,9}))?(?: [AP]M)?"
    r"|(?P<y4>\d\d)[-/](?P<mo4>\d\d)[-/](?P<d4>\d\d) (?P<h4>\d\d):(?P<mi4>\d\d):(?P<s4>\d\d)(?:[.,](?P<f4>\d{1,9}))?"
    r"|(?P<mo3>\d\d)[-/](?P<d3>\d\d) (?P<h3>\d\d):(?P<mi3>\d\d):(?P<s3>\d\d)(?:[.,](?P<f3>\d{1,9}))?"
    r"|(?P<h5>\d\d):(?P<mi5>\d\d):(?P<s5>\d\d)(?:[.,](?P<f5>\d{1,9}))?(?=[ \]|:,-])"
)
# After a time: a separator, then level and logger name in any order and dress.
_AFTER_TIME = (
    r"(?P<sep>:? - |:? ?\| ?|: ?|,| >> ?|-(?=:? ?\w)| )?"
    rf"(?:\[?(?P<l1>{_LEVEL})\]?(?:\s*(?:- |\| ?|: ?)|\s+))?"
    r"(?P<logger>[\w./<>-]{1,60}(?::\d+)?(?: - | *\| | >> )|\[[\w/.-]{1,80}(?::\d+)?(?::\w+)?\]\s)?"
    rf"(?:\[?(?P<l2>{_LEVEL})\]?(?:\s*(?:- |\| ?|: ?)|\s+))?"
    r"(?P<logger2>[\w./<>-]{1,60}(?::\d+)?(?: - | *\| )|\[[\w/.-]{1,80}\.\w+:\d+(?::\w+)?\] )?"
)
_TAG = (
    r"\[rank(?P<rank>\d{1,6})\]: ?|\[default(?P<local>\d{1,4})\]:|\[(?P<job>\d{1,4}),(?P<mpi>\d{1,6})\]<std(?:err|out)>: ?"
    r"|\[(?P<pod>pod/[\w./-]{1,120})\] |\[(?P<torchx>[\w.-]{1,40}/\d{1,5})\]:? ?|\[[Rr]ank[ :]?(?P<rank2>\d{1,6})\]:? ?"
)
_ACTOR = (
    r"\((?P<name>[\w.:<>-]{0,80}(?:\([^()]{0,60}\))?) ?pid=(?P<pid>\d+)(?:, ip=(?P<ip>[\d.]+))?[^)]{0,60}\) "
    r"|\((?P<ray>raylet|gcs_server|autoscaler[^)]{0,40})\) "
)
_SYSLOG = r"(?P<mon>[A-Z][a-z]{2}) +(?P<day>\d{1,2}) (?P<clock>\d\d:\d\d:\d\d)(?:\.\d+)? (?P<host>[\w.-]{1,64}) (?P<proc>[\w./@-]{1,64})(?:\[(?P<pid>\d+)\])?: ?"
_JOURNAL = r"(?P<host>[\w.-]{1,64}) (?P<proc>[\w./@-]{1,64})\[(?P<pid>\d+)\]: ?"
_GLOG = r"(?P<lvl>[EWIFD])(?P<mo>\d\d)(?P<d>\d\d) (?P<clock>\d\d:\d\d:\d\d\.\d+) +\d+ (?P<where>[\w./-]{1,160}):\d+\] ?(?P<id>\[\d+/\d+(?:_\d+)?\] ?)?"
_C10D = r"\[(?P<lvl>[EWIF])(?P<md>\d{3,4})?(?: (?P<clock>\d\d:\d\d:\d\d\.\d+))? ?(?P<where>[\w./-]{1,80}\.(?:cpp|hpp|cc|cu|h)):\d+\]"
_SHORT_RECORD = rf"\[?(?P<level>{_LEVEL})(?:\]|(?=[ :|]))"


def split(text: str, learned: list[re.Pattern[str]]) -> tuple[Mark, int, int]:
    """(mark, where the text without stream tags begins, where the bare message begins)."""
    first = text[:1]
    if not learned and (first.islower() or first == " " or not first or first in "/^~<-=+*_"):
        return NO_MARK, 0, 0
    mark = Mark()
    at = shown = 0
    keys: list[str] = []
    for _ in range(8):
        step = _take(text, at, mark, keys)
        if step is None:
            step = _take_learned(text, at, mark, keys, learned)
            if step is None:
                break
        end, tag = step
        if tag and shown == at:
            shown = end
        at = end
        if mark.record:
            break
    if at == 0 and not mark.level:
        return NO_MARK, 0, 0
    mark.key = "/".join(keys)
    return mark, shown, at


def _take(text: str, at: int, mark: Mark, keys: list[str]) -> tuple[int, bool] | None:
    """One known token at ``at``: (its end, whether it is a stream tag), filling ``mark``."""
    char = text[at : at + 1]
    if char == "[":
        return _bracket(text, at, mark, keys)
    if char.isdigit():
        return _number(text, at, mark, keys)
    if char == "(":
        found = pattern(_ACTOR).match(text, at) if "pid=" in text[at : at + 160] or "(raylet)" in text[at : at + 9] else None
        if found is None:
            return None
        name = found["ray"] or found["name"] or ""
        keys.append(f"{name} pid={found['pid']}".strip() if found["pid"] else name)
        mark.host = found["ip"] or mark.host
        inner = pattern(r"rank=(\d+)").search(name)
        if inner:
            mark.rank = int(inner[1])
        return found.end(), True
    if char.isupper():
        return _capital(text, at, mark, keys)
    if char in "|│" and text[at + 1 : at + 2] == " " and text.rstrip()[-1:] != char and at + 2 < len(text):
        return at + 2, False
    if char == "#":
        found = pattern(r"#\d{1,4} (?:\d+\.\d+ )?(?=\S)").match(text, at)  # docker build
        return (found.end(), False) if found else None
    return None


def _bracket(text: str, at: int, mark: Mark, keys: list[str]) -> tuple[int, bool] | None:
    second = text[at + 1 : at + 2]
    if second in "rdRp" or "]<std" in text[at : at + 16]:
        found = pattern(_TAG).match(text, at)
        if found:
            return _tag(found, mark, keys)
    if second.isdigit() or second in " T":
        found = pattern(rf"\[ ?(?:{_TIME})(?P<rest>[^\]]{{0,60}})\]").match(text, at)
        if found:
            return _bracket_time(text, found, mark, keys)
        if pattern(r"\[ *\d{1,9}\.\d{6}\] ").match(text, at):
            mark.logger = "kernel"
            mark.record = True
            return at, False  # dmesg: the time since boot stays in the text
    if second in "EWIF":
        found = pattern(_C10D).match(text, at)
        if found:  # stays in the text: rules know the file names; rank, level and time are taken from it
            mark.level = _LETTER_LEVELS[found["lvl"]]
            mark.logger = found["where"]
            if found["clock"] and found["md"]:
                month, day = found["md"][:-2], found["md"][-2:]
                mark.time = f"--{int(month):02d}-{day}T{found['clock']}"
            rank = pattern(r"\bRank (\d{1,6})\]").search(text, found.end(), found.end() + 120)
            if rank and mark.rank is None:
                mark.rank = int(rank[1])
            mark.record = True
            return at, False
    if second.isupper():
        found = pattern(rf"\[(?P<level>{_LEVEL})(?P<rest>[|:][^\]]{{0,80}})?\]\s*(?:[-:]\s+)?").match(text, at)
        if found:
            mark.level = found["level"]
            mark.logger = (found["rest"] or "")[1:]
            mark.record = True
            end = found.end()
            when = pattern(rf"(?:{_TIME})").match(text, end) or pattern(rf"[|]({_TIME})").match(found["rest"] or "")
            if when:
                mark.time = _iso(when)
                if when.string is text:
                    end = when.end()
            arrow = pattern(r"(?: ?[\w.:-]{1,120})? ?>> ?").match(text, end)
            return (arrow.end() if arrow else end), False
        found = pattern(r"\[(?:(?P<dow>\w{1,12}) )?(?P<rest>[^\[\]]{8,30} \d{4})\] ").match(text, at)  # dmesg -T, any language
        if found and pattern(r"\d\d:\d\d:\d\d \d{4}$").search(found["rest"]):
            return _dmesg_time(found, mark, at)
    elif second and ord(second) > 127:
        found = pattern(r"\[(?:(?P<dow>\w{1,12}) )?(?P<rest>[^\[\]]{8,30} \d{4})\] ").match(text, at)
        if found and pattern(r"\d\d:\d\d:\d\d \d{4}$").search(found["rest"]):
            return _dmesg_time(found, mark, at)
    return None


def _dmesg_time(found: re.Match[str], mark: Mark, at: int) -> tuple[int, bool]:
    parts = pattern(r"(\w+) +(\d{1,2}) (\d\d:\d\d:\d\d) (\d{4})$").search(found["rest"])
    if parts:
        month = _MONTHS.get(parts[1]) or int("".join(c for c in parts[1] if c.isdigit()) or 0)
        if 1 <= month <= 12:
            mark.time = f"{parts[4]}-{month:02d}-{int(parts[2]):02d}T{parts[3]}"
    mark.logger = "kernel"
    mark.record = True
    return at, False


def _tag(found: re.Match[str], mark: Mark, keys: list[str]) -> tuple[int, bool]:
    group = found.groupdict()
    if group["rank"] or group["rank2"]:
        rank = group["rank"] or group["rank2"]
        mark.rank = int(rank)
        if mark.local_rank is None:  # one process writes [default1]: with and without [rank1]:
            keys.append(f"rank{rank}")
    elif group["local"]:
        mark.local_rank = int(group["local"])
        keys.append(f"default{group['local']}")
    elif group["mpi"]:
        mark.rank = int(group["mpi"])
        keys.append(f"{group['job']},{group['mpi']}")
    else:
        keys.append(group["pod"] or group["torchx"])
    return found.end(), True


def _bracket_time(text: str, found: re.Match[str], mark: Mark, keys: list[str]) -> tuple[int, bool]:
    mark.time = _iso(found)
    rest = found["rest"].strip(" ,.|")
    parallel = pattern(r"^(?:[A-Z]{2}\d{1,4} ?){1,4}$").match(rest)
    if parallel:  # sglang: [2025-01-29 09:03:12 TP5]
        keys.append(rest)
        tensor = pattern(r"\bTP(\d+)").search(rest)
        if tensor and "PP" not in rest and "DP" not in rest:
            mark.rank = int(tensor[1])
        mark.record = True
        end = found.end()
        return (end + 1 if text[end : end + 1] == " " else end), True
    level = pattern(rf"\b({_LEVEL})\b").search(rest)
    if level:
        mark.level = level[1]
    mark.record = True
    tail = pattern(
        rf"(?:\s?:\s|\s)?(?:\[?(?P<a>{_LEVEL})\]?:?\s*|\[(?P<lg>[\w./:-]{{1,80}})\]|(?P<nm>[\w.]{{3,80}}): (?=\[)){{0,3}}(?:\s?-\s)?(?:\[[\w./-]+:\d+(?::\w+)?\])? ?"
    ).match(text, found.end())
    end = found.end()
    if tail:
        end = tail.end()
        mark.level = tail["a"] or mark.level
        mark.logger = tail["lg"] or tail["nm"] or text[found.end() : end].strip()
    return end, False


def _number(text: str, at: int, mark: Mark, keys: list[str]) -> tuple[int, bool] | None:
    found = pattern(_TIME).match(text, at)
    if found:
        mark.time = _iso(found)
        end = found.end()
        journal = pattern(_JOURNAL).match(text, end + 1) if text[end : end + 1] == " " else None
        if journal:
            mark.host = journal["host"]
            keys.append(f"{journal['proc']}[{journal['pid']}]")
            return journal.end(), True
        glued = pattern(r":? (?=\[(?:rank|default|\d+,\d+\]<std))| (?=[EWIF]\d{4} )").match(text, end)
        if glued:
            return glued.end(), True
        tail = pattern(_AFTER_TIME).match(text, end)
        if tail and tail.end() > end:
            mark.level = tail["l1"] or tail["l2"]
            mark.logger = (tail["logger"] or tail["logger2"] or "").strip(" -|>[]")
            if not mark.level and not mark.logger and tail["sep"] in (" ", ": "):
                return end + len(tail["sep"]), True  # a log shipper's time: a tag, the line itself comes after it
            mark.record = True
            return tail.end(), False
        return (end, True) if end == len(text) else None
    found = pattern(r"(\d{1,5}): ").match(text, at)  # srun -l
    if found and at == 0:
        mark.rank = int(found[1])
        keys.append(found[1])
        return found.end(), True
    if pattern(r"\d{1,5}:$").match(text, at) and at == 0:
        mark.rank = int(text[:-1])
        keys.append(text[:-1])
        return len(text), True
    return None


def _capital(text: str, at: int, mark: Mark, keys: list[str]) -> tuple[int, bool] | None:
    if text[at] in "EWIFD" and text[at + 1 : at + 5].isdigit():
        found = pattern(_GLOG).match(text, at)
        if found:
            mark.level = _LETTER_LEVELS[found["lvl"]]
            mark.time = f"--{found['mo']}-{found['d']}T{found['clock']}"
            mark.logger = found["where"]
            mark.record = True
            return found.end(), False
    if text[at : at + 3] in _MONTHS and text[at + 3 : at + 4] == " ":
        found = pattern(_SYSLOG).match(text, at)
        if found:
            mark.host = found["host"]
            mark.time = f"--{_MONTHS[found['mon']]:02d}-{int(found['day']):02d}T{found['clock']}"
            if found["proc"] == "kernel":
                mark.logger = "kernel"
                mark.record = True
            else:
                keys.append(f"{found['proc']}[{found['pid']}]" if found["pid"] else found["proc"])
            return found.end(), True
    if text.startswith(_LEVELS, at):
        found = pattern(_SHORT_RECORD).match(text, at)
        if found is None:
            return None
        mark.level = found["level"]
        end = found.end()
        when = pattern(rf" (?:{_TIME})(?: \[(?P<where>[\w./:-]{{1,120}})\])? ?").match(text, end)
        if when:  # vLLM: ERROR 01-02 03:04:05 [core.py:390] message
            mark.time = _iso(when)
            mark.logger = when["where"] or ""
            mark.record = True
            return when.end(), False
        name = pattern(r":([\w.]{1,120}):(?=\S)").match(text, end)
        if name:  # logging.basicConfig: LEVEL:logger:message
            mark.logger = name[1]
            mark.record = True
            return name.end(), False
        rest = pattern(r":? +(?:\| )?").match(text, end)
        if rest:
            mark.record = True
            return rest.end(), False
    return None


def _iso(found: re.Match[str]) -> str:
    """ISO 8601; a month and day without year as --MM-DD, a bare clock as hh:mm:ss."""
    group = found.groupdict()
    for end, form in (("", "{y}-{mo}-{d}T"), ("2", "{y2}-{mo2}-{d2}T"), ("4", "20{y4}-{mo4}-{d4}T"), ("3", "--{mo3}-{d3}T"), ("5", "")):
        if group.get("h" + end):
            date = form.format(**group)
            fraction = f".{group['f' + end]}" if group.get("f" + end) else ""
            zone = (group["z"] or "") if not end else ""
            return f"{date}{group['h' + end]}:{group['mi' + end]}:{group['s' + end]}{fraction}{zone}"
    return ""


def _take_learned(
    text: str, at: int, mark: Mark, keys: list[str], learned: list[re.Pattern[str]]
) -> tuple[int, bool] | None:
    for shape in learned:
        found = shape.match(text, at)
        if found and found.end() > at:
            name = identity(found[0])
            if name:
                keys.append(name)
                number = pattern(r"(?:^|[^a-z])rank[ =:_-]?(\d+)").search(name.lower())
                if number:
                    mark.rank = int(number[1])
                elif pattern(r"^[\w.-]*[a-z][\w.-]*$").match(name) and mark.host is None:
                    mark.host = name
            return found.end(), True
    return None


def identity(prefix: str) -> str:
    """The part of a prefix that tells one process from another: without times, counters and source lines."""
    name = pattern(rf"(?:{_TIME})").sub("", prefix)
    name = pattern(r"[\w./-]+\.(?:py|cc|cpp|go|rs):\d+|\d+\.\d+").sub("", name)
    name = pattern(rf"\b(?:{_LEVEL})\b").sub("", name)
    return name.strip(" \t:|>[](){}-#")


def shape_of(prefix: str) -> re.Pattern[str]:
    """A pattern for prefixes that differ from this one in numbers only."""
    return re.compile(pattern(r"\d+").sub(r"\\d+", re.escape(prefix)))
