"""How a message stands in the line that holds it: as itself, led up to, or spoken of.

A line is taken apart into somebody's own words, what they hold (between quotation marks, or from the class of
an exception on), and what they go on with. Whether the own words lead up to what happened, or suppose,
explain and remember, stands in the tables of ``tongues``. Intake asks for whole lines; the engine asks for
the place at which a rule's message was found.
"""

from __future__ import annotations

from typing import NamedTuple

from torchdoctor.intake import tongues
from torchdoctor.intake.draft import pattern
from torchdoctor.intake.voice import Text, words_of
from torchdoctor.model import Event, EventKind, Stand

LONGEST = 2_000
MOST_HELD = 12  # messages of one line
_OPENING = '`"\u201c\u201e\u00ab\u300c'
_HELD = (
    r"(?<![^\W_])(?:(?P<mark>[`\"])(?P<near>.{2,}?)(?P=mark)(?!\w)"
    r"|[\u201c\u201e\u00ab\u300c](?P<far>[^\u201c\u201d\u00bb\u300d]{2,})[\u201c\u201d\u00bb\u300d])"
    r"|(?<![\w.])(?P<typed>(?:\w+\.)*[A-Z]\w*(?:Error|Exception|Unsupported): .*)"
)


class Saying(NamedTuple):
    """A line taken apart; ``held`` is empty where it holds no message."""

    own: str
    held: str = ""
    behind: str = ""


def sayings(line: str) -> list[Saying]:
    """Each message that a line holds, with the words before and behind it; else the line alone."""
    text = line.strip()[:LONGEST]
    found: list[Saying] = []
    end = 0
    for place in pattern(_HELD).finditer(text):
        held = place["near"] or place["far"] or place["typed"]
        if " " not in held:
            continue  # a name, no message
        if len(found) == MOST_HELD:
            break
        if found:
            found[-1] = found[-1]._replace(behind=text[end : place.start()])
        found.append(Saying(text[end : place.start()], held, ""))
        end = place.end()
    if not found:
        return [Saying(text)]
    found[-1] = found[-1]._replace(behind=text[end:])
    return found


def holds(text: str, *tables: str) -> bool:
    """Does a rule of these tables hold in a sentence of the text?"""
    return Text([text]).has(*tables)


def shows(line: str, personal: bool) -> bool | None:
    """Do somebody's own words lead up to what he was shown? None where they suppose, explain or remember."""
    if pattern(_COMMIT).match(line) or holds(line, "past"):
        return None
    said = sayings(line)
    supposed = [_supposes(one) for one in said]
    for at in range(len(said) - 1, 0, -1):  # of one sentence, or marks within a message
        supposed[at - 1] |= (
            supposed[at] and "," not in said[at].own and _last_sentence(said[at].own) == said[at].own
        )
    if any(not aside and _announces(one, personal) for one, aside in zip(said, supposed, strict=True)):
        return True
    return None if any(supposed) else False


# the subject of a commit
_COMMIT = r"\W*(?:[Ff]ix|chore|docs|refactor|test|feat|perf|build|ci)\b(?:\(|:|!| )"


def _supposes(said: Saying) -> bool:
    """Words about other people, other times, or the way out: what they hold befell nobody now."""
    own = _last_sentence(said.own) if said.held else said.own.partition(": ")[0].partition("\uff1a")[0]
    if holds(own, "supposes") or holds(_next_clause(said.behind), "supposes"):
        return True
    closed = pattern(r"[`\"\u201c\u201d\u00bb\u300d] ([^\W\d]+)").findall(said.behind)
    return any(word in tongues.words("explaining") for word in closed)


def _announces(said: Saying, personal: bool) -> bool:
    """Words that lead up to a message, in the line itself or below it."""
    own = _last_sentence(said.own) if said.held else said.own
    if holds(own, "tells"):
        return True
    if said.held and personal:
        bare = own.rstrip(_OPENING + " (")
        return bare[-1:] in (":", "\uff1a") or bare.endswith((" with", " by")) or holds(own, "leads")
    if said.held and own.rstrip(_OPENING + " ")[-1:] in (":", "\uff1a"):
        return holds(own, "leads")
    if said.held:
        return holds(" ".join(own.rstrip(_OPENING + " :(").split()[-1:]), "leads")
    # "Stacktrace: …", "it prints:"
    heads = own.replace("\uff1a", ":").split(":")[:-1]
    return any(holds(" ".join(head.split()[-1:]), "leads") for head in heads)


def _last_sentence(text: str) -> str:
    return pattern(r"[.?!](?= [A-Z(])|; |, (?:but|yet|aber|mais|pero) |[\u3002\uff1f\uff01]").split(text)[-1]


def _next_clause(text: str) -> str:
    return pattern(r"[.?!;](?:\s|$)|,(?!\d)|[\u3002\uff1f\uff01\uff0c]").split(text.lstrip(", "))[0]


def copied(raw: str) -> bool:
    """Can the line be a program's message? In a list or a table it is named only."""
    text = raw.strip()[:LONGEST]
    if not text or text[0] in "|-+" or text.startswith("* "):
        return False
    # torch itself says so of a reduction that was not finished
    return not holds(text.lower().replace("this error indicates", ""), "explained", "past")


def addresses(line: str) -> bool:
    """True for words to a reader: what befell him is not shown, but supposed."""
    words = words_of(line.lower())
    return not words.isdisjoint(tongues.words("reader")) or "\u4f60" in line or "\u60a8" in line


def leads(raw: str) -> bool:
    """Does the line begin with an exception, but for the marks of Markdown?"""
    named = r"[#>*_`\"' ]*(?:\[[\w -]{1,20}\]:? ?)?(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception): "
    return pattern(named).match(raw) is not None


def stand(event: Event, text: str, start: int, end: int, *, log: bool) -> Stand:
    """How the message at ``start`` to ``end`` of an event's ``text`` stands there; ``log``: of a program."""
    own, behind = text[:start], text[end : end + 400]
    if event.quoted:
        listed = event.told and pattern(_MARKED).match(own) and pattern(_ONE_OF).match(behind)
        return Stand.ITSELF if not listed and _begins(event, own, _is_asked(behind)) else Stand.NAMED
    if event.rank is not None or event.level or event.frames:
        return Stand.ITSELF
    line = event.kind is EventKind.LOG
    if line and log and start > 8 and not event.told and _aside(own, behind, event.time):
        return Stand.NAMED
    if event.time:
        return Stand.ITSELF
    if "`" in own and pattern(_LISTED).match(own):
        return Stand.TOLD
    if line and _goes_on(behind) and not words_of(own[-200:].lower()).isdisjoint(tongues.words("points")):
        return Stand.TOLD
    return Stand.ITSELF


# right before a message: a mark, or an exception, and what stands before many of CUDA's
_NAMED = (
    r"(?:[\"'`\u201c\u201e\u00ab(] ?(?:(?:\w+\.)*\w*(?:Error|Exception): )?|(?:\w+\.)*\w*(?:Error"
    r"|Exception): )(?:CUDA (?:(?:runtime )?error(?: \(\d+\) ?)?: )?)?$"
)
# a message between quotation marks at the beginning of a line, and the sentence that goes on behind it, over
# from the line before: 'when they read "CUDA out of memory" or' / '"device-side assert triggered". I would'
_MARKED = r"[\"'`\u201c\u201e\u00ab](?:CUDA error: )?$"
_ONE_OF = (
    r"[^\"'`\u201c\u201d\u00bb\n]{0,60}[\"'`\u201c\u201d\u00bb](?:\.? (?:[A-Z]\w* ){1,2}[a-z]"
    r"|,? (?:or|and|oder|und|ou|et|o|y|e|i|lub|oraz|\u0438|\u0438\u043b\u0438)(?: |$)|, [a-z\"'`])"
)
# a heading below the title, an item of a list, a bold question, with the message between back quotes
_LISTED = r"\s*(?:#{2,6} |[-*] |\*\*|\d{1,2}[.)] )[^`\n]{0,40}`[^`\n]{0,60}$"


# a question about a message: it is there, and is to go away
_RID = (
    r"(?i)\W{0,6}how (?:to|can i|do i|do you|should i|could i) "
    r"(?:deal with|solve|resolve|fix|handle|get rid of)[^.:?]{0,40}$"
)


def _is_asked(behind: str) -> bool:
    """Does the sentence that holds a message end as a question?"""
    return behind.partition("\n")[0].rstrip(" \"'`\u201d)*_")[-1:] in ("?", "\uff1f")


def _begins(event: Event, own: str, asked: bool) -> bool:
    """Does the message begin the line, but for names and numbers, or its title? Then somebody copied it."""
    if event.kind is EventKind.EXCEPTION and event.type:
        return True  # the line begins with the class; what follows is the message
    if event.type:
        own = own.removeprefix(f"{event.type}: ")
    named = pattern(_NAMED).search(own)
    bare = own[: named.start()] if named else own
    words = words_of(bare.lower())
    count = len(bare.split())
    if (
        own[:2] == "# "
        and not words.isdisjoint(tongues.words("happened"))
        and words.isdisjoint(tongues.words("wishes"))
    ):
        return True
    if bare.rstrip()[-1:] == ":" and count < 25 and not holds(bare, "supposes"):
        return True  # "Building the extension: nvcc fatal …"
    if asked and event.told and pattern(_RID).match(bare):
        return True
    last = _last_sentence(bare)
    if holds(" ".join(last.split()[-4:]), "leads") and not holds(f"{last} ?" if asked else last, "supposes"):
        return True  # "…, it says module 'x' has no attribute 'y'"
    return count < 12 and tongues.words("talk").isdisjoint(words_of(bare.lower().removeprefix("the ")))


def _aside(own: str, behind: str, timed: str | None) -> bool:
    """Is the message named in a sentence that tells of no failure, or of one that is over?

    Where the line bears a time it is a program's, unless its words suppose something, as those of a talk do.
    """
    named = pattern(_NAMED).search(own)
    if named is None:
        return False
    bare = own[: named.start()]
    if bare.split(" ")[0].lower() in ("handle", "catch", "avoid", "ignore", "document", "suppress"):
        return True  # the subject of a change
    if bare.count(" ") < 2:
        return False
    if named[0][:1] in _OPENING and (holds(bare, "supposes") or holds(behind, "settled")):
        return True
    if timed or bare.rstrip()[-1:] == ":":
        return False
    words = [word.strip(".,:;()[]!?\"'`").lower() for word in bare.split()]
    return (
        tongues.words("happened").isdisjoint(words)
        and sum(word in tongues.words("talk") for word in words[:40]) >= 2
    )


def _goes_on(behind: str) -> bool:
    """Does the sentence go on behind the message, or ask?"""
    rest = behind.lstrip("`\"'\u201d")
    if rest[:1] == "?" and rest is not behind and rest[1:2] in ("", " "):
        return True
    words = rest.lstrip(",").split(None, 2)
    return (
        len(words) > 2
        and rest[:1] in " ,"
        and words[0].lower() in tongues.words("goes-on")
        and any(c in rest for c in ".?!:")
    )
