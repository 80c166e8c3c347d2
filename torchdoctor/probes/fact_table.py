"""Facts for people: grouped, what is not there in one line, what could not be told with its reason."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from torchdoctor.model import Fact, FactValue, State

_UNLIMITED = 2**63 - 1
_WIDTH = 26
_LONG = 400


def lines(facts: Iterable[Fact]) -> Iterator[str]:
    """One line a known or unknown fact, under the name of its group; facts of one group follow each other."""
    groups: dict[str, list[Fact]] = {}
    for fact in facts:
        groups.setdefault(fact.name.partition(".")[0], []).append(fact)
    first = True
    for name, members in groups.items():
        shown = [fact for fact in members if fact.state is not State.ABSENT]
        lacking = [fact.name.partition(".")[2] for fact in members if fact.state is State.ABSENT]
        if not shown and name != "driver":
            # a package that is not installed, a device that is not there: nothing to tell
            continue
        if not first:
            yield ""
        first = False
        yield name
        for fact in shown:
            yield _line(fact)
        if lacking and name != "env":
            yield from _folded(f"  {'not there':{_WIDTH}} ", ", ".join(lacking))


def subject(ask: Callable[[str], Fact]) -> str:
    """What was examined, in one phrase: torch, interpreter, driver and GPUs as far as they are known."""
    parts = []
    for name, word in (
        ("torch.version", "torch"),
        ("python.version", "Python"),
        ("driver.version", "driver"),
    ):
        fact = ask(name)
        if fact.state is State.KNOWN:
            parts.append(f"{word} {fact.value}")
    names = ask("gpu.names").value
    if isinstance(names, tuple) and names:
        parts.append(", ".join(f"{names.count(one)} × {one}" for one in dict.fromkeys(names)))
    where = ask("python.executable")
    return ", ".join(parts) + (f"; {where.value}" if where.state is State.KNOWN else "")


def _line(fact: Fact) -> str:
    name = fact.name.partition(".")[2]
    if fact.state is State.UNKNOWN:
        reason = fact.reason.value if fact.reason else "not-asked"
        return f"? {name:{_WIDTH}} could not tell: {reason}" + (f" ({fact.detail})" if fact.detail else "")
    text = show(fact.name, fact.value)
    return f"  {name:{_WIDTH}} {text}"


def show(name: str, value: FactValue) -> str:
    """A value as people write it: sizes in their unit, limits without number as unlimited."""
    if isinstance(value, tuple):
        text = ", ".join(show(name, item) for item in value) or "none"
        return text if len(text) <= _LONG else text[: _LONG - 1] + "…"
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value == _UNLIMITED:
        return "unlimited"
    if name.endswith("_bytes") and isinstance(value, int):
        return size(value)
    return (
        " | ".join(line for line in str(value).splitlines() if line) if isinstance(value, str) else str(value)
    )


def size(number: int) -> str:
    """A number of bytes in the unit that leaves one to four digits before the point."""
    amount = float(number)
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if abs(amount) < 1024 or unit == "TiB":
            break
        amount /= 1024
    return f"{amount:.0f} {unit}" if unit == "B" or amount == int(amount) else f"{amount:.1f} {unit}"


def _folded(lead: str, text: str, width: int = 110) -> Iterator[str]:
    """The text over as many lines as it needs, hanging under its first word."""
    line = lead
    for word in text.split(" "):
        if len(line) + len(word) > width and line.strip():
            yield line.rstrip()
            line = " " * len(lead)
        line += f"{word} "
    yield line.rstrip()
