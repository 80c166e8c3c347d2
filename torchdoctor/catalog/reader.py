"""Values out of one rule file, with every mistake noted: file, key, what would be right."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from torchdoctor.catalog.rule import WORDS
from torchdoctor.model import TorchdoctorError

MOST_TOLD = 20  # mistakes of one kind in one table


def meant(word: str, known: Iterable[str], otherwise: str = "") -> str:
    """The end of a complaint about an unknown word: the nearest of the known ones, where one is near."""
    near = get_close_matches(word, list(known), 1)
    return f'; did you mean "{near[0]}"?' if near else otherwise


class CatalogError(TorchdoctorError):
    """Rules that cannot be loaded. ``problems`` holds one text a mistake: file, key, what would be right."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__(*problems)


class Reader:
    """Collects the mistakes of one file while it takes the values out."""

    def __init__(self, path: str, problems: list[str]) -> None:
        self.path = path
        self.problems = problems

    def wrong(self, message: str) -> None:
        self.problems.append(f"{self.path}: {message}")

    def keys(self, where: str, table: Mapping[str, object], known: Sequence[str]) -> None:
        unknown = [key for key in table if key not in known]
        if len(unknown) > MOST_TOLD:
            self.wrong(f"{where}{len(unknown) - MOST_TOLD:,} unknown keys besides these:")
        for key in unknown[:MOST_TOLD]:
            hint = meant(key, known, f"; known: {', '.join(known)}")
            self.wrong(f'{where}unknown key "{key}"{hint}')

    def text(self, where: str, table: Mapping[str, Any], key: str, default: str | None = None) -> str | None:
        value = table.get(key, default)
        if value is not None and (not isinstance(value, str) or not value.strip()):
            self.wrong(f"{where}{key} must be text that is not empty, not {value!r}")
            return default
        return value

    def choice(self, where: str, table: Mapping[str, Any], key: str, allowed: Sequence[str]) -> str:
        value = table.get(key, allowed[0])
        if value not in allowed:
            hint = meant(str(value), allowed)
            self.wrong(f'{where}{key} is "{value}", must be one of {", ".join(allowed)}{hint}')
            return allowed[0]
        return str(value)

    def texts(self, where: str, table: Mapping[str, Any], key: str) -> list[str]:
        value = table.get(key, [])
        if isinstance(value, str):
            value = [value]
        if not isinstance(value, list) or not all(isinstance(item, str) and item for item in value):
            self.wrong(f"{where}{key} must be a text or a list of texts")
            return []
        return value

    def conditions(self, where: str, table: Mapping[str, Any], key: str) -> list[list[Any]]:
        found: list[list[Any]] = []
        value = table.get(key, [])
        if not isinstance(value, list):
            self.wrong(f"{where}{key} must be a list of conditions")
            return found
        for number, item in enumerate(value, start=1):
            place = f"{where}{key}[{number}] "
            if not isinstance(item, dict) or not isinstance(item.get("fact"), str):
                self.wrong(f'{place}must be {{ fact = "name", WORD = constant }}')
                continue
            words = [word for word in item if word != "fact"]
            if len(words) != 1 or words[0] not in WORDS:
                hint = meant(words[0], WORDS) if words else ""
                self.wrong(
                    f"{place}needs exactly one of {', '.join(WORDS)}, has {', '.join(words) or 'none'}{hint}"
                )
                continue
            problem = constant_problem(words[0], item[words[0]])
            if problem:
                self.wrong(place + problem)
                continue
            found.append([item["fact"], words[0], item[words[0]]])
        return found


def constant_problem(word: str, constant: object) -> str | None:
    if word in ("known", "absent") and constant is not True:
        return f"{word} takes true"
    if word == "in" and not isinstance(constant, list):
        return "in takes a list"
    if word in ("at_least", "below") and (
        isinstance(constant, bool) or not isinstance(constant, (int, float, str))
    ):
        return f"{word} takes a number or a version text"
    if word == "matches_version":
        from packaging.specifiers import InvalidSpecifier, SpecifierSet

        try:
            SpecifierSet(str(constant))
        except InvalidSpecifier:
            return f'matches_version takes a specifier such as ">=2.1,<2.6", not {constant!r}'
    if word == "contains_any" and not isinstance(constant, list):
        return "contains_any takes a list of texts"
    if word in ("contains", "contains_any", "lacks") and not (
        isinstance(constant, str)
        or (isinstance(constant, list) and all(isinstance(item, str) for item in constant))
    ):
        return f"{word} takes a text or a list of texts"
    return None
