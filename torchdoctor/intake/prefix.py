"""What stands before the message of a line: rank and stream tags, times, levels, logger names.

Known tags are taken off one after another. A prefix that is not known is learned from the place where a
traceback header or a frame stands behind it (``learning.py``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchdoctor.intake.elements import NO_MARK, Mark
from torchdoctor.intake.times import MONTHS, kernel_time, match_time
from torchdoctor.patterns import pattern

if TYPE_CHECKING:
    import re

    from torchdoctor.intake.learning import Shape

_LEVELS = (
    "INFO", "WARNING", "ERROR", "DEBUG", "CRITICAL", "FATAL", "WARN", "TRACE", "NOTICE", "EXCEPTION",
    "info", "warning", "error", "debug", "critical", "fatal", "warn",
)  # fmt: skip
_LEVEL = "|".join(_LEVELS[:10])
_LETTER_LEVELS = {"E": "ERROR", "W": "WARNING", "I": "INFO", "F": "FATAL", "D": "DEBUG", "V": "DEBUG"}

# After a time: a separator, then level and logger name in any order and dress.
_AFTER_TIME = (
    rf"(?P<sep>:? - |:? ?\| ?|: ?|,| >> ?|-(?=:? ?\w)| (?: (?=(?:{_LEVEL})\b))?)?"
    rf"(?:\[?(?P<l1>{_LEVEL})\]?(?:\s*(?:- |\| ?|: ?)|\s+))?"
    rf"(?P<logger>[\w./<>-]{{1,60}}(?::\d+)?(?: - | *\| | >> )|[a-z_][\w.]{{1,40}} (?=(?:{_LEVEL})\s)|"
    r"\[[A-Za-z/][\w/.-]{0,80}(?::\d+)?(?::\w+)?\]\s)?"
    rf"(?:\[?(?P<l2>{_LEVEL})\]?(?:\s*(?:- |\| ?|: ?)|\s+))?"
    r"(?P<logger2>[\w./<>-]{1,60}(?::\d+)?(?: - | *\| )|\[[\w/.-]{1,80}\.\w+:\d+(?::\w+)?\] )?"
)
_TAG = (  # 1,mpirank:3,algo-1 is SageMaker's
    r"\[rank(?P<rank>\d{1,6})\]: ?|\[default(?P<local>\d{1,4})\]:"
    r"|\[(?:[\w.-]{1,64}@)?(?P<job>\d{1,4}),(?:mpirank:)?(?P<mpi>\d{1,6})(?:,algo-\d{1,4})?\]"
    r"<std(?:err|out|diag)>: ?"
    r"|\[(?P<pod>pod/[\w./-]{1,120})\] |\[(?P<torchx>[\w.-]{1,40}/\d{1,5})\]:? ?|\[(?:rank|Rank|RANK)[ "
    r":]{0,2}(?P<rank2>\d{1,6})\]:? ?|\[(?P<hvd>\d{1,6})\]<std(?:err|out)>: ?"
)
_ACTOR = (
    r"\((?P<name>[\w.:<>-][\w.:<>, =-]{0,80}?(?:\([^()]{0,60}\))?)?,? ?pid=(?P<pid>\d+)(?:, "
    r"ip=(?P<ip>[\d.]+))?[^)]{0,60}\) "
    r"|\((?P<ray>raylet|gcs_server|autoscaler[^)]{0,40})\) "
)
_SYSLOG = (
    r"(?P<mon>[A-Z][a-z]{2}) +(?P<day>\d{1,2}) (?P<clock>\d\d:\d\d:\d\d)(?:\.\d+)? (?P<host>[\w.-]{1,64}) "
    r"(?P<proc>[\w./@-]{1,64})(?:\[(?P<pid>\d+)\])?: ?"
)
SINCE_BOOT = r"\[ *\d{1,9}\.\d{6}\] "  # the kernel's own clock, in seconds
_JOURNAL = r"(?P<host>[\w.-]{1,64}) (?:(?P<kernel>kernel): ?|(?P<proc>[\w./@-]{1,64})\[(?P<pid>\d+)\]: ?)"
_GLOG = (
    r"(?P<lvl>[EWIFDV])(?P<mo>\d\d)(?P<d>\d\d) (?P<clock>\d\d:\d\d:\d\d\.\d+) +\d+ "
    r"(?P<where>[\w./-]{1,160}):\d+\] ?(?P<id>\[\d+/\d+(?:_\d+)?\] ?)?(?:\[__\w{1,40}\] ?)?"
)
_C10D = (
    r"\[(?P<lvl>[EWIF])(?P<md>\d{3,4})?(?: (?P<clock>\d\d:\d\d:\d\d\.\d+))? ?"
    r"(?P<where>[\w./-]{1,80}\.(?:cpp|hpp|cc|cu|h|ts)):\d+\]"  # torch_npu's are all in compiler_depend.ts
)
# TorchServe hands on what its workers print: [INFO ] W-9000-model_1.0-stdout MODEL_LOG - line
_TORCHSERVE = r" \[[A-Z]{4,5} ?\] (?P<worker>W-\d{1,6}-[\w.-]{1,80})-std(?:out|err) [\w.]{1,60} - ?"
_IN_RECORD = ("[rank", "[default", "[E ", "[W ", "#")  # what stands behind the prefix of a logger
_BRACKET_LEVEL = rf"\[(?P<level>{_LEVEL})(?P<rest>[|:][^\]]{{0,80}})?\]\s*(?:[-:]\s+)?"
_RANK = r"\[(?:rank|default)\d"
_SHORT_RECORD = rf"\[?(?P<level>{_LEVEL})(?:\]|(?=[ :|]))"


def split(text: str, learned: list[Shape]) -> tuple[Mark, int, int]:
    """(mark, where the text without stream tags begins, where the bare message begins)."""
    first = text[:1]
    at = 0
    if first == " " and (inner := text.lstrip(" "))[:1] == "[" and pattern(_RANK).match(inner):
        at = len(text) - len(inner)  # a block that was set in as a whole
    elif not learned and (first.islower() or first == " " or not first or first in "/^~<-=+*_"):
        return NO_MARK, 0, 0
    mark = Mark()
    shown = at
    keys: list[str] = []
    for _ in range(8):
        known = not mark.record or text.startswith(_IN_RECORD, at)
        step = _take(text, at, mark, keys) if known else None
        if step is None:
            step = _take_learned(text, at, mark, keys, learned) if learned else None
            if step is None:
                break
        end, tag = step
        if tag and shown == at:
            shown = end
        at = end
    if at == 0 and not mark.record:
        return NO_MARK, 0, 0
    mark.key = "/".join(keys)
    return mark, shown, at


def _take(text: str, at: int, mark: Mark, keys: list[str]) -> tuple[int, bool] | None:
    """One known token at ``at``: (its end, whether it is a stream tag), filling ``mark``."""
    char = text[at : at + 1]
    if char == "[":
        return _bracket(text, at, mark, keys)
    if char.isdecimal():
        return _number(text, at, mark, keys)
    if char == "(":
        found = (
            pattern(_ACTOR).match(text, at)
            if "pid=" in text[at : at + 160] or "(raylet)" in text[at : at + 9]
            else None
        )
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
        found = pattern(r"#\d{1,4} (?:\d+\.\d+ |(?=\[|DONE|ERROR|CACHED))").match(text, at)  # docker build
        return (found.end(), False) if found else None
    return None


def _bracket(text: str, at: int, mark: Mark, keys: list[str]) -> tuple[int, bool] | None:
    second = text[at + 1 : at + 2]
    if second in "rdRp" or "]<std" in text[at : at + 90]:
        found = pattern(_TAG).match(text, at)
        if found:
            return _tag(found, mark, keys)
    close = text.find("] ", at, at + 40)
    if close >= 0 and text[:close].lower().endswith(("stderr", "stdout")):  # [training STDERR], [stderr]
        keys.append(text[at + 1 : close])
        return close + 2, True
    if second.isdecimal() or second == " ":
        when = match_time(text, at + 1 + (second == " "))
        close = text.find("]", when[0], when[0] + 60) if when else -1
        if when and close >= 0:
            mark.time = when[1]
            return _bracket_time(text, text[when[0] : close].strip(" ,.|"), close + 1, mark, keys)
        if pattern(SINCE_BOOT).match(text, at):  # dmesg: the time since boot stays in the text
            return _kernel(mark, at)
    if second in "EWIF" and text[at + 2 : at + 3] in "0123456789 ":
        found = pattern(_C10D).match(text, at)
        if found:
            return _c10d(text, found, mark, at)
    if second.isupper():
        found = pattern(_BRACKET_LEVEL).match(text, at)
        if found:
            return _bracket_level(text, found, mark)
    if second and (second.isalpha() or ord(second) > 127):
        close = text.find("] ", at, at + 48)
        when_text = kernel_time(text[at + 1 : close]) if close >= 0 else None
        if when_text is not None:
            mark.time = when_text or None
            return _kernel(mark, at)
    return None


def _kernel(mark: Mark, at: int) -> tuple[int, bool]:
    mark.logger = "kernel"
    mark.record = True
    return at, False


def _c10d(text: str, found: re.Match[str], mark: Mark, at: int) -> tuple[int, bool]:
    """Take rank, level and time; the tag itself stays in the text, rules know the file names in it."""
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


def _bracket_level(text: str, found: re.Match[str], mark: Mark) -> tuple[int, bool]:
    """A level in brackets, with the place and the time that transformers puts in or behind them."""
    mark.level = found["level"]
    rest = (found["rest"] or "")[1:]
    mark.record = True
    end = found.end()
    when = match_time(text, end)
    if when:
        end, mark.time = when
    elif rest[:1].isdecimal():
        inner = match_time(rest, 0)
        mark.time = inner[1] if inner else None
    mark.logger = rest
    arrow = pattern(r"(?: ?[\w.:-]{1,120})? ?>> ?").match(text, end)
    return (arrow.end() if arrow else end), False


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
    elif group["mpi"] or group["hvd"]:
        mark.rank = int(group["mpi"] or group["hvd"])
        keys.append(f"{group['job']},{group['mpi']}" if group["mpi"] else group["hvd"])
    else:
        keys.append(group["pod"] or group["torchx"])
    return found.end(), True


def _bracket_time(text: str, rest: str, end: int, mark: Mark, keys: list[str]) -> tuple[int, bool]:
    """What stands in the brackets behind the time, and behind the brackets."""
    parallel = pattern(r"^(?:[A-Z]{2}\d{1,4} ?){1,4}$").match(rest)
    if parallel:  # sglang: [2025-01-29 09:03:12 TP5]
        keys.append(rest)
        tensor = pattern(r"\bTP(\d+)").search(rest)
        if tensor and "PP" not in rest and "DP" not in rest:
            mark.rank = int(tensor[1])
        mark.record = True
        return (end + 1 if text[end : end + 1] == " " else end), True
    if rest.isupper():
        mark.level = next((level for level in _LEVELS if level in rest), None)
    mark.record = True
    tail = pattern(
        rf"(?:\s?:\s|\s)?(?:\[?(?P<a>{_LEVEL})\]?:?\s*|\[(?P<lg>[\w./:-]{{1,80}})\]| "
        rf"?\{{[\w./-]{{1,80}}:\d+\}} ?|(?P<nm>[\w.]{{3,80}}): "
        rf"(?=\[)){{0,3}}(?:\s?-\s)?(?:\[[\w./-]+:\d+(?::\w+)?\])? ?"
    ).match(text, end)
    if tail:
        mark.level = tail["a"] or mark.level
        mark.logger = tail["lg"] or tail["nm"] or text[end : tail.end()].strip()
        end = tail.end()
    return end, False


def _number(text: str, at: int, mark: Mark, keys: list[str]) -> tuple[int, bool] | None:
    when = match_time(text, at)
    if when:
        end, mark.time = when
        shipped = mark.time[10:11] == "T" and (mark.time[-1] == "Z" or mark.time[-6:-5] in ("+", "-"))
        journal = pattern(_JOURNAL).match(text, end + 1) if text[end : end + 1] == " " else None
        if journal:
            mark.host = journal["host"]
            if journal["kernel"]:
                mark.logger = "kernel"
                mark.record = True
            else:
                keys.append(f"{journal['proc']}[{journal['pid']}]")
            return journal.end(), True
        glued = pattern(
            r":? (?=\[(?:rank|default|\d+,\d+\]<std|\d+,mpirank:))| (?=[EWIF]\d{4} )| (?:stdout|stderr) [FP] "
        ).match(text, end)
        if glued:
            return glued.end(), True
        worker = pattern(_TORCHSERVE).match(text, end)
        if worker:  # the level is the server's, not that of what the worker printed
            keys.append(worker["worker"])
            return worker.end(), True
        if shipped and text[end : end + 1] == " ":
            return end + 1, True  # a log shipper's time: the line itself comes after it
        tail = pattern(_AFTER_TIME).match(text, end)
        if tail and tail.end() > end:
            mark.level = tail["l1"] or tail["l2"]
            mark.logger = (tail["logger"] or tail["logger2"] or "").strip(" -|>[]")
            if not mark.level and not mark.logger and tail["sep"] in (" ", ": "):
                return end + len(tail["sep"]), True
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
    if text[at] in "EWIFDV" and text[at + 1 : at + 5].isdecimal():
        found = pattern(_GLOG).match(text, at)
        if found:
            mark.level = _LETTER_LEVELS[found["lvl"]]
            mark.time = f"--{found['mo']}-{found['d']}T{found['clock']}"
            mark.logger = found["where"]
            mark.record = True
            return found.end(), False
    if text[at + 3 : at + 5] == ", ":
        return _number(text, at, mark, keys)  # a date with its day of the week
    if text[at : at + 3] in MONTHS and text[at + 3 : at + 4] == " ":
        found = pattern(_SYSLOG).match(text, at)
        if found:
            mark.host = found["host"]
            mark.time = f"--{MONTHS[found['mon']]:02d}-{int(found['day']):02d}T{found['clock']}"
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
        when = match_time(text, end + 1) if text[end : end + 1] == " " else None
        if when:  # vLLM: ERROR 01-02 03:04:05 [core.py:390] message
            end, mark.time = when
            where = pattern(r"(?: \[([\w./:-]{1,120})\])? ?").match(text, end)
            if where:
                mark.logger = where[1] or ""
                end = where.end()
            mark.record = True
            return end, False
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


# a process ("gpu0", "rank0.log") or a file is no machine
_HOST = (
    r"^(?!(?:rank|global_?rank|local_?rank|gpu|cuda|device|local|proc|process)[_.-]?\d+\b)"
    r"(?![\w.-]*\.(?:log|out|err|txt|stderr|stdout)$)[\w.-]*[a-z][\w.-]*$"
)


_ADDRESSED = r"((?:\d{1,3}\.){3}\d{1,3}): "  # pdsh names a machine by what its list calls it


def _take_learned(
    text: str, at: int, mark: Mark, keys: list[str], learned: list[Shape]
) -> tuple[int, bool] | None:
    for shape in learned:
        found = shape.pattern.match(text, at)
        if found and found.end() > at and shape not in mark.shapes:
            mark.shapes += (shape,)
            name = shape.identity(found[0])
            if name:
                keys.append(name)
                number = pattern(r"(?:^|[^a-z])rank[ =:_-]?(\d+)").search(name.lower())
                if number:
                    mark.rank = int(number[1])
                    before = name[: number.start()].strip(" :[(<{|-")
                    if mark.host is None and pattern(r"[A-Za-z][\w.-]*\d[\w.-]*$").match(before):
                        mark.host = before
                elif mark.host is None and pattern(_HOST).match(name):
                    mark.host = name
            if (
                mark.host is None
                and found[0][0].isdecimal()
                and (address := pattern(_ADDRESSED).match(found[0]))
            ):
                mark.host = address[1]
            return found.end(), shape.tag
    return None
