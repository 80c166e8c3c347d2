"""Code that makes a collective call under a test of the rank, in a program that hangs.

The call stands there itself, or in a function that the branch calls; a test that leaves the function early
puts all that follows under it. Some calls are collectives only by what the model is: the state of a sharded
one is gathered from all ranks, a wrapped one sends its buffers before each forward.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from torchdoctor.extract.readings import stall
from torchdoctor.extract.readings.passage import Passage, Voice
from torchdoctor.extract.readings.patterns import patterns
from torchdoctor.extract.readings.shown_code import Statement, statements

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdoctor.model import Fact

NAMESPACE = "rank_branch"

FACTS: dict[str, str] = {
    "rank_branch.call": "str: collective call that only some ranks make",
    "rank_branch.test": "str: test of the rank that it stands under",
    "rank_branch.hangs": "bool: somebody says that the program hangs",
}

_RANK = (
    r"(?:\b(?:\w*_)?rank\b|\brank_?id\b|get_rank\(\)|\brank\(\)|get_local_rank\(|['\"](?:LOCAL_)?RANK['\"]"
    r"|is_(?:\w+_)?(?:main|master|chief|primary)\w*|\bmain_process\b|is_\w*rank_?(?:zero|0)|is_global_zero"
    r"|is_world_process_zero|is_world_master"
    r"|\bis_?rank0\b|\bmaster\b|is_first_worker|get_process_index|process_index)"
)
_COLLECTIVE = (
    r"(?:monitored_barrier|barrier|all_?reduce\w*|all_?gather\w*|reduce_scatter\w*|broadcast\w*|gather\w*"
    r"|scatter_object_list|all_to_all\w*|reduce)"
)
_PATTERNS = {
    "test": rf"^(?:el)?if\b[^#\n]{{0,100}}?{_RANK}[^#\n]{{0,60}}:$",
    "rest": r"!=|>\s*0|\bnot\b|if (?:\w+\.)?(?:local_|global_)?rank:$",
    "leaves": r"^(?:return|continue)\b|^sys\.exit|^exit\(",
    "call": (
        rf"\b(?:dist|distributed|accelerator|fabric|hvd|comm|c10d|strategy|funcol|self|misc|utils?"
        rf"|comm_utils|dist_utils)\.{_COLLECTIVE}\("
        r"|(?<![\w.])(?:monitored_barrier|barrier|all_reduce|all_gather(?:_object|_into_tensor)?"
        r"|broadcast(?:_object_list)?|reduce_(?:dict|tensor|value|loss|mean)|gather_object)\("
        r"|\b(?:wait_for_everyone|gather_for_metrics|synchronize_between_processes|consolidate_state_dict"
        r"|pad_across_processes|mesh_reduce|rendezvous)\("
        r"|(?<!cuda\.)(?<!\w)(?:comm\.|dist\.)?synchronize\(\)|sync_dist\s?=\s?True"
    ),
    # the state of a sharded model is gathered by all
    "sharded": (
        r"FSDP|FullyShardedDataParallel|fully_shard|\bZeRO|zero[_ ]?(?:stage)?[ _-]?[23]\b|deepspeed|DTensor"
    ),
    "state": (
        r"\bstate_dict\(|optim_state_dict\(|\bget_(?:model_|optimizer_)?state_dict\(|\.?save_state\("
        r"|\.save_checkpoint\(|\bdcp\.save\(|dist_cp\.save|full_tensor\(|\bclip_grad_norm_\("
        r"|summon_full_params"
        r"|\.save_model\(|\.save_16bit_model\(|FULL_STATE_DICT"
    ),
    # always a collective of the library named
    "saves": r"\baccelerator\.(?:save_state|get_state_dict)\(|\b(?:model_)?engine\.save_checkpoint\(",
    "wrapped": (
        r"\bDDP\b|DistributedDataParallel|SyncBatchNorm|SyncBN|convert_sync_batchnorm|torchrun|accelerate"
    ),
    "forward": (
        r"(?:=\s*|\(|^|return )(?:[\w.]+\.)?(?:(?:\w*(?:evaluat|validat|eval|generat|infer|predict|avalia"
        r"|evalue|sample)\w*|test(?:_\w+)?|val(?:_\w+)?)\([^()]{0,40}\b(?:ddp_)?(?:model|net)\b(?!\.module)"
        r"|(?:self\.)?(?:ddp_)?(?:model|net)\((?!\)))"
    ),
    "metric": r"\bmetric\w*(?:\[[^\]]{1,30}\])?\.compute\(\)|\.compute\(\)",
    "bare": r"\.module\b(?!\.state_dict)|unwrap_model|\bjoin\(",
    # a frame of py-spy, innermost first
    "frame": r"^\s*(?P<name>\w+) \((?!torch/)[\w./-]+\.py:\d+\)$",
    "outermost": r"(?:main|train|fit|run|loop|worker)\w*$",
    "def": r"^(?:async )?def (?P<name>\w+)\(",
    "names": r"\b(?P<name>[A-Za-z_]\w{2,40})\(\)",
    "calls": r"\b(?P<name>[A-Za-z_]\w*)\(",
    "zero-only": (
        r"^@(?:\w+\.)*(?:rank_?zero_only|master_only|main_process_only|on_main_process|only_rank0)\b"
    ),
    # in words: "all_reduce is only called on rank 0"
    "only": (
        r"(?i)(?:\bonly (?:on |in |by |for )?(?:the )?(?:rank[ -]?(?:0|zero)|main process|master|process 0)"
        r"|(?:rank[ -]?(?:0|zero)|main process|master) only|(?:inside|under|within|in|behind) "
        r"(?:an? |the )?`{0,2}if [^.\n]{0,24}(?:rank|main_process|master)|nur (?:auf |von )?Rang 0"
        r"|nur auf rank 0"
        r"|seulement sur le rang 0|solo en (?:el )?rank 0|apenas no rank 0|s[o\u00f3] no rank 0"
        r"|solo sul rank 0"
        r"|\u53ea\u5728 ?(?:rank ?0|\u4e3b\u8fdb\u7a0b|0\u53f7)|rank ?0 ?(?:\u3060\u3051|\u306e\u307f)"
        r"|rank ?0\uc5d0\uc11c\ub9cc)"
    ),
    "named": (
        r"\b(?:all_?reduce|all_?gather\w*|barrier|broadcast\w*|wait_for_everyone|gather_for_metrics"
        r"|reduce_dict"
        r"|sync_dist|gather_object|SyncBatchNorm|SyncBN)\b"
    ),
}


_pattern = patterns(_PATTERNS)


@dataclass(frozen=True, slots=True)
class Found:
    """A collective in a branch. ``rest``: the branch of the ranks other than the first."""

    test: Statement
    call: Statement
    rest: bool


def read(passage: Passage) -> Iterator[Fact]:
    """Facts of the first such call; nothing where the other ranks have a call of their own."""
    passage = passage.spaced
    if not stall.speaks(passage):
        return
    hangs = stall.told(passage)
    if hangs is None:
        return
    code = list(statements(passage))
    found = _branches(code, passage)
    if not found:
        told = next((line for line in passage.sentences if _told(line.text)), None)
        only = _pattern("only").search(told.text) if told is not None else None
        named = _pattern("named").search(told.text) if told is not None else None
        if told is not None and only is not None and named is not None:
            yield told.fact("rank_branch.call", named.group())
            yield told.fact("rank_branch.test", only.group())
            yield hangs.fact("rank_branch.hangs", True)
        return
    if not found or len({one.rest for one in found}) > 1:
        return  # in two branches: one rank goes first, the others follow
    first = found[0]
    yield first.call.fact("rank_branch.call", first.call.text[:120])
    yield first.test.fact("rank_branch.test", first.test.text[:120])
    yield hangs.fact("rank_branch.hangs", True)


def _told(text: str) -> bool:
    return bool(_pattern("only").search(text) and _pattern("named").search(text))


def _branches(code: list[Statement], passage: Passage) -> list[Found]:
    helpers = _helpers(code, passage)
    sharded = bool(_pattern("sharded").search(passage.text))
    wrapped = sharded or bool(_pattern("wrapped").search(passage.text))
    found: list[Found] = []
    weak: list[Found] = []
    test: Statement | None = None
    rest = early = False
    for at, one in enumerate(code):
        if test is not None and _is_past(one, test, early):
            if one.text.startswith(("else:", "elif ")) and one.indent == test.indent and not early:
                test, rest = one, not rest
                continue
            test = None
        if test is None:
            if _pattern("zero-only").match(one.text):
                test, rest, early = one, False, True
            elif _pattern("test").match(one.text):
                test, early = one, False
                rest = bool(_pattern("rest").search(one.text))
                below = code[at + 1] if at + 1 < len(code) else None
                if below is not None and below.indent > one.indent and _pattern("leaves").match(below.text):
                    early, rest = True, not rest  # who is left goes on
            continue
        if (
            _pattern("call").search(one.text)
            or _calls(one.text, helpers)
            or _pattern("saves").search(one.text)
        ):
            found.append(Found(test, one, rest))
        elif not rest and (
            (sharded and _pattern("state").search(one.text))
            or (wrapped and "metric" in passage.text and _pattern("metric").search(one.text))
            or (wrapped and _pattern("forward").search(one.text) and not _pattern("bare").search(one.text))
        ):
            weak.append(Found(test, one, rest))
    return found or weak


def _is_past(one: Statement, test: Statement, early: bool) -> bool:
    """Is a statement out of the branch? Another place of the text is, or a function's end."""
    if one.run != test.run:
        return True
    if _pattern("zero-only").match(test.text):
        return one.indent <= test.indent and not one.text.startswith(("def ", "async def ", "@"))
    return one.indent < test.indent if early else one.indent <= test.indent


def _helpers(code: list[Statement], passage: Passage) -> frozenset[str]:
    """Functions whose body is shown and makes a collective call, under no test of its own."""
    found: set[str] = set()
    name: str | None = None
    indent = run = -1
    tested = -1
    for one in code:
        if (head := _pattern("def").match(one.text)) is not None:
            name, indent, run, tested = head.group("name"), one.indent, one.run, -1
            continue
        if one.run != run:
            name, run, tested, indent = _announced(one, passage), one.run, -1, -1
        if one.indent <= indent:
            name = None
        if tested >= 0 and one.indent <= tested:
            tested = -1
        if tested < 0 and _pattern("test").match(one.text):
            tested = one.indent
        elif name is not None and tested < 0 and _pattern("call").search(one.text):
            found.add(name)
    return frozenset(found | _callers(found, passage))


def _callers(helpers: set[str], passage: Passage) -> set[str]:
    """Functions that a stack shows above a helper: the body of such a one need not be in the text."""
    found: set[str] = set()
    inner = ""
    for line in passage.lines:
        frame = _pattern("frame").match(line.text)
        name = frame.group("name") if frame is not None else ""
        if name and inner in helpers | found and not _pattern("outermost").match(name):
            found.add(name)
        inner = name
    return found


def _announced(one: Statement, passage: Passage) -> str | None:
    """The function that the words right above a piece of code name: ``and at the end of evaluate():``."""
    above = passage.lines[one.line.at - 1] if one.line.at else None
    if above is None or above.voice not in (Voice.SAID, Voice.PRINTED):
        return None
    names: list[str] = [hit.group("name") for hit in _pattern("names").finditer(above.text)]
    return names[-1] if names else None


def _calls(text: str, helpers: frozenset[str]) -> bool:
    return bool(helpers) and any(hit.group("name") in helpers for hit in _pattern("calls").finditer(text))
