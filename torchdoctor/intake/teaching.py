"""Texts that teach: articles, guides, lists of known errors. What they quote befell nobody in particular.

An article names a message, gives its causes and the ways out; a question names a message and asks. Both are
told apart by what their headings are, by how they speak of themselves, and by whether anybody asks for help.
All is looked up in sets and by plain search: most inputs are logs, and compile no pattern here.
"""

from __future__ import annotations

from torchdoctor.intake.draft import pattern
from torchdoctor.intake.told import questions_and_answers

MOST_LINES = 400
MANY_CHAPTERS = 9  # headings; the forms of issue trackers have fewer
_EDGES = " \t#*=-_~:：?？!！。.．、,()（）[]【】<>《》「」0123456789一二三四五六七八九十①②③④⑤✓✅🔧💡❌"
# lines that are nothing but such words are headings of a text that explains
_HEADS = frozenset((
    "why it happens", "why this happens", "why does it happen", "why does this happen", "what it means",
    "what this error means", "what this means", "what does it mean", "what does this error mean",
    "what causes this error", "causes", "cause", "common causes", "possible causes", "causes & fixes",
    "causes and fixes", "causes and solutions", "how to fix", "how to fix it", "how to fix this", "fix",
    "how to fix this error", "how to avoid it", "fixes", "solution", "solutions", "the fix", "the solution",
    "the problem", "the cause", "quick fix", "conclusion", "conclusions", "wrapping up", "prevention",
    "key takeaways", "takeaways", "explanation", "introduction", "intro", "best practices", "overview",
    "common errors", "common pitfalls", "related errors", "further reading", "table of contents",
    "troubleshooting", "frequently asked questions", "faq", "faqs", "next steps", "related posts",
    "detection", "broken", "dead ends", "workarounds", "common workarounds", "common mistakes", "the lesson",
    "lessons learned", "what went well", "what went wrong", "action items", "root cause analysis",
    "what we learned", "resolution", "meaning", "symptoms", "symptom", "how to resolve", "example error",
    "backlog", "doing", "in progress", "to do", "todo", "why", "remedy", "remedies", "when it happens",
    "when you see it", "how to read it",
    "解决方法", "解决办法", "解决方案", "解决", "解决步骤", "解决思路", "解决过程", "错误原因", "报错原因",
    "原因", "原因分析", "错误分析", "问题原因", "常见原因", "出错原因", "可能原因", "可能的原因", "总结",
    "小结",
    "结语", "写在最后", "参考资料", "参考链接", "参考文献", "参考", "前言", "引言", "方法", "方案", "法",
    "解决方法汇总", "常见原因与解决方案", "原因及解决方法", "原因和解决方法", "注意事项", "常见问题",
    "常见错误",
    "問題原因", "解決方法", "解決方案", "解決策", "対処法", "対処方法", "対策", "まとめ", "はじめに",
    "おわりに",
    "最後に", "エラーの原因", "原因と対処法", "参考サイト", "エラーの意味",
    "원인", "해결 방법", "해결방법", "해결", "해결책", "에러 원인", "마치며", "마무리", "정리", "결론",
    "요약", "참고",
    "원인 및 해결", "발생 원인",
    "ursache", "ursachen", "lösung", "lösungen", "fazit", "zusammenfassung", "einleitung", "abhilfe",
    "hintergrund", "mögliche ursachen", "bedeutung", "häufige fehler", "häufige fragen", "vorbeugen",
    "причина", "причины", "решение", "решения", "заключение", "вывод", "итог", "введение", "как исправить",
    "почему возникает ошибка", "что делать",
    "causa", "causas", "solución", "soluciones", "conclusión", "causes possibles", "conclusão", "solução",
    "przyczyny", "rozwiązanie", "podsumowanie", "oorzaak", "oplossing", "çözüm", "sebep",
))  # fmt: skip
_STARTS = (
    "how to fix", "how to solve", "how to resolve", "how to avoid", "what does", "why does", "why do you",
    "dead ends", "solution 1", "solution 2", "fix 1", "fix 2", "method 1", "other pytorch errors",
    "原因：", "原因:", "解决：", "解决:", "原因は", "ursache:", "lösung:", "причина:", "решение:", "원인:",
    "해결:",
    "option 1", "cause 1", "方法一", "方法二", "方案一", "方案二", "方法1", "方法2", "第一步", "다음 글",
    "lösung 1", "способ 1", "решение 1", "해결 방법", "解决方法", "解决方案", "解决办法",
    "対処法", "解決方法", "원인", "causes of", "common causes of",
)  # fmt: skip
# "**Symptom:** …", as guides label what they say of each failure
_LABELS = (
    "symptom",
    "resolution",
    "cause",
    "solution",
    "fix",
    "remedy",
    "why",
    "meaning",
    "ursache",
    "lösung",
    "原因",
    "解决",
)
# how a text speaks of itself, or of a failure as something that comes and goes
_PHRASES = (
    "great question", "good question!", "several reasons", "several causes", "i can help you",
    "would you like me", "would you like a", "if you share your", "share the full traceback",
    "share your full traceback",
    "in this article", "in this guide", "in this post", "in this tutorial", "this article", "this guide",
    "this tutorial", "this blog", "in this section", "in this chapter", "in this lesson", "in today's post",
    "you've probably", "you have probably", "you may have seen", "you have likely", "most common errors",
    "this error occurs when", "this error happens when", "this error means", "the error occurs when",
    "occurs because", "is raised when", "is thrown when", "happens when you", "let's look at",
    "for the wiki", "please add yours", "exercise:", "beginners", "every now and then", "übung:", "您可以",
    "你可以按", "按以下步骤",
    "如果还有问题", "错误，通常", "here's how", "let me know if", "gehst du vor", "bedeutet, dass",
    "falls du mir",
    "begründen sie", "nennen sie", "punkte)", " marks)", " points)", "explain why",
    "before you open an issue", "before opening an issue", "if your log contains", "stack overflow",
    "pytorch forums", "top answer", "now uses", "write-up", "weekly", "job board", "的坑",
    "we'll explore", "we will look at", "next post", "stay tuned", "min read", "read time", "happy coding",
    "本文", "这篇文章", "本篇", "这个错误通常", "该错误通常", "这个报错", "通常是因为", "通常是由于",
    "一般是因为",
    "一般是由于", "很多同学", "阅读量", "点赞", "收藏", "希望对你有", "希望对大家", "版权声明", "原文链接",
    "下一篇",
    "今天给大家", "给大家介绍", "常见的报错", "常见报错", "就可以解决", "即可解决", "这是因为", "最终解决",
    "成功解决",
    "问题解决", "遇到这个", "就好了", "记录一下", "踩坑",
    "この記事", "本記事", "今回は", "紹介します", "解説します", "まとめました", "ときに出る", "場合に発生",
    "備忘録",
    "発生します", "解決しました", "エラーです。",
    "이번 글", "이번 포스팅", "이 글에서", "포스팅", "알아보겠습니다", "정리해 보", "정리해보", "발생합니다",
    "오늘은",
    "발생하는 에러", "해결됩니다", "해결할 수 있", "해결되었습니다", "해결했습니다",
    "in diesem artikel", "in diesem beitrag", "dieser artikel", "dieser beitrag", "tritt auf, wenn",
    "kennt die meldung", "nächsten beitrag", "dieser fehler tritt", "der fehler entsteht",
    "в этой статье", "в статье", "ошибка возникает", "возникает, когда", "обычно сообщение", "это означает",
    "если ничего не помог", "разберём", "разберем",
    "la solution consiste", "prochain article", "il suffit de", "se produit quand", "ejemplo del mensaje",
    "esse erro acontece", "este erro acontece", "para resolver", "para solucionar", "per risolvere",
    "questo errore",
    "la solución", "se produce cuando", "en este artículo", "dans cet article", "neste artigo",
    "este error ocurre", "cette erreur se produit",
    "w tym artykule", "ten błąd występuje", "in dit artikel", "bu yazıda", "in questo articolo",
)  # fmt: skip
# what stands at the head of lists of known errors, and of changes; questions are asked there to be answered
_LISTS = (
    "root cause analysis", "incident report", "post-incident", "faq", "frequently asked", "known issues",
    "known errors", "contents", "table of contents",
    "release notes",
    "常见问题", "常见错误", "目录", "目次", "よくある質問", "よくあるエラー", "자주 묻는 질문",
    "자주 발생하는",
    "частые вопросы", "частые ошибки", "häufige fragen", "häufige fehler", "inhalt", "preguntas frecuentes",
    "errores comunes", "foire aux questions", "erreurs fréquentes", "domande frequenti",
    "perguntas frequentes",
)  # fmt: skip
_CLOSED = (
    "what does this pr do", "\nfixes #", "\ncloses #", "\nresolves #", "resolution: fixed", "status: closed",
    "status: resolved", "status: fixed", "this issue is stale", "this reverts commit", "\nchange-id: ",
    "approved this merge request", "approved these changes", "approved this pull request",
    "\nsigned-off-by: ", "\nco-authored-by: ", "\\begin{", "### response:", "[resolved]",
)  # fmt: skip
# how people say that something is over
_OVER = (
    "edit: solved", "made it go away", "for the record", "leaving this here for", "a été remplacé",
    "de nouveau dispon",
    "wurde ersetzt", "wurde getauscht", "wieder in betrieb", "wieder verfügbar", "that fixed it",
    "problem solved", "[solved]", "(solved)", "solved it by", "fixed it by", "就好了",
    "记录一下",
    "成功解决", "问题解决了", "最终解决", "已解决", "搞定", "で解決", "解決しました", "解決した",
    "直りました", "直った",
    "解決済", "해결했", "해결되었", "해결됨", "ist erledigt", "hat sich erledigt", "ist behoben",
    "ist gelöst",
    "haben wir gelöst", "lag es an", "es lag a", "решено", "решилась", "помогло", "удалось исправить",
    "résolu",
    "c'est réglé", "solucionado", "resuelto", "resolvido", "rozwiązane", "çözüldü", "risolto",
)  # fmt: skip
_TITLES = (
    "how to fix", "how to solve", "how to resolve", "how to debug", "fixing ", "understanding ", "a guide",
    "guide to", "tutorial", "troubleshooting", "explained", "common errors", "common pytorch", "solved",
    "cheat sheet", "cheatsheet", "faq", "frequently asked", "known issues", "best practices", "pitfalls",
    "migrat", "upgrading", "breaking changes", "what's new", "newsletter", "weekly", "runbook", "playbook",
    "手順書",
    "手册", "应急预案", "処置", "chapter", "lesson", "aufgabe", "übung", "задача", "задание", "ejercicio",
    "exercice", "kapitel", "exercise", "练习", "习题", "exam", "quiz", "wöchentlich", "rundbrief",
    "postmortem", "post-mortem", "lessons", "release notes", "changelog", "deep dive", "demystif",
    "causes and", "things to", "tips for", "beginners",
    "解决", "汇总", "详解", "教程", "指南", "笔记", "总结", "原因", "踩坑", "问题集", "常见", "处理方法",
    "解析", "面试",
    "対処", "解決", "まとめ", "解説", "入門", "備忘録", "해결", "정리", "방법", "가이드", "오류 모음",
    "verstehen", "beheben", "behebt", "lösung", "anleitung", "tipps", "leitfaden", "häufige",
    "как исправить", "решение", "исправление", "что делать", "почему возникает", "руководство", "шпаргалка",
    "comprendre", "entendendo", "entendiendo", "capire", "zrozumie", "anlamak", "понима", "разбор", "速查",
    "一览", "早見表",
    "更新说明", "发布说明", "リリースノート", "変更点", "릴리스", "変更履歴", "更新日志", "solución",
    "cómo solucionar", "como resolver", "comment résoudre", "corriger",
    "jak naprawić", "nasıl çözülür",
    "come risolvere",
)  # fmt: skip
_ASKS = (
    r"(?i)\bany(?:one|body)?\b[^.?!\n]{0,40}\b(?:help|ideas?|suggestions?|advice|hints?|knows?|else)\b"
    r"|\b(?:please|pls|plz|kindly) (?:help|advise)|\bhelp me\b|\bthanks? in advance|\bthx\b|\bthank you\b"
    r"|\b(?:what|how|where|why)\b[^.?!\n]{0,30}\b(?:am|do|can|should|could|did|must) (?:i|we)\b(?! fix\b)"
    r"|\bis (?:there|this) (?:a|an|any|my)\b[^.?!\n]{0,60}\?|\b(?:stuck|clueless|no idea|at a loss)\b"
    r"|\b(?:workarounds?|fix|solutions?|ideas?|hints?|thoughts)\?"
    r"|\b(?:could|can|would) (?:you|some\w+) (?:please )?(?:help|look|check|tell|explain)\b"
    r"|\bmy (?:run|job|training|script|program|model|code)\b[^.?!\n]{0,40}\b(?:dies|died|crash\w*|fail\w*"
    r"|stop\w*)"
    r"|请问|求助|求解|求大佬|求指|大佬|该怎么|怎么解决[?？呢啊]|如何解决[?？]|怎么办[?？呢啊]?$|帮忙|帮我"
    r"|帮看|谢谢|有人知道"
    r"|有没有人|请教|為什麼[^\n]{0,30}[?？]|为什么[^\n]{0,30}[?？]$|怎么回事|是什么原因|吗[?？]"
    r"|でしょうか|(?:です|ます)か[?？。]?|てしまいます|てしまう|どうすれば|教えて|助けて|ご教示|困って"
    r"|わかりません|分かりません|なぜ[^\n]{0,40}[か？]"
    r"|도와주|알려주|걸까요|해야 하나요|무엇이 문제|모르겠|왜 [^\n]{0,40}[까요]\?|어떻게 [^\n]{0,30}\?"
    r"|[Пп]омогите|[Пп]одскажите|[Уу] меня|делаю не так|что не так|получаю|не понимаю|[Кк]то-нибудь"
    r"|[Вв] чём (?:может быть )?(?:причина|дело)"
    r"|\b(?:kann mir|hat jemand|wei\u00df jemand|was mache ich|was kann ich|wie kann ich|woran|danke"
    r"|ich bekomme"
    r"|bekomme ich|hilfe|bei mir)\b"
    r"|\b(?:alguien|qué estoy|qué hago|qué hice|cómo lo|ayuda|recebo|como resolvo|obrigad[oa]|come posso"
    r"|qualcuno|bagaimana cara|giúp|phải làm"
    r"|怎么改|哪位|qu\u00e9 puedo|quelqu'un|aidez|que faire|algu\u00e9m|ajuda|pomocy|pomoc"
    r"|yard\u0131m)\b"
)
# headings of the forms that projects have their users fill in
_FORMS = (
    r"(?:#{1,6} |\*\*|- \[[ xX]\] )[^\w\n]{0,6}(?:Describe the (?:bug|issue)|(?:To|Steps to) [Rr]eproduce"
    r"|(?:Actual|Current|Expected) [Bb]ehaviou?r|What happened|I (?:have|searched|read)|Your question"
    r"|Repro(?:duction|ducer)?\b|Environment|Versions?$|System [Ii]nfo)"
    r"|- \[[ xX]\] I "
)


def teaching(lines: list[str]) -> int:
    """How many signs there are that a text explains failures to its readers; 0 where anybody asks for help.

    From 2 on what it quotes is no failure, from 3 on not even with its stack.
    """
    chapters = sum(line[:2] == "##" and bool(pattern(r"#{2,5} +[^\W_]").match(line)) for line in lines)
    if chapters >= MANY_CHAPTERS and not _filled_in(lines):
        return 3  # a manual
    if len(lines) > MOST_LINES:
        return 0
    text = "\n".join(lines).lower()
    title = lines[0].strip(_EDGES).lower()
    if title.startswith(_LISTS):
        return 2
    # a change or a closed report; not where it is followed by a run of something
    if any(words in text for words in _CLOSED) and not any(line[:2] in ("$ ", "% ") for line in lines):
        return 2
    marks = 3 if questions_and_answers(lines) else _marks(lines, text)
    return 0 if marks < 2 or asks(lines) or _filled_in(lines) else marks


def _filled_in(lines: list[str]) -> bool:
    """True for the form of an issue tracker, filled in by somebody who met a failure."""
    return any(line[:1] in "#*-" and pattern(_FORMS).match(line) for line in lines)


def asks(lines: list[str]) -> bool:
    """True when somebody asks for help, in one of ten languages."""
    return any(pattern(_ASKS).search(line) for line in lines[:MOST_LINES])


def _marks(lines: list[str], text: str) -> int:
    """How many signs of a text that teaches there are; one kind of heading, or one phrase, counts once."""
    found: set[str] = set()
    for line in lines:
        if len(line) > 60 and found:
            continue
        head = line.strip(_EDGES).lower()
        if line[:2] == "**" and head.startswith(_LABELS):
            found.add(head[:5])
        elif head in _HEADS:
            found.add(head)
        elif len(head) < 50 and head.startswith(_STARTS):
            found.update(start for start in _STARTS if head.startswith(start))
    pointed = sum(
        bool(pattern(r"\W{0,3}\S.*\u2192 ?[^\W\d]").match(line)) for line in lines if "\u2192" in line
    )
    if pointed < 3:
        pointed = 0
    if (
        len(lines) > 2
        and lines[1].lstrip()[:1] in "-*\u30fb\u2022\u00b7"
        and pattern(r"[^:=|]{0,30}(?<![\w.])v?\d+\.\d+(?:\.\d+)*\b[^:=|]{0,30}$").match(
            lines[0].strip(" #[=*")
        )
    ):
        # a version, and a list: what changed in it
        bullets = sum(line.lstrip()[:1] in "-*\u30fb\u2022\u00b7" for line in lines)
        pointed += 2 * (bullets >= 2 and bullets * 3 >= 2 * (len(lines) - 1))
    numbered = sum(line[:1].isdecimal() and line[1:2] in (".", "、", ")", "）") for line in lines)
    answers = sum(
        bool(
            pattern(
                r"\W*(?:\u7b54|\u56de\u7b54|\u56de\u590d|\u7b54\u3048|\ub2f5|\ub2f5\ubcc0|\u041e"
                r"|\u041e\u0442\u0432\u0435\u0442) ?\d{0,3} ?[:\uff1a]"
            ).match(line)
        )
        for line in (() if text.isascii() else lines)
    )
    pointed += 2 * (answers > 0)
    over = 2 * any(words in text for words in _OVER)
    told = sum(phrase in text for phrase in _PHRASES)
    title = lines[0].lower()
    return (
        len(found) + told + over + min(pointed, 2) + (numbered >= 2) + any(word in title for word in _TITLES)
    )
