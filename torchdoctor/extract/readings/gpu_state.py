"""What tables say of GPUs at work, whatever their columns: clocks, power, heat, reasons, the PCIe link.

``nvidia-smi --query-gpu … --format=csv`` with and without head, ``nvidia-smi dmon``, and the tables that
people make of such figures. A card that is idle is left out: its clocks and its link are low by design.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from torchdoctor.extract.nvidia_smi import is_mask
from torchdoctor.extract.readings.tables import Table, TableRow, is_number, tables

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdoctor.extract.readings.passage import Line, Passage

_COLUMNS = {
    "index": (
        r"^(?:#? ?gpu|index|idx|id|rank|rang|card|karte|gpu id|gpu[ _]?index|#|device|\u5361"
        r"|\u663e\u5361)$"
    ),
    "sm": (
        r"^(?:clocks?\.(?:current\.)?(?:sm|gr|graphics)|sm[ _]?clock|gpu[ _]?clock|clocks?|pclk|gclk|mhz"
        r"|takt|klok|horloge|fr\u00e9quence|frecuencia|reloj|frequenza|zegar"
        r"|\u0447\u0430\u0441\u0442\u043e\u0442\u0430)\b"
        r"|^(?:gpu|sm)? ?(?:\u9891\u7387|\u6838\u5fc3\u9891\u7387|\u30af\u30ed\u30c3\u30af|\ud074\ub7ed)"
    ),
    "highest": r"^(?:clocks\.max\.(?:sm|gr|graphics)|max\.? (?:sm )?clock|max mhz)",
    "heat": (
        r"^(?:temperature\.gpu|temp\w*|gtemp|heat|\u00b0c|\u6e29\u5ea6|\uc628\ub3c4"
        r"|\u0442\u0435\u043c\u043f\w*)"
    ),
    "watts": (
        r"^(?:power\.draw\S*|pwr|power|watts?|leistung|puissance|potencia|pot\u00eancia|potenza|consumo"
        r"|conso|moc|\u043c\u043e\u0449\u043d\u043e\u0441\u0442\u044c)\b(?! ?lim)"
        r"|^(?:gpu)?(?:\u529f\u8017|\u529f\u7387|\u96fb\u529b|\u6d88\u8cbb\u96fb\u529b"
        r"|\uc804\ub825)(?!\S{0,2}(?:\u4e0a\u9650|\u9650|\u5236|\u5236\u9650|\uc81c\ud55c))"
    ),
    "limit": (
        r"^(?:power\.limit|enforced\.power\.limit|power limit|limit|cap|powerlimit|leistungslimit"
        r"|l\u00edmite|limite|\u043b\u0438\u043c\u0438\u0442)\b"
        r"|\u4e0a\u9650|\u9650\u5236|\u5236\u9650|\uc81c\ud55c"
    ),
    "busy": (
        r"^(?:utilization\.gpu|(?:gpu[ -_]?)?(?:util\w*|load|auslastung|usage|uso|\u5229\u7528\u7387"
        r"|\u4f7f\u7528\u7387|\u4f7f\u7528\u7387|\uc0ac\uc6a9\ub960"
        r"|\u0437\u0430\u0433\u0440\u0443\u0437\u043a\u0430)|sm)(?: \[?%\]?)?$"
    ),
    "state": r"^(?:pstate|perf|p-state)$",
    "reasons": r"^clocks_(?:throttle|event)_reasons\.active$",
    "idle": r"^clocks_(?:throttle|event)_reasons\.gpu_idle$",
    "brake": (
        r"^clocks_(?:throttle|event)_reasons\.(?:hw_slowdown|hw_thermal_slowdown|hw_power_brake_slowdown"
        r"|sw_thermal_slowdown)$"
    ),
    "cap": r"^clocks_(?:throttle|event)_reasons\.sw_power_cap$",
    "lanes": r"^pcie\.link\.width\.current$|^(?:lanes|width|link width|pcie width)(?:[ ._]cur\w*)?$",
    "most-lanes": r"^pcie\.link\.width\.max$|^(?:max width|max lanes|width[ ._]max)$",
    "speed": r"^pcie\.link\.gen\.(?:gpu)?current$|^(?:pcie[ -]?)?gen(?:eration)?(?:[ ._]cur\w*)?$",
    "highest-speed": r"^pcie\.link\.gen\.(?:gpu|host)?max$|^max gen$|^gen[ ._]max$",
    "name": r"^(?:name|gpu_name|model)$",
}
# a first column that tells whose the row is
_WHOSE = (
    r"^(?:node|host|hostname|machine|box|server|rank|gpu|card|device|system|name|who|rechner|knoten"
    r"|maschine|karte|n\u0153ud"
    r"|noeud|machine|serveur|carte|nodo|m\u00e1quina|servidor|tarjeta|placa|macchina|scheda|w\u0119ze\u0142"
    r"|\u0443\u0437\u0435\u043b|\u043c\u0430\u0448\u0438\u043d\u0430|\u043a\u0430\u0440\u0442\u0430"
    r"|\u673a\u5668|\u8282\u70b9|\u663e\u5361|\u30de\u30b7\u30f3|\u30ce\u30fc\u30c9|\ub178\ub4dc"
    r"|\uc11c\ubc84|\uc7a5\ube44)$|^$"
)
AT_WORK_W = 90.0
_NUMBER = r"(?P<number>\d{1,7}(?:\.\d+)?)"
_HARD = 0x8 | 0x20 | 0x40 | 0x80  # HW slowdown, SW thermal, HW thermal, HW power brake
_CAP = 0x4  # SW power cap
_IDLE = 0x1


@cache
def _pattern(source: str) -> re.Pattern[str]:
    return re.compile(source, re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Busy:
    """A GPU at work. Clocks in MHz, power in watts, heat in degrees Celsius; None where no column tells."""

    line: Line
    label: str
    index: int | None
    name: str
    sm: float | None
    highest: float | None
    heat: float | None
    watts: float | None
    limit: float | None
    hard: bool
    capped: bool
    sure: bool  # a column says that it works
    busy_unknown: bool  # no column tells whether it works
    lanes: float | None
    most_lanes: float | None
    speed: float | None
    highest_speed: float | None

    @property
    def who(self) -> tuple[str, int | None]:
        """What tells one card from another."""
        return self.label, self.index


def busy_rows(passage: Passage) -> Iterator[Busy]:
    """The rows of GPUs that are not idle, of all tables of the text."""
    for table in [*tables(passage.lines), *_monitors(passage)]:
        columns = {key: table.column(_pattern(source)) for key, source in _COLUMNS.items()}
        if not any(columns[key] is not None for key in ("sm", "watts", "lanes", "speed")):
            continue
        brakes = [at for at, name in enumerate(table.head) if _pattern(_COLUMNS["brake"]).search(name)]
        for row in table.rows:
            found = _busy(row, table.head[0], columns, brakes)
            if found is not None:
                yield found


def _busy(row: TableRow, head: str, columns: dict[str, int | None], brakes: list[int]) -> Busy | None:
    def cell(key: str) -> str:
        at = columns[key]
        return row.cells[at] if at is not None and at < len(row.cells) else ""

    def number(key: str) -> float | None:
        found = _pattern(_NUMBER).match(cell(key).lstrip("x~"))
        return float(found.group("number")) if found is not None else None

    reasons = int(text, 16) if is_mask(text := cell("reasons").strip()) else 0
    label = row.label
    if not label and not is_number(row.cells[0]) and _pattern(_WHOSE).search(head):
        label = row.cells[0]
    state = cell("state").upper()
    load, watts, limit = number("busy"), number("watts"), number("limit")
    hard = bool(reasons & _HARD) or any(_active(row.cells[at]) for at in brakes if at < len(row.cells))
    capped = bool(reasons & _CAP) or _active(cell("cap"))
    if reasons & _IDLE or _active(cell("idle")) or (load is not None and load < 40) or state in ("P8", "P12"):
        return None
    sure = hard or capped or state in ("P0", "P1", "P2") or (load is not None and load >= 70)
    sure = sure or (watts is not None and limit is not None and watts >= 0.4 * limit)
    index = number("index")
    return Busy(
        row.line,
        label,
        int(index) if index is not None else None,
        cell("name"),
        number("sm"),
        number("highest"),
        number("heat"),
        watts,
        limit,
        hard,
        capped,
        sure,
        load is None and not state and (watts is None or watts >= AT_WORK_W),
        number("lanes"),
        number("most-lanes"),
        number("speed"),
        number("highest-speed"),
    )


def _active(text: str) -> bool:
    return text.strip().lower() == "active"


def _monitors(passage: Passage) -> Iterator[Table]:
    """``nvidia-smi dmon``: its head begins with #, single blanks part the columns of some versions."""
    table: Table | None = None
    for line in passage.lines:
        words = line.text.split()
        if words[:2] == ["#", "gpu"]:
            table = Table(tuple(words[1:]), line)
        elif table is not None and len(words) == len(table.head) and words[0].isdecimal():
            table.rows.append(TableRow(line, tuple(words)))
    if table is not None and table.rows:
        yield table
