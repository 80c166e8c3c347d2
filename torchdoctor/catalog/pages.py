"""Pages of rules: for a terminal, and for a site (one a rule)."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from torchdoctor.catalog.loader import read_groups
from torchdoctor.catalog.page import RISKS, Page, for_readers, gather, joined
from torchdoctor.catalog.remarks import Example, read_examples, rule_file, versions
from torchdoctor.model import counted, page_of
from torchdoctor.typed import is_python, prompt

if TYPE_CHECKING:
    from torchdoctor.catalog.rule import ConditionalFix
    from torchdoctor.catalog.ruleset import RuleSet

# what Markdown would take for markup; addresses stay as they are
_MARKUP = re.compile(r"(https?://\S+)|([\\`*_<\[\]|~])")


def gathered(rules: RuleSet, rule_id: str, folders: Sequence[str] = ()) -> Page:
    """The page of a rule of the catalog, of an installed pack or of ``folders``, with all that stands beside
    it there. Raises UnknownRuleError."""
    from torchdoctor.catalog import rules_directory
    from torchdoctor.catalog.packs import installed

    family = rules.rule(rule_id).family
    places = (rules_directory(), *folders, *(folder for _, folder in installed()[0]))
    example = next((found[rule_id] for found in map(read_examples, places) if rule_id in found), None)
    comments = versions(rule_file(places, family, rule_id))
    return gather(rules, rule_id, comments, example, read_groups(places[0], []))


def in_text(page: Page, width: int = 80) -> str:
    """The page for a terminal of so many columns."""
    lines = _wrapped(page.title, width, "")
    lines.append(f"{page.id} ({page.family}, {page.severity}, {page.role})")
    if page.retired:
        lines += ["", *_wrapped(page.retired, width, "")]
    if page.example.lines:
        lines += ["", "Example", *(f"  {line}" for line in page.example.lines)]
    lines += ["", "Why", *_wrapped(page.why, width, "  ")]
    if page.more:
        lines += _wrapped(page.more, width, "  ")
    if page.fixes:
        lines += ["", "What to do"]
    for number, item in enumerate(page.fixes, start=1):
        lines += _wrapped(_fix_line(item), width, "     ", f"  {number}. ")
        lines += [f"     {line}" for line in _typed(item.fix.run)]
    if page.decide_with or page.decide_note:
        lines += ["", "To decide", *(f"  {line}" for line in _typed(page.decide_with))]
        lines += _wrapped(page.decide_note or "", width, "  ")
    for title, text in (("Confirmed when", page.confirmed), ("Ruled out when", page.ruled_out)):
        if text:
            lines += ["", title, *_wrapped(text, width, "  ")]
    if page.look_alikes:
        lines += ["", "Looks like"]
    for name, title, how in page.look_alikes:
        lines += _wrapped(f"{name}: {title} ({how})", width, "    ", "  - ")
    if page.leads_to:
        lines += ["", "Can lead to", *_wrapped(", ".join(page.leads_to), width, "  ")]
    if page.shown:
        lines += ["", "How it shows"]
    for way in page.shown:
        if way.versions:
            lines += _wrapped(way.versions, width, "  ")
        for number, text in enumerate(way.texts):
            lines += _wrapped(text, width, "    ", "    and " if number else "  - ")
        if way.about:
            lines += _wrapped(f"({way.about})", width, "    ", "    " if way.texts else "  - ")
    if page.references:
        lines += ["", "Read more", *(f"  {address}" for address in page.references)]
    lines += ["", *_wrapped(f"Page: {page_of(page.id, page.family)}", width, "  ", "")]
    return "\n".join(lines)


def site(rules: RuleSet, directory: str, examples: Mapping[str, Example]) -> dict[str, str]:
    """One page a rule, ID.md, with an index of each family and of all: name of the file -> text."""
    groups = read_groups(directory, [])
    pages = _pages(rules, directory, examples, groups)
    made = {"index.md": _index(pages, groups)}
    for family, members in pages.items():
        rows = [f"- [{page.id}]({page.id}.md): {_plain(page.title)}" for page in members]
        made[f"family-{family}.md"] = "\n".join([f"# {family}", "", *rows]) + "\n"
        for page in members:
            back = f"[{family}](family-{family}.md)"
            made[f"{page.id}.md"] = "\n".join([f"# {page.id}", "", *_body(page), "", back]) + "\n"
    return made


def _pages(
    rules: RuleSet,
    directory: str,
    examples: Mapping[str, Example],
    groups: Mapping[str, Sequence[str]],
) -> dict[str, list[Page]]:
    families: dict[str, list[Page]] = {}
    for rule in sorted(rules.rules(), key=lambda item: (item.family, item.id)):
        comments = versions(rule_file([directory], rule.family, rule.id))
        page = gather(rules, rule.id, comments, examples.get(rule.id), groups)
        families.setdefault(rule.family, []).append(page)
    return families


def _index(
    families: Mapping[str, Sequence[Page]],
    groups: Mapping[str, Sequence[str]],
) -> str:
    total = sum(len(members) for members in families.values())
    lines = [
        "# What torchdoctor knows",
        "",
        f"{counted(total, 'rule')} in {counted(len(families), 'family', 'families')}. "
        "`torchdoctor rules show ID` prints the page of a rule.",
        "",
        " · ".join(f"[{family}](#{family}) {len(members)}" for family, members in families.items()),
    ]
    for family, members in families.items():
        lines += ["", f"## {family}", "", "| rule | severity | what it is |", "|---|---|---|"]
        for page in members:
            title = _plain(page.title) + (" (retired)" if page.retired else "")
            lines.append(f"| [{page.id}]({page.id}.md) | {page.severity} | {title} |")
    if groups:
        lines += ["", "## Groups", "", "Consequences that many causes share:", ""]
    for name, members_of in groups.items():
        lines.append(f"- `@{name}`: {', '.join(f'`{one}`' for one in members_of)}")
    return "\n".join(lines) + "\n"


def _body(page: Page) -> Iterator[str]:
    yield f"**{_plain(page.title)}** ({page.severity}, {page.role})"
    if page.retired:
        yield from ("", _plain(page.retired))
    if page.example.lines:
        yield from ("", *_fenced(page.example.lines, "text"))
    yield from ("", _plain(page.why))
    if page.more:
        yield from ("", _plain(page.more))
    if page.fixes:
        yield from ("", "## What to do", "")
    for number, item in enumerate(page.fixes, start=1):
        text = _plain(_fix_line(item))
        yield f"{number}. {text}"
        if item.fix.run:
            # set in by what every Markdown takes for code of the item; not every one knows a fence there
            yield from ("", *(f"        {line}" for line in _commands(item.fix.run)), "")
    if page.decide_with or page.decide_note:
        yield from ("", "## To decide")
    if page.decide_with:
        yield from (
            "",
            *_fenced(_commands(page.decide_with), "python" if is_python(page.decide_with) else "sh"),
        )
    if page.decide_note:
        yield from ("", _plain(page.decide_note))
    if page.confirmed:
        yield from ("", f"**Confirmed when** {_plain(page.confirmed)}.")
    if page.ruled_out:
        yield from ("", f"**Ruled out when** {_plain(page.ruled_out)}.")
    if page.look_alikes:
        yield from ("", "## Looks like", "")
        yield from (f"- {_link(name)}: {_plain(title)} ({how})" for name, title, how in page.look_alikes)
    if page.leads_to:
        yield from ("", "## Can lead to", "", ", ".join(map(_link, page.leads_to)))
    if page.shown:
        yield from ("", "## How it shows", "")
    for way in page.shown:
        text = " and ".join(_code(item) for item in way.texts)
        about = _plain(f"({way.about})") if way.about else ""
        yield "- " + " ".join(
            part for part in (text, about, _plain(way.versions and f"– {way.versions}")) if part
        )
    if page.references:
        yield from ("", "## Read more", "")
        yield from (f"- <{address}>" for address in page.references)


def _fix_line(item: ConditionalFix) -> str:
    fix, when = item.fix, joined(item.when)
    named = f" ({RISKS[fix.risk]})" if fix.risk in RISKS else ""
    limits = [f"for {', '.join(item.wanted)}"] if item.wanted else []
    limits += [f"not for {', '.join(item.not_for)}"] if item.not_for else []
    limits += [f"when {when}"] if when else []
    return for_readers(fix.do + named + (f" [{'; '.join(limits)}]" if limits else ""))


def _commands(text: str | None) -> list[str]:
    return for_readers(text or "").strip().splitlines()


def _typed(text: str | None) -> list[str]:
    """Each line of a command behind the prompt of who reads it."""
    return [prompt(text or "") + line for line in _commands(text)]


def _link(name: str) -> str:
    """To the page of a rule, or to the list of groups."""
    return f"[`{name}`]({'index.md#groups' if name.startswith('@') else f'{name}.md'})"


def _fenced(lines: Sequence[str], language: str) -> list[str]:
    fence = "`" * max(3, *(len(run) + 1 for line in lines for run in re.findall("`+", line)), 0)
    return [f"{fence}{language}", *lines, fence]


def _code(text: str) -> str:
    """A code span, with as many backticks as the text needs."""
    ticks = "`" * (max((len(run) for run in re.findall("`+", text)), default=0) + 1)
    gap = " " if text.startswith("`") or text.endswith("`") or text != text.strip() else ""
    return f"{ticks}{gap}{text}{gap}{ticks}"


def _plain(text: str) -> str:
    """Text that Markdown shows as it stands."""
    return _MARKUP.sub(lambda found: found[1] or "\\" + found[2], " ".join(text.split()))


def _wrapped(text: str, width: int, indent: str, first: str | None = None) -> list[str]:
    return textwrap.wrap(
        " ".join(text.split()),
        max(width, 30),
        initial_indent=indent if first is None else first,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
