"""Rule files in, checked rows out. Every mistake in every file is reported at once."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from torchdoctor import regular_file, toml_text
from torchdoctor.catalog import template
from torchdoctor.catalog.reader import CatalogError, Reader, meant
from torchdoctor.context_tags import DIMENSION
from torchdoctor.model import EventKind, Role, Severity

FAMILIES = (
    "environment", "hardware", "cuda-runtime", "memory", "data", "autograd", "tensor", "numerics",
    "distributed", "extension", "checkpoint", "training", "python", "compile", "export", "scheduler",
    "waiting",
)  # fmt: skip
# commands that find a rule by themselves, in a file or a live process, without a text or a fact to match
FINDERS = ("checkpoint", "hang")
RISKS = ("safe", "changes-environment", "needs-root", "loses-work", "runs-code")

_REQUIRED = ("id", "family", "severity", "role", "title", "why")
_TOP = (
    *_REQUIRED,
    "leads_to",
    "refines",
    "confirm",
    "rule_out",
    "follows_if",
    "more",
    "decide_with",
    "decide_note",
    "decide_when",
    "references",
    "match",
    "fix",
    "check",
    "found_by",
    "retired",
    "replaced_by",
)
_MATCH = ("text", "regex", "event", "type", "where", "standing")
_STANDINGS = ("confirmed", "possible")
_FIX = ("do", "run", "risk", "when", "for", "not_for")
_CHECK = ("applies_if", "fail_if", "severity")
_KINDS = tuple(kind.value for kind in EventKind)

Row = dict[str, Any]  # one rule as plain JSON data, checked


def rule_files(directory: str) -> Iterator[str]:
    """Paths of the rule files under a rules directory, sorted; hidden folders are left out."""
    for entry in sorted(os.scandir(directory), key=lambda item: item.name):
        if regular_file.is_folder(entry) and not entry.name.startswith((".", "_")):
            for path in sorted(os.listdir(entry.path)):
                if path.endswith(".toml"):
                    yield os.path.join(entry.path, path)


def _read_toml(path: str, shown: str, problems: list[str]) -> dict[str, Any] | None:
    try:
        return toml_text.parse(regular_file.read(path, toml_text.MOST_BYTES))
    except toml_text.TomlRefused as error:
        problems.append(f"{shown}: not valid TOML: {error}")
    except OSError as error:
        problems.append(f"{shown}: cannot be read: {error.strerror}")
    return None


def _match_row(reader: Reader, where: str, table: Mapping[str, Any]) -> Row:
    reader.keys(where, table, _MATCH)
    kinds = reader.texts(where, table, "event")
    for kind in kinds:
        if kind not in _KINDS:
            reader.wrong(f'{where}event "{kind}" is unknown{meant(kind, _KINDS)}')
    types = reader.texts(where, table, "type")
    conditions = reader.conditions(where, table, "where")
    patterns: list[list[Any]] = []
    literals: list[str] = []
    for source in reader.texts(where, table, "text"):
        try:
            parsed = template.parse(source)
        except template.TemplateError as error:
            reader.wrong(f"{where}text {source!r}: {error}")
            continue
        patterns.append([parsed.pattern, [list(item) for item in parsed.holes.items()], len(parsed.literal)])
        literals.append(parsed.literal)
    regex = reader.text(where, table, "regex")
    if regex is not None:
        patterns += _regex(reader, where, regex)
    literal = max(literals, key=len, default="")
    if len(literal) < template.MIN_LITERAL and not kinds and not types:
        wanted = f"no literal run of {template.MIN_LITERAL} characters"
        reader.wrong(f"{where}has {wanted}, so it needs an event kind or a type")
    if not patterns and not conditions:
        reader.wrong(f"{where}needs text or regex, or a where beside its event or type")
    return {
        "patterns": patterns,
        "kinds": kinds,
        "types": types,
        "where": conditions,
        "shared": reader.choice(where, table, "standing", _STANDINGS) == "possible",
        "literal": literal,
    }


def _regex(reader: Reader, where: str, source: str) -> list[list[Any]]:
    """The pattern of a regex that cannot run away; others are told."""
    from torchdoctor.catalog import linear

    try:
        re.compile(source)
    except (re.error, RecursionError, OverflowError) as error:
        reader.wrong(f"{where}regex: {error}")
        return []
    if source.startswith((".*", ".+", "^.*")):
        reader.wrong(f"{where}regex must not begin with .*")
    elif complaint := linear.complaint(source):
        reader.wrong(f"{where}{complaint}")
    return [[source, [], template.MIN_LITERAL, linear.MAX_TEXT]]


def _tables(reader: Reader, table: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    value = table.get(key, [])
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        reader.wrong(f"{key} must be written as [[{key}]]")
        return []
    return value


def read_rule(path: str, shown: str, problems: list[str]) -> Row | None:
    """One rule file as checked plain data; None when it cannot be read. Mistakes go to ``problems``."""
    table = _read_toml(path, shown, problems)
    if table is None:
        return None
    reader = Reader(shown, problems)
    reader.keys("", table, _TOP)
    for key in _REQUIRED:
        if key not in table:
            reader.wrong(f'key "{key}" is missing')
    family = os.path.basename(os.path.dirname(path))
    stem = os.path.basename(path)[: -len(".toml")]
    rule_id = reader.text("", table, "id", stem)
    if rule_id != stem:
        reader.wrong(f'id "{rule_id}" is not the file\'s name "{stem}"')
    if table.get("family", family) != family:
        reader.wrong(f'family "{table["family"]}" is not the folder "{family}"')
    severities = [severity.value for severity in Severity]
    matches = [
        _match_row(reader, f"[[match]] {number} ", item)
        for number, item in enumerate(_tables(reader, table, "match"), start=1)
    ]
    fixes = [
        _fix_row(reader, f"[[fix]] {number} ", item)
        for number, item in enumerate(_tables(reader, table, "fix"), start=1)
    ]
    severity = reader.choice("", table, "severity", severities)
    check: Row | None = None
    if isinstance(table.get("check"), dict):
        reader.keys("[check] ", table["check"], _CHECK)
        check = {
            "applies_if": reader.conditions("[check] ", table["check"], "applies_if"),
            "fail_if": reader.conditions("[check] ", table["check"], "fail_if"),
            "severity": reader.choice(
                "[check] ", {"severity": severity, **table["check"]}, "severity", severities
            ),
        }
        if not check["fail_if"]:
            reader.wrong("[check] fail_if is missing or empty")
    elif "check" in table:
        reader.wrong("check must be written as [check]")
    finders = reader.texts("", table, "found_by")
    for name in finders:
        if name not in FINDERS:
            reader.wrong(f'found_by names "{name}"; it can be {" or ".join(FINDERS)}')
    retired, heirs = _retired(reader, table)
    if retired:
        # its file stays as it was, so that its history can be read; none of it takes part any more
        matches, check = [], None
    elif not matches and check is None and not finders:
        reader.wrong("a rule needs a [[match]], a [check] or found_by")
    return {
        "id": rule_id,
        "family": family,
        "severity": severity,
        "role": reader.choice("", table, "role", [role.value for role in Role]),
        "title": reader.text("", table, "title", ""),
        "leads_to": reader.texts("", table, "leads_to"),
        "refines": reader.texts("", table, "refines"),
        "confirm": reader.conditions("", table, "confirm"),
        "rule_out": reader.conditions("", table, "rule_out"),
        "follows_if": reader.conditions("", table, "follows_if"),
        "matches": matches,
        "check": check,
        "why": reader.text("", table, "why", ""),
        "more": reader.text("", table, "more"),
        "fixes": fixes,
        "decide_with": reader.text("", table, "decide_with"),
        "decide_note": reader.text("", table, "decide_note"),
        "decide_when": reader.conditions("", table, "decide_when"),
        "references": reader.texts("", table, "references"),
        "retired": retired,
        "replaced_by": heirs,
    }


def _fix_row(reader: Reader, where: str, item: Mapping[str, Any]) -> Row:
    reader.keys(where, item, _FIX)
    if "do" not in item:
        reader.wrong(f'{where}key "do" is missing')
    return {
        "do": reader.text(where, item, "do", ""),
        "run": reader.text(where, item, "run"),
        "risk": reader.choice(where, item, "risk", RISKS),
        "when": reader.conditions(where, item, "when"),
        "for": _tags(reader, where, item, "for"),
        "not_for": _tags(reader, where, item, "not_for"),
    }


def _tags(reader: Reader, where: str, item: Mapping[str, Any], key: str) -> list[str]:
    """Words for the reader's surroundings; unknown ones are told with the nearest known one."""
    tags = reader.texts(where, item, key)
    for tag in tags:
        if tag not in DIMENSION:
            hint = meant(tag, DIMENSION, f"; known: {', '.join(DIMENSION)}")
            reader.wrong(f'{where}{key} names "{tag}", which is no tag{hint}')
    return tags


def _retired(reader: Reader, table: Mapping[str, Any]) -> tuple[str | None, list[str]]:
    """Since when and why a rule is no more, and the rules that took its place."""
    retired = reader.text("", table, "retired")
    heirs = reader.texts("", table, "replaced_by")
    if heirs and not retired:
        reader.wrong('replaced_by stands only beside retired = "VERSION: why"')
    return retired, heirs


def read_groups(directory: str, problems: list[str]) -> dict[str, list[str]]:
    """The named groups of consequences in ``groups.toml``; {} where there is no such file."""
    path = os.path.join(directory, "groups.toml")
    if not os.path.lexists(path):
        return {}
    table = _read_toml(path, "groups.toml", problems) or {}
    reader = Reader("groups.toml", problems)
    return {name: reader.texts("", table, name) for name in table}


def published_ids(directory: str) -> list[str]:
    """Every id that was ever published, from ``ids.txt``; [] without that file. Raises CatalogError."""
    path = os.path.join(directory, "ids.txt")
    if not os.path.lexists(path):
        return []
    try:
        text = regular_file.read(path, toml_text.MOST_BYTES).decode("utf-8", "replace")
    except OSError as error:
        raise CatalogError([f"ids.txt: cannot be read: {error.strerror}"]) from None
    return [line.split()[0] for line in text.splitlines() if line.strip() and not line.startswith("#")]


def read_tree(
    directory: str, known_ids: Sequence[str] = (), groups: Mapping[str, list[str]] | None = None
) -> list[Row]:
    """All rules of a directory, references resolved and groups expanded.

    ``known_ids`` and ``groups`` are those of a catalog that this directory adds to.
    Raises CatalogError with every problem of every file.
    """
    problems: list[str] = []
    if not os.path.isdir(directory):
        raise CatalogError([f"{directory}: no such folder; a rules folder holds FAMILY/ID.toml"])
    all_groups = {**(groups or {}), **read_groups(directory, problems)}
    rows: list[Row] = []
    seen: dict[str, str] = {}
    titles: dict[str, str] = {}
    for path in rule_files(directory):
        shown = os.path.relpath(path, directory).replace(os.sep, "/")
        row = read_rule(path, shown, problems)
        if row is None:
            continue
        if row["id"] in seen or row["id"] in known_ids:
            problems.append(f'{shown}: id "{row["id"]}" is taken by {seen.get(row["id"], "the catalog")}')
        if row["title"] in titles:
            problems.append(f"{shown}: title is the same as that of {titles[row['title']]}")
        seen[row["id"]] = titles[row["title"]] = shown
        rows.append(row)
    if not rows and not problems:
        problems.append(f"{directory}: holds no rule; a rules folder holds FAMILY/ID.toml")
    ids = (*seen, *known_ids, *published_ids(directory))
    retired = {row["id"]: row["replaced_by"] for row in rows if row["retired"]}
    for row in rows:
        shown = seen[row["id"]]
        # what a retired rule once led to takes part in nothing
        for key in ("replaced_by",) if row["retired"] else ("leads_to", "refines"):
            row[key] = _resolve(row, key, shown, ids, all_groups, problems)
            problems.extend(
                f'{shown}: {key} names the retired rule "{name}"'
                + (f"; name {' or '.join(retired[name])}" if retired[name] else "")
                for name in row[key]
                if name in retired
            )
        if row["retired"]:
            row["leads_to"] = row["refines"] = row["confirm"] = row["rule_out"] = row["follows_if"] = []
    if problems:
        raise CatalogError(problems)
    return rows


def _resolve(
    row: Row, key: str, shown: str, ids: Sequence[str], groups: Mapping[str, list[str]], problems: list[str]
) -> list[str]:
    found: list[str] = []
    for name in row[key]:
        if name.startswith("@"):
            if name[1:] not in groups:
                problems.append(
                    f'{shown}: {key} names the unknown group "{name}"; known: {", ".join(groups)}'
                )
            found.extend(member for member in groups.get(name[1:], []) if member != row["id"])
        elif name not in ids:
            problems.append(f'{shown}: {key} names the unknown rule "{name}"{meant(name, ids)}')
        else:
            found.append(name)
    return [member for member in dict.fromkeys(found) if member in ids]
