"""Whether a text is a chat: who speaks stands before what he says."""

from __future__ import annotations

from torchdoctor.intake.draft import pattern
from torchdoctor.intake.written import is_program
from torchdoctor.sentence_words import COMMON

_SPEAKER = (
    r"^(\w[\w .-]{0,24}?)(?: [\u2014\u2013-])?[ ,]+"
    r"(?:(?:[Tt]oday|[Yy]esterday|[Hh]eute|[Gg]estern)(?:,| at| um)? )?(?:\[?\d{1,2}:\d\d(?: ?[AP]M)?\]?"
    r"|\d{1,4}[./-]\d{1,2}[./-]\d{1,4},? \d{1,2}:\d\d(?::\d\d)?(?: "
    r"?[AP]M)?)$"
)


# what is cited stands in English, and between marks
_MESSAGES = r"[\"\u201c\u201e`][^\"\u201d`]*[\"\u201d`]"


def is_chat(lines: list[str]) -> bool:
    """True when most lines are ``[10:02] name: words``, ``name: words`` or ``<name> words``."""
    spoken = sum(": " in line[:40] or "\uff1a" in line[:40] or line[:1] == "<" for line in lines[:400])
    timed = sum(":" in line[-9:] and len(line) < 60 for line in lines[:400])
    if spoken * 10 < len(lines[:400]) * 7 and timed < 3:
        return False
    names: dict[str, int] = {}
    prose = timed_names = 0
    for line in lines[:400]:
        found = pattern(
            r"^(?P<at>\[?(?:\d{1,4}[./-]\d{1,2}[./-]\d{1,4},? )?\d{1,2}:\d\d(?::\d\d)?(?: ?[AP]M)?\]? )?"
            r"(?:<(?P<a>[\w .-]{1,24})> "
            r"|@?(?P<b>[^\W\d_][\w.-]{0,20}(?: [A-Z\d]\w{0,14})?)(?: \[\d{1,2}:\d\d\])?(?:\uff1a ?|: ))"
            r"(?P<rest>\S.*)$"
        ).match(line.strip())
        if found and not is_program(line.strip()):
            name = (found["a"] or found["b"]).lower()
            names[name] = names.get(name, 0) + 1
            timed_names += ", " in (found["at"] or "")
            low = [word.strip(".,:;!?()\"'`").lower() for word in found["rest"].split()]
            talks = any(word in COMMON for word in low) or len(low) < 4
            # the names of languages with other letters come with their words; those with marks have them, too
            prose += talks or not pattern(_MESSAGES).sub("", found["rest"]).isascii()
    heads = [m[1] for line in lines[:400] if (m := pattern(_SPEAKER).match(line))]
    if len(heads) >= 3 and len(set(heads)) >= 2 and len(heads) * 4 >= len(lines[:400]):
        return True
    people = sorted(names.values(), reverse=True)
    spoken = sum(people[:8])
    # as IRC and messengers show who speaks, these with the date
    tagged = all(line.lstrip()[:1] == "<" for line in lines) or timed_names == len(lines)
    if len(people) < 2 or (people[1] < 2 and not tagged):
        return False
    return spoken * 10 >= len(lines) * 7 and prose * 10 >= spoken * 7
