"""What a text shows of the NVIDIA driver: that none is there, or which CUDA version it offers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from torchdoctor.extract.readings.card_lists import cells
from torchdoctor.extract.readings.passage import Line, Passage, Voice
from torchdoctor.extract.readings.patterns import patterns

if TYPE_CHECKING:
    from torchdoctor.extract.readings.values import Command

# The first driver of each CUDA version, up to which an older driver was no good for a newer run-time; later
# ones run within their major version.
_FIRST_DRIVERS = (
    ((384, 81), "9.0"), ((390, 46), "9.1"), ((396, 26), "9.2"), ((410, 48), "10.0"), ((418, 39), "10.1"),
    ((440, 33), "10.2"), ((450, 36), "11.0"), ((455, 23), "11.1"), ((460, 27), "11.2"), ((465, 19), "11.3"),
    ((470, 42), "11.4"), ((495, 29), "11.5"), ((510, 39), "11.6"), ((515, 43), "11.7"), ((520, 61), "11.8"),
    ((525, 60), "12.0"), ((580, 65), "13.0"),
)  # fmt: skip

_NUMBER = r"(?P<number>\d{3}\.\d{2,3})(?:\.\d{1,3})?(?![\w.-])"
NEAR = 12  # rows of a table

_PATTERNS = {
    "driver": (
        r"(?i)driver|treiber|pilote|pilota|controlador|sterownik"
        r"|\u0434\u0440\u0430\u0439\u0432\u0435\u0440|s\u00fcr\u00fcc\u00fc|\u9a71\u52a8|\u9a45\u52d5"
        r"|\u30c9\u30e9\u30a4\u30d0|\ub4dc\ub77c\uc774\ubc84"
    ),
    "offers": r"\bCUDA Version: ?(?P<version>\d{1,2}\.\d)",
    "number": (
        # the banner of nvidia-smi, collect_env, /proc/driver/nvidia/version
        rf"(?:Driver Version|driver version): *{_NUMBER}"
        rf"|NVRM version: [^\n]{{0,80}}?\s{_NUMBER.replace('number', 'nvrm')}"
        # in words
        r"|(?i:\b(?:driver|treiber|pilote|pilota|controlador|driver nvidia|sterownik\w{0,3}|драйвер\w{0,3}"
        r"|s\u00fcr\u00fcc\u00fc\w{0,3})"
        r"|驱动\S{0,2}|驅動\S{0,2}|ドライバー?|드라이버)"
        rf"(?:\s{{0,20}}[:=(])?\s{{0,3}}(?i:version|versione|versi\u00f3n|wersja|версия|版本|v|is|of"
        rf"|=)?[\s:=]{{0,2}}{_NUMBER.replace('number', 'said')}"
    ),
    "value": rf"(?:^|[,|;\t]|\s\s)\s*{_NUMBER}\s*(?=[,|;\t]|\s\s|$)",
    "no-smi": (
        r"nvidia-smi['`\"\u2019\u00bb]?: (?:command )?not found|command not found: nvidia-smi"
        r"|'nvidia-smi' is not recognized|executable file not found in \$PATH.{0,40}nvidia-smi"
        r"|\"nvidia-smi\": executable file not found|Command ['\u2018]nvidia-smi['\u2019] not found"
        # bash in German, French, Spanish, Italian, Portuguese, Polish, Russian, Turkish, Chinese, Japanese
        # and Korean
        r"|nvidia-smi['`\"\u2019]?: (?:Kommando nicht gefunden|Befehl nicht gefunden|commande introuvable"
        r"|orden no encontrada|no se encontr\u00f3|comando non trovato|comando n\u00e3o encontrado"
        r"|nie znaleziono|команда не найдена|komut bulunamad|未找到命令"
        r"|コマンドが見つかりません|명령어를 찾을 수)"
        r"|nvidia-smi['`\"]? (?:is |was )?(?:not (?:found|supported|available|installed|there)"
        r"|isn't (?:there|supported|available|found|installed)|doesn't (?:exist|work|run)"
        r"|does not (?:exist|work|run)"
        r"|不存在|は見つかりません)"
        r"|\bno nvidia-smi\b|which: no nvidia-smi"
    ),
    "no-device": (
        r"^\s*ls: [^\n]{0,40}/dev/nvidia|/proc/driver/nvidia/version['\u2019]?: "
        r"|no matches found: /dev/nvidia|could not insert '?nvidia|modinfo: ERROR: Module nvidia"
        r"|^\s*Kernel driver in use: (?:nouveau|vfio-pci)|modprobe: FATAL: Module nvidia"
        r"|\bno /dev/nvidia\S*|couldn't communicate with the NVIDIA driver"
    ),
    # commands that print nothing, or 0, where there is no driver
    "asks": (
        r"^(?:lsmod|ls /dev|dpkg -l|rpm -qa|apt list|pacman -Q|find /dev)\b[^|]*\| ?(?:e?grep|findstr"
        r"|rg)\b.*\bnv"
        r"|^(?:which|command -v|type) nvidia-smi"
    ),
}


_pattern = patterns(_PATTERNS)


def without_driver(passage: Passage, commands: tuple[Command, ...]) -> Line | None:
    """The line that shows that nvidia-smi, the device files or the kernel module are not there."""
    found = passage.first(_pattern("no-smi")) or passage.first(_pattern("no-device"))
    if found is not None:
        return found
    for command in commands:
        if _pattern("asks").search(command.text) is None:
            continue
        answer = command.answers[0] if command.answers else command.line
        if answer.voice is not Voice.PRINTED or answer.text.strip() == "0":
            return command.line
    return None


def offered(
    passage: Passage, commands: tuple[Command, ...], beside: Line | None = None
) -> tuple[Line, str] | None:
    """The newest CUDA version of the driver that the text names, and the line that does.

    ``beside``: a line that is of that machine, where it holds a driver's number in a column of its own.
    """
    told = passage.first(_pattern("offers"))
    if told is not None and (found := _pattern("offers").search(told.text)) is not None:
        return told, found.group("version")
    if beside is not None:  # a row with other things of the same machine
        values = [found.group("number") for found in _pattern("value").finditer(beside.text)]
        if len(values) == 1:
            return _of(beside, values[0])
    told = passage.first(_pattern("number"))
    if told is not None and (found := _pattern("number").search(told.text)) is not None:
        number = found.group("number") or found.group("nvrm") or found.group("said")
        return _of(told, number)
    for command in commands:
        if "driver_version" not in command.text:
            continue
        for answer in command.answers:
            if (value := _pattern("value").search(answer.text)) is not None:
                return _of(answer, value.group("number"))
    return None


def beside(passage: Passage, missing: Line) -> tuple[Line, str] | None:
    """The same for the one of several machines, a column each, whose row of is_available() says False."""
    shown = in_column(passage, missing, _pattern("driver"))
    found = re.fullmatch(rf"v?{_NUMBER}", shown[1]) if shown is not None else None
    return _of(shown[0], found.group("number")) if shown is not None and found is not None else None


def in_column(passage: Passage, missing: Line, label: re.Pattern[str]) -> tuple[Line, str] | None:
    """What the row with this label holds in the column of the machine for which ``missing`` says False."""
    row = cells(missing.text)
    if "False" not in row or "True" not in row:
        return None
    column = row.index("False")
    for line in passage.lines[max(0, missing.at - NEAR) : missing.at + NEAR]:
        own = cells(line.text)
        if len(own) == len(row) and label.search(own[0]) is not None:
            return line, own[column].strip("`* ")
    return None


def _of(line: Line, number: str) -> tuple[Line, str] | None:
    major, _, minor = number.partition(".")
    mine = (int(major), int(minor))
    cuda = next((cuda for first, cuda in reversed(_FIRST_DRIVERS) if first <= mine), None)
    return (line, cuda) if cuda else None
