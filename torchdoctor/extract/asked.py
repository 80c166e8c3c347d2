"""What a message itself asks its reader to do: by "Please", "Set", "You need to", or by a command of pip.

And of which setting it speaks, with the values that it allows.
A message may hold the code to run, too: between fences, behind ``>>>`` or ``$``, or set in under a colon.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from torchdoctor.extract import Found, parsed
from torchdoctor.model import Event, EventKind, Transcript
from torchdoctor.patterns import pattern

FACTS: dict[str, str] = {
    "asked.words": "text: the sentence by which the message itself tells its reader what to do",
    "asked.code": "text: the code under that sentence that the message gives to run, in one line",
}
# what a reader can do to a program, its arguments and its environment
_PLAIN = (
    r"add|consider|convert|disable|double-check|enable|ensure|increase|install|make sure|pass|provide"
    r"|re-?install|re-?launch|re-?run|reduce|remove|restart|set|specify|try|update|upgrade|use"
)
# of these the bare word begins other sentences, too: "Call to …", "Run data is …"
_VERBS = (
    rf"{_PLAIN}|adjust|call|change|choose|correct|decrease|define|downgrade|give|initiali[sz]e|lower|move|put"
    r"|raise|rename|replace|run|select|split|start|supply|switch|train|unset|wrap"
)
_HEADS = (
    rf"(?:[Pp]lease,? (?:first |also |either )?(?:{_VERBS})\b"
    rf"|(?:^|(?<=[.!:;] )|(?<=\n))(?:{'|'.join(one.capitalize() for one in _PLAIN.split('|'))})\b(?= \S)"
    rf"|To (?:avoid|fix|resolve|solve) this(?: \w{{1,20}})?, (?:please )?(?:{_VERBS})\b"
    rf"|[Yy]ou (?:need to|must|should|have to) (?:either |first )?(?:{_VERBS}|have)\b"
    rf"|You can (?:also |first |either |then |try to )?(?:{_VERBS})\b"
    r"|(?:If|Assuming) (?:[^.!?\n]|\.(?=\w)){3,160}, (?:please )?"
    rf"(?:you (?:can|need to|must|should|have to) )?(?:try to )?(?:{_PLAIN}|run)\b"
    rf"|[Ee]ither (?:{_PLAIN})\b"
    r"|(?<!to )\bmake sure (?:to|that|you|your)\b"
    r"|(?:^|(?<=[.!] )|(?<=\n))(?=\S)[^.!?\n]{0,160}?\bpip3? install\b)"
)
_ASKED = rf"(?s){_HEADS}.{{3,300}}?(?=(?<!i\.e)(?<!e\.g)[.!](?:\s|$)|\n\s*\n|$)"
# to whom it may be told, or where more stands: no action on what failed
_ELSEWHERE = (
    r"(?i)\b(?:(?<!this )issue|bug report|report (?:it|this)|github|https?:|log level|contact|maintainers)\b"
)
_POINTS_BACK = frozenset({"it", "them", "this", "these", "those"})  # to the sentence before
_END = r"(?<=[.!]) (?!$)"
_MOST = 300
# the line under which it stands, and its lines
_CODE = (
    r":[ \t]*\n(?:[ \t]*\n){0,2}(?:"
    r"[ \t]*```[\w+-]*[ \t]*\n(?P<fenced>(?:(?![ \t]*```)[^\n]*\n){1,20}?)[ \t]*```"
    r"|(?P<prompted>(?:[ \t]*(?:>>>|\.\.\.|\$) [^\n]+(?:\n|$)){1,20})"
    r"|(?P<indented>(?:(?:\t| {2,})[^\s`][^\n]*(?:\n|$)){1,5}))"
)
_OPTION = r"(?<![\w-])--[a-z][\w-]{1,60}|\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+(?==)"
# options that argparse has read, of more than one word
_HANDED = r"\bargs\.([a-z]{2,20}(?:_[a-z]{2,20}){1,4})\b"
# "Expected argument `average` to be one of", "router_temperature must be greater than 0"
_PARAMETER = (
    r"(?:[A-Z][a-z]+: )?(?:[A-Za-z][a-z]* (?:(?:the|for|of|value|argument|parameter|option) )*)?"
    r"(?:(?P<q>[`'\"])(?P<quoted>[a-z_]\w{1,60})(?:=[^`'\"\n]*)?(?P=q)|(?P<bare>[a-z]\w*_\w+))"
    r" (?:must|should|cannot|can't|can only|has to|have to|needs? to|to be|is not|requires?|expects?)\b"
)
# "expects attention_backend to be one of ['a', 'b'], but got c", "'penalty' must be a str among {'a', 'b'}"
_ITEM = r"(?:'[^'\n]{1,60}'|\"[^\"\n]{1,60}\"|[\w.+-]{1,60})"
_STRING = r"(?:'[^'\n]{1,60}'|\"[^\"\n]{1,60}\")"
_NEXT = r"(?:, ?(?:or |and )?| or | and | ?\| ?)"
_CHOICE = (
    r"(?:(?P<q>[`'\"])(?P<quoted>-{0,2}[A-Za-z_][\w-]{1,60})(?P=q)"
    r"|(?P<bare>--[a-z][\w-]{1,60}|\b[A-Za-z]\w*_\w+)"
    r"|\b(?:argument|parameter|option) (?P<plain>[a-z]\w{1,60}))"
    r"(?: (?:argument|parameter|option|value|of \w{1,60})){0,3}"
    r" (?:(?:must|should|has to|have to|needs? to|can only|is expected to) be|to be)(?: an? \w{1,20})?"
    r" (?P<range>in)?(?:one of|either|among)?(?: the following| these)?:? ?"
    rf"(?:[\[({{<](?P<list>{_ITEM}(?:{_NEXT}{_ITEM}){{1,39}}),?[\])}}>]"
    rf"|(?P<strings>{_STRING}(?:{_NEXT}{_STRING}){{1,39}}))"
    r"(?:[,;.]? (?:but |instead )?(?:it )?(?:got|received|found|was|is|given|not)(?: value)?:?"
    r" (?P<got>[^\s,;]{1,60}))?"
)


def extract(event: Event, transcript: Transcript) -> Iterator[Found]:
    """The fact of an exception; nothing for another event."""
    if event.kind is EventKind.EXCEPTION and event.type:
        words, code = _asked(event.text)
        yield "words", words
        yield "code", code


def asked(text: str) -> str | None:
    """The first sentence of a message by which it asks for an action, in one line; None where none does.

    With the code that stands under it.
    """
    return _asked(text)[0]


def _asked(text: str) -> tuple[str | None, str | None]:
    """That sentence, and the code under it."""
    begun = text[:2_000]
    for found in pattern(_ASKED).finditer(begun):
        colon = found[0].find(":\n")
        end = found.start() + (colon if colon >= 0 else len(found[0].rstrip()) - 1)
        code = _code(begun, end)
        words = " ".join((begun[found.start() : end] if code is not None else found[0]).split())
        if words[:3] != "To " and _POINTS_BACK.intersection(words.lower().split()[1:5]):
            before = " ".join(begun[: found.start()].split())
            words = f"{re.split(_END, before)[-1]} {words}".strip()
        words = words if code is None else f"{words}: {code}"
        if len(words) <= _MOST and ("pip install" in words or not pattern(_ELSEWHERE).search(words)):
            return words, code
    return None, None


def _code(text: str, colon: int) -> str | None:
    """The code below a line that ends with a colon, in one line; None where none stands there.

    Lines of Python are joined as Python joins them; of a shell one line alone can be told so.
    """
    found = pattern(_CODE).match(text, colon)
    if found is None:
        return None
    given = found[found.lastgroup or 0].splitlines()
    lines = [pattern(r"^\s*(?:(?:>>>|\.\.\.|\$) )?").sub("", line).rstrip() for line in given if line.strip()]
    code = "; ".join(lines)
    return code if len(lines) == 1 or parsed(code) is not None else None


def setting(text: str, lines: Sequence[str] = ()) -> str | None:
    """The option, variable or parameter that a message of a program is about; None where it names none.

    ``lines`` are those of the stack: one that hands ``args.chat_template`` on makes an option of these words.
    """
    begun = text[:600]
    for name in [name for line in reversed(lines) for name in pattern(_HANDED).findall(line)]:
        words = name.replace("_", " ")
        if words in begun.lower():
            value = re.search(rf"(?i){words}[^()'\"\n]{{0,20}}[('\"](?P<value>[\w./:-]{{1,60}})[)'\"]", begun)
            return f"--{name.replace('_', '-')}" + (f" {value['value']}" if value is not None else "")
    named = pattern(_OPTION).search(begun)
    if named is not None:
        return named[0]
    named = pattern(_PARAMETER).match(begun)
    if named is None:
        chosen = choice(text)
        return chosen[0] if chosen is not None else None
    return named["quoted"] or named["bare"]


def choice(text: str) -> tuple[str, tuple[str, ...], str | None] | None:
    """The setting of which a message lists the values that it may have, these, and the one that it has."""
    found = pattern(_CHOICE).search(text[:2_000])
    if found is None:
        return None
    values = pattern(_ITEM).findall(found["list"] or found["strings"])
    values = [one for one in values if one not in ("or", "and")]
    if found["range"] and all(pattern(r"[-+.\d]+").fullmatch(one) for one in values):
        return None  # "must be in [0, 1]"
    got = found["got"].strip("'\"`.") if found["got"] else None
    name = found["quoted"] or found["bare"] or found["plain"]
    return name, tuple(one.strip("'\"") for one in values), got or None
