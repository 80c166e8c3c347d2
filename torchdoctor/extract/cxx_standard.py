"""Which C++ standard a compiler was told to use, which one brought a name of std, and in which header."""

from __future__ import annotations

from torchdoctor.model import EventKind, Transcript
from torchdoctor.number import count
from torchdoctor.patterns import pattern

# names of namespace std and the standard that brought them: missing under an older -std, the flag is at fault
_OF_STANDARD: dict[int, str] = {
    14: "enable_if_t decay_t conditional_t make_unique remove_reference_t index_sequence make_index_sequence "
    "remove_cv_t result_of_t integer_sequence exchange index_sequence_for add_const_t",
    17: "optional string_view variant is_same_v void_t invoke_result_t disjunction conjunction apply any "
    "nullopt is_convertible_v byte is_floating_point_v is_arithmetic_v clamp is_integral_v invoke size data",
    20: "remove_cvref_t span bit_cast endian type_identity_t numbers ranges same_as",
}
_STD_MISSING = (
    r"['‘`\"](\w+)['’\"]:? (?:in namespace ['‘`]std['’] does not name|is not a member of ['‘`\"]std['’\"])"
    r"|namespace \"std\" has no (?:actual )?member (?:\w+ )?\"(\w+)\""
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
    name = _lacking(_STD_MISSING, error)
    return any(year > standard and name in names.split() for year, names in _OF_STANDARD.items())


def _lacking(form: str, error: str) -> str:
    """The name that an error does not know; "" where it is about something else."""
    found = pattern(form).search(error)
    return next(filter(None, found.groups()), "") if found is not None else ""


_UNKNOWN_NAME = (
    r"(?:identifier|unknown type name) ['\"‘](\w{2,40})['\"’]"
    r"|['‘](?:std::)?(\w{2,40})['’] (?:was not declared|does not name a type)"
)
# what a header of the C++ standard declares, and older compilers' other headers brought in by the way
_HEADERS = {
    r"(?:FLT|DBL|LDBL)_(?:MAX|MIN|EPSILON|DIG)": "cfloat",
    r"(?:U?(?:CHAR|SHRT|INT|LONG|LLONG)_(?:MAX|MIN)|CHAR_BIT)": "climits",
    r"u?int(?:_fast|_least)?(?:8|16|32|64)_t|u?int(?:ptr|max)_t|U?INT(?:8|16|32|64)_(?:MAX|MIN|C)": "cstdint",
    r"mem(?:cpy|set|move|cmp)|str(?:len|cmp|cpy)": "cstring",
    r"numeric_limits": "limits",
    r"omp_(?:get|set|in|init|destroy|test|unset)_\w{2,30}": "omp.h",  # of OpenMP, which compilers bring too
}
# the same where the compiler looked for the name in std (gcc.gnu.org/gcc-13/porting_to.html and others)
_HEADERS_OF_STD = {
    r"(?:unique|shared|weak)_ptr|make_(?:unique|shared)": "memory",
    r"(?:runtime|logic|range|overflow)_error|invalid_argument|out_of_range": "stdexcept",
    r"function|bind|reference_wrapper": "functional",
    r"(?:stable_)?sort|fill(?:_n)?|copy(?:_n|_if)?|find(?:_if)?|(?:max|min)_element|reverse|transform"
    r"|(?:all|any|none)_of|clamp|(?:lower|upper)_bound": "algorithm",
    r"accumulate|iota|inner_product|partial_sum": "numeric",
    r"(?:back_)?inserter|[io]stream_iterator|make_move_iterator": "iterator",
    r"(?:make_)?pair|exchange|(?:make_)?(?:index|integer)_sequence": "utility",
    r"[io]?stringstream": "sstream",
    r"[io]?fstream": "fstream",
    r"cout|cerr|cin|clog": "iostream",
    r"set(?:w|fill|precision)": "iomanip",
    r"lock_guard|unique_lock|once_flag|call_once": "mutex",
    r"this_thread": "thread",
    r"nullopt": "optional",
    r"(?:is(?:nan|inf|finite)|sqrt|pow|exp|floor|ceil|round|log2?|fabs)": "cmath",
    r"malloc|free|getenv|exit|abort": "cstdlib",
    r"s?n?printf": "cstdio",
    # what gave its header the name
    r"(string|vector|array|map|set|deque|list|queue|stack|tuple|optional|variant|any|string_view|thread|mutex"
    r"|future|atomic|bitset|complex|chrono|filesystem|condition_variable|span|unordered_(?:map|set))": r"\1",
}  # fmt: skip
_MEANT = r"did you mean ['\"‘](?:std::)?(\w{2,40})['\"’]"


def std_header(error: str, standard: int | None) -> str:
    """The standard header that declares the name which an error of a compiler does not know; "" for none.

    A name that a later standard brought has its header only where the compiler is known to be told that one.
    """
    name = _lacking(_STD_MISSING, error)
    forms = {**_HEADERS, **_HEADERS_OF_STD} if name else _HEADERS
    if any(name in names.split() for names in _OF_STANDARD.values()) and standard is None:
        return ""
    name = name or _lacking(_UNKNOWN_NAME, error)
    meant = pattern(_MEANT).search(error)
    for form, header in forms.items():
        if (found := pattern(form).fullmatch(name)) is not None:
            if meant is not None and pattern(form).fullmatch(meant[1]):
                return ""  # a name like it that is declared: the header is there
            return found.expand(header)
    return ""
