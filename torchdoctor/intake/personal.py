"""Whether somebody speaks of what happened to him: by his words, or by the form that he filled in."""

from __future__ import annotations

from torchdoctor.intake.draft import pattern

_PERSONAL = (
    r"\bi (?:am|'m|have|had|get|got|can'?t|cannot|don'?t|did|tried|try|use|used|ran|run|want|need|met|meet"
    r"|keep|installed|found|see|was)\b|what (?:do|should) i do"
    r"|(?:[Pp]lease|pls|plz) help|[Aa]ny (?:help|ideas?|solutions?|suggestions?|advice)\b.*[?!]"
    r"|[Hh]ow (?:to|can i|do i) (?:solve|fix|resolve) (?:this|it|the (?:problem|issue|error))\b.*\?"
    r"|[Hh]ow (?:can|do|should|could) (?:i|I|we) \w+"
    r"|[Aa]nyone (?:else|knows?|found|has|have)\b"
    r"|\b[Ii]s (?:this|it|that)(?: an?)?(?: (?:error|warning|message|behaviou?r))?"
    r" (?:ok|OK|normal|expected|bug|fine)\b.*\?"
    r"|\b(?:[Ii]s there|[Dd]oes|[Hh]as|[Hh]ave|[Dd]id|[Cc]an|[Cc]ould) any(?:one|body)\b"
    r"|(?:^|[^\w`])(?:I|I'm|I've|my|me|My|[Ww]e (?:get|got|see|saw|have)|our (?:run|job)s?"
    r"|[Ii]ch|[Mm]ein(?:e[mnrs]?)?|mir|j'ai|mon|mes|chez moi|mi|tengo|meu|minha"
    # Cyrillic: u menya, moj; then Chinese, Japanese and Korean for "my"
    r"|[\u0423\u0443] \u043c\u0435\u043d\u044f|\u043c\u043e[\u0439\u044f\u0451\u0438])(?:[^\w`]|$)"
    r"|\u6211\u7684?|\u79c1\u306e|\u50d5\u306e|\uc81c\uac00"
    # "may I ask", "hello" (twice), "asking for help" in Chinese
    r"|\u8bf7\u95ee|\u4f60\u597d|\u60a8\u597d|\u6c42\u52a9"
    # "asking the great ones, for an answer", "I ask to be taught", "what shall be done", "how to solve this"
    r"|\u6c42(?:\u5927\u795e|\u5927\u4f6c|\u89e3\u7b54|\u6559)|\u8bf7\u6559|\u600e\u4e48\u529e"
    r"|\u8be5(?:\u5982\u4f55|\u600e\u4e48)\u89e3\u51b3|\u6709\u4eba\u9047\u5230"
    # "please tell me, help" in Japanese, Korean and Russian
    r"|\u6559\u3048\u3066|\u56f0\u3063\u3066|\ub3c4\uc640\uc8fc"
    r"|\u043f\u043e\u0434\u0441\u043a\u0430\u0436\u0438\u0442\u0435"
    r"|\u043f\u043e\u043c\u043e\u0433\u0438\u0442\u0435"
)
# headings of the forms that projects have their users fill in
_TEMPLATE = (
    r"(?:#{1,6} |\*\*)[^\w\n]{0,6}(?:Describe the (?:bug|issue)|(?:To|Steps to) [Rr]eproduce"
    r"|(?:Actual|Current|Expected) [Bb]ehaviou?r|What happen(?:s|ed)|What should have happened"
    r"|Reproduc(?:tion|es the problem)|System [Ii]nfo|Your question|Bug\b(?! ?[Ff]ix)|Console logs"
    r"|Environment *$|Error (?:message|traceback|logs)|Relevant log output|Versions *$|Issue [Ff]aced"
    r"|Bug [Dd]escription|\u95ee\u9898\u63cf\u8ff0|\u62a5\u9519\u4fe1\u606f|\u9519\u8bef\u4fe1\u606f"
    r"|\u9519\u8bef\u65e5\u5fd7"
    r"|\u590d\u73b0|\u8fd0\u884c\u73af\u5883|\u73af\u5883 *$|\u5b9f\u884c\u74b0\u5883"
    r"|\u30a8\u30e9\u30fc\u5185\u5bb9|\u518d\u73fe"
    r"|\u767a\u751f\u3057\u3066\u3044\u308b|Fehlerbeschreibung|Beschreibung *\**$|Ausgabe *\**$|Erwartet"
    r"|Umgebung *$|Fehlermeldung|\uc7ac\ud604"
    r"|\ud658\uacbd *$)"
    r"|- \[[ xX]\] (?:I |The (?:issue|bug|problem) )"
)


def is_personal(lines: list[str]) -> bool:
    """True when somebody reports what happened to him: then an example in the text is the failure itself."""
    return any(
        pattern(_PERSONAL).search(line)
        or (line[:2] in ("##", "# ", "**", "[x", "- ") and pattern(_TEMPLATE).match(line))
        for line in lines
    )
