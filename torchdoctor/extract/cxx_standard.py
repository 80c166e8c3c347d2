"""Which C++ standard a compiler was told to use, and which one brought a name of namespace std."""

from __future__ import annotations

from torchdoctor.model import EventKind, Transcript
from torchdoctor.number import count
from torchdoctor.patterns import pattern

# names of namespace std and the standard that brought them: missing under an older -std, the flag is at fault
_STD_NAMES: dict[int, str] = {
    14: "enable_if_t decay_t conditional_t make_unique remove_reference_t index_sequence make_index_sequence "
    "remove_cv_t result_of_t integer_sequence exchange index_sequence_for add_const_t",
    17: "optional string_view variant is_same_v void_t invoke_result_t disjunction conjunction apply any "
    "nullopt is_convertible_v byte is_floating_point_v is_arithmetic_v clamp is_integral_v invoke size data",
    20: "remove_cvref_t span bit_cast endian type_identity_t numbers ranges same_as",
}
_STD_MISSING = (
    r"['‘`\"](\w+)['’\"] (?:in namespace ['‘`]std['’] does not name|is not a member of ['‘`\"]std['’\"])"
    r"|namespace \"std\" has no (?:actual )?member \"(\w+)\""
    r"|no (?:member|template|type) named '(\w+)' in namespace 'std'"
)
_STANDARD = r"[-/]std[=:](?:c|gnu)\+\+(\d\w)"
_STANDARD_YEARS = {"0x": 11, "1y": 14, "1z": 17, "2a": 20, "2b": 23}


def standard_asked_for(transcript: Transcript, until: int) -> int | None:
    """The last -std of the last command before the error: the last one on a command line wins."""
    wrapped = transcript.events[until].kind is EventKind.EXCEPTION  # it holds the command, too
    for event in reversed(transcript.events[: until + wrapped]):
        if "std" not in event.text:
            continue
        names: list[str] = pattern(_STANDARD).findall(event.text)
        if names:
            return _STANDARD_YEARS.get(names[-1]) or count(names[-1])
    return None


def lacks_name_of_std(error: str, standard: int) -> bool:
    """Does a compiler miss a name of namespace std that a later standard than the one it was told brought?"""
    missing = pattern(_STD_MISSING).search(error)
    if missing is None:
        return False
    name = next(group for group in missing.groups() if group)
    return any(year > standard and name in names.split() for year, names in _STD_NAMES.items())
