"""Words by which people ask, tell and teach, a table for each sign, language by language.

Data only: ``voice`` says which sign they are and how the signs combine. A ``Rule`` holds in a sentence that
has a word of each of its groups and none of ``but``, in whatever order; "?" is a word of a sentence that ends
in one. Words of scripts without blanks are found inside others, and so are phrases of several words.
"""

from __future__ import annotations

from typing import NamedTuple


class Group(NamedTuple):
    """Words that stand for each other: whole ones, and those that are looked for inside the sentence."""

    words: frozenset[str]
    inside: tuple[str, ...] = ()


class Rule(NamedTuple):
    """A word of each group, and none of ``but``, in one sentence."""

    groups: tuple[Group, ...]
    but: frozenset[str] = frozenset()


_INSIDE = frozenset("_():,[")  # marks that no word of a sentence keeps


def _group(text: str) -> Group:
    """A group of words parted by blanks; "_" stands for a blank within a phrase."""
    words = text.split()
    inside = tuple(
        word.replace("_", " ")
        for word in words
        if word[0] > "\u2e80" or (len(word) > 1 and not _INSIDE.isdisjoint(word))
    )
    return Group(frozenset(words), inside)


def _rules(table: str) -> tuple[Rule, ...]:
    """A rule a line: groups are parted by "+", what must not stand there follows "-".

    A line that is set in goes on with the one above; "#" begins a remark.
    """
    rules: list[str] = []
    for line in table.split("\n"):
        if line[:1] == " ":
            rules[-1] += line
        elif line and line[0] != "#":
            rules.append(line)
    made = []
    for rule in rules:
        for name, words in _NAMED.items():
            rule = rule.replace(name, words)
        groups, _, but = rule.partition(" - ")
        made.append(Rule(tuple(map(_group, groups.split(" + "))), frozenset(but.split())))
    return tuple(made)


# groups that several tables use
_NAMED = {
    "$ends": (
        "die dies died dying crash crashes crashed crashing fail fails failed failing stop stops"
        " stopped abort aborts aborted hang hangs hung break breaks broke broken down"
    ),
    "$meets": (
        "get gets getting got see seeing saw have had hit receive received experience experienced encounter encountered face"
        " facing"
    ),
    "$noun": (
        "error errors exception exceptions warning warnings problem problems issue issues fault message"
        " messages bug bugs traceback stacktrace following below this follows output log"
    ),
    # not "raise", "print": so begins what a developer asks for
    "$shows": (
        "give gives gave giving throws threw thrown raises raised raising shows showed shown say says said tells"
        " told prints printed reports reported returns returned appears appeared occurs occurred pops popped"
        " happens happened came comes complains results resulted ends ended exits exited"
    ),
    "$error": (
        "error errors exception warning message traceback fehler fehlermeldung erreur erro error:"
        " ошибка ошибку 报错 错误 エラー 에러"
    ),
}

# somebody speaks of himself. As it is written: "i" is a name in programs, and "Mon" a day
PERSON_AS_WRITTEN = frozenset(("I", "mon"))
PERSON = frozenset(
    # English
    "i'm i've i'd my myself we our ours"
    # German, French, Spanish, Portuguese, Italian
    " ich mein meine meinem meinen meiner mir mich j'ai mes moi tengo meu minha"
    # Russian, Polish, Turkish
    " меня мой мое моё мои мне мной mam mój moja moje benim bende".split()
)
PERSON_INSIDE = ("我", "私", "僕", "제가", "저는")
# a question or a complaint that somebody has
WONDERS = _rules("""
i + am have had get got can't cannot don't did tried try use used ran run want need met meet
    keep installed found see was
please pls plz + help
any + help idea ideas solution solutions suggestion suggestions advice + ? !
how + solve fix resolve + this it problem issue error + ?
how + can do should could + i we
anyone anybody + else know knows found has have does is
is + this it that + ok normal expected bug fine + ?
we our + $meets run runs job jobs
你好 您好 请问 求助 求大神 求大佬 求解答 求教 请教 怎么办 该如何解决 该怎么解决 有人遇到
教えて 困って 도와주 подскажите помогите
""")
# somebody asks his readers for help: whatever else a text looks like, it is his
ASKS = _rules("""
any anyone anybody + help idea ideas suggestion suggestions advice hint hints knows know else
please pls plz kindly + help advise look take check
help_me thanks_in_advance thank_in_advance thx thank_you at_a_loss no_idea clueless stuck
what how where why + am do can should could did must + i
what how where why + do can should could did must + we + ? - fix
what how where why + me my mine + ?
is + there this + a an any my + ?
i we my + still again + $meets $ends
any known + workaround workarounds fix solution solutions idea ideas hint hints thoughts + ?
could_you can_you would_you could_some can_some would_some + help look check tell explain
my + run job training script program model code + $ends
# Chinese
请问 求助 求解 求大佬 求指 大佬 该怎么 怎么办 帮忙 帮我 帮看 谢谢 有人知道 有没有人 请教 怎么回事 是什么原因 怎么改 哪位
怎么解决 如何解决 + ? 呢 啊
为什么 為什麼 吗 嗎 + ?
# Japanese and Korean
でしょうか ですか ますか てしまいます てしまう どうすれば 教えて 助けて ご教示 困って わかりません 分かりません
なぜ + か ?
도와주 알려주 걸까요 해야_하나요 무엇이_문제 모르겠
왜 어떻게 + ?
# Russian
помогите подскажите получаю кто-нибудь у_меня делаю_не_так что_не_так не_понимаю
чём + причина дело
# German, Spanish, Portuguese, Italian, French, Indonesian, Vietnamese, Polish, Turkish
kann hat weiß wisst + mir jemand
was wie + mache kann muss + ich
woran danke hilfe bekomme_ich ich_bekomme bei_mir
alguien ayuda qué_estoy qué_hago qué_hice qué_puedo cómo_lo
recebo resolvo obrigado obrigada alguém ajuda
qualcuno come_posso quelqu'un aidez que_faire
bagaimana_cara giúp phải_làm pomocy pomoc yardım
""")
# a question, or something that is not as it was
PUZZLES = _rules("""
is are was gets got became becomes getting + slow slower - you your
suddenly weird weirdly strange strangely instead_of_the instead_of_[ instead_of_( instead_of_0
    instead_of_1 instead_of_2
bug: issue: problem: question: frage:
请问 为什么 怎么 吗？ 吗? でしょうか なぜ ますか 까요 나요
почему помогите warum wieso woran
""")
# somebody tells what went wrong, though not of himself
NARRATES = _rules("""
then but + $ends - you your if
still + happen happens fail fails failing crash crashes occur occurs - you your if
there_is_a there_was_a there_is_an there_was_an + problem error issue bug - you your if
got + console terminal command_line error
see seeing + following below attached + $noun
出现 报错 + ： :
""")
PERSONAL = (WONDERS, PUZZLES, NARRATES)
# it is going on while somebody writes
NOW = _rules("""
just again now keeps keep still today currently tonight morning + $ends got get
i i'm we + $meets + ? : $error
any anyone anybody + idea ideas help know knows hint hints + ?
heute jetzt gerade wieder immer_noch сейчас сегодня снова опять hoy ahora encore hoje agora + kommt bricht stirbt
    hängt bekomme fehler падает вылетает ошибка falla cae error plante erreur erro
hilfe ayuda aidez помогите 助けて 求助 救命
what_does_this_mean what_does_that_mean 报错了 又挂了 崩了 挂了 落ちた 誰か 죽었
""")
# it is over: mended, explained, long ago
OVER = _rules("""
solved fixed swapped replaced runbook wurde_ersetzt wurde_getauscht remplacé
never_came_back went_away turned_out since_then back_then did_the_trick that_was_it that_helped
    used_to
do does did + you anyone anybody + remember
last + week month year spring summer autumn winter time
years year months month week weeks long a_while + ago
is was all now works work working + green fine good ok okay clean gone again - not ?
damals gelöst behoben erledigt läuft_wieder geht_wieder раньше решили починили résolu réglé arreglado
解决了 好了 解決し 直った 直りま 해결
""")

# it was long ago, or is looked back on
PAST = _rules("""
last + summer spring autumn fall winter year quarter
years months + ago
took_me took_us cost_me cost_us back_in
exercise exercises lesson lecture chapter + saw met last previous
learn + how to
back_then turned_out in_hindsight looking_back long_story once_we_knew lessons_learned
    lesson_learned
do_differently did_differently
""")
# headings of the forms that projects have their users fill in: whole ones, and how others begin
FORM_HEADS = frozenset((
    "environment", "versions", "version", "beschreibung", "ausgabe", "umgebung", "环境", "환경",
))  # fmt: skip
FORM_STARTS = (
    "describe the bug", "describe the issue", "to reproduce", "steps to reproduce", "actual behavio",
    "current behavio", "expected behavio", "what happen", "what should have happened", "reproduc", "repro ",
    "system info", "your question", "what did you", "which version", "what version", "how to reproduce", "console logs", "error message", "error traceback", "error logs",
    "relevant log output", "issue faced", "bug description", "问题描述", "报错信息", "错误信息", "错误日志",
    "复现", "运行环境", "実行環境", "エラー内容", "再現", "発生している", "fehlerbeschreibung", "erwartet",
    "fehlermeldung", "재현",
)  # fmt: skip

# a heading of a text that explains is made of such words, and of no others than those beside them
HEAD_WORDS = frozenset((
    # English
    "cause causes why fix fixes solution solutions symptom symptoms meaning means explanation conclusion"
    " conclusions prevention takeaways introduction intro overview troubleshooting faq faqs workaround"
    " workarounds remedy remedies resolution detection broken backlog doing todo practices pitfalls mistakes"
    " lesson lessons learned slide slides also"
    # what changed; what is looked back on
    " changed added removed deprecated corrections nouveautés neu behoben geändert corregido novedades"
    " follow-ups factors retrospective"
    # German, Russian, Romance, Polish, Dutch, Turkish
    " ursache ursachen lösung lösungen fazit zusammenfassung einleitung abhilfe hintergrund bedeutung vorbeugen"
    " причина причины решение решения заключение вывод итог введение causa causas solución soluciones"
    " conclusión conclusão solução przyczyny rozwiązanie podsumowanie oorzaak oplossing çözüm sebep"
).split())  # fmt: skip
HEAD_FILLERS = frozenset((
    "the a an and or of to it this that these how do does did what when you see is in i'd we error errors happen"
    " happens happened common possible quick key best main likely typical frequently asked questions read next"
    " steps further reading related posts table contents action items went well wrong wrapping up problem root"
    " analysis dead ends progress example avoid resolve solve see contributing"
    " mögliche häufige fehler fragen как исправить почему возникает ошибка что делать posibles possibles"
).split())  # fmt: skip
HEAD_PHRASES = (
    "how to fix", "how to solve", "how to resolve", "how to avoid", "how to read it", "what does", "why does",
    "why do you", "in progress", "to do", "next steps", "further reading", "related posts", "related errors",
    "table of contents", "action items", "what went well", "what went wrong", "what we learned",
    "wrapping up", "dead ends", "key takeaways", "common errors", "example error", "the problem", "was tun",
    "solution 1", "solution 2", "fix 1", "fix 2", "method 1", "option 1", "cause 1", "cause:", "fix:",
    "häufige fehler", "häufige fragen", "lösung 1", "lösung:", "ursache:", "что делать", "как исправить",
    "почему возникает", "способ 1", "решение 1", "решение:", "причина:", "causes possibles",
)  # fmt: skip
HEAD_INSIDE = (
    "解决", "原因", "总结", "小结", "结语", "写在最后", "参考", "前言", "引言", "方法", "方案", "注意事项",
    "常见问题", "常见错误", "分析", "第一步", "解決", "対処法", "対処方法", "対策", "まとめ", "はじめに",
    "おわりに", "最後に", "エラーの意味", "원인", "해결", "마치며", "마무리", "정리", "결론", "요약", "참고",
)  # fmt: skip

# the text speaks of itself, to its readers
OF_ITSELF = _rules("""
this_article this_guide this_tutorial this_blog this_chapter this_lesson this_newsletter
    this_video in_this_post in_this_section today's_post
i_can_help_you would_you_like_me would_you_like_a if_you_share_your share_the_full
    share_your_full
great good + question
we'll let's + explore look see learn walk
next_post stay_tuned min_read read_time happy_coding weekly beginners write-up job_board
    stack_overflow
pytorch_forums top_answer for_the_wiki please_add_yours exercise: übung: explain_why marks)
    points) punkte)
before_you_open before_opening let_me_know_if here's_how now_uses every_now_and_then
diesem dieser + artikel beitrag anleitung tutorial
gehst_du_vor falls_du_mir begründen nennen_sie nächsten_beitrag
本文 这篇文章 本篇 很多同学 阅读量 点赞 收藏 版权声明 原文链接 下一篇 今天给大家 给大家介绍 记录一下 踩坑
希望对你有 希望对大家 您可以 你可以按 按以下步骤 如果还有问题 的坑 遇到这个
この記事 本記事 今回は 紹介します 解説します まとめました 備忘録
이번_글 이번_포스팅 이_글에서 포스팅 알아보겠습니다 정리해_보 정리해보 오늘은
этой статье разберём разберем
este neste cet prochain questo tym dit bu artigo artículo articolo + artigo artículo article
    artykule artikel yazıda articolo
""")
# it says when a failure comes, whomever it befalls
EXPLAINS = _rules("""
error exception message warning it this + occurs happens means indicates raised thrown + when if
    that because you by
several + reasons causes
you've + probably
you + probably have may likely + seen met
most + common + error errors
occurs_because happens_when_you if_your_log
bedeutet,_dass tritt_auf,_wenn fehler_entsteht fehler_tritt kennt_die_meldung
通常是因为 通常是由于 一般是因为 一般是由于 这个错误通常 该错误通常 错误，通常 这个报错 这是因为 常见的报错 常见报错
ときに出る 場合に発生 発生します エラーです。
意味着 的意思是 这说明 という意味 とは、 뜻입니다 의미입니다
발생합니다 발생하는_에러
ошибка_возникает возникает,_когда обычно_сообщение это_означает если_ничего_не_помог
se_produit_quand se_produce_cuando este_error_ocurre esse_erro_acontece este_erro_acontece
    cette_erreur_se_produit questo_errore ten_błąd ejemplo_del_mensaje
""")
# it says what to do about it
REMEDIES = _rules("""
就可以解决 即可解决 即可。 就行了。 すれば解決 すればよい ましょう。 면_됩니다 해결됩니다 해결할_수_있 para_resolver para_solucionar
    per_risolvere il_suffit_de
la_solution_consiste la_solución a_solução la_soluzione
""")
# it speaks to a reader, and does not ask him
TO_READER = _rules("""
you your you're du dein deine sie ihr vous votre usted tu - ? can could would please thank
    thanks i my me we our help
您的 你的 여러분 皆さん
""")
# somebody says that his failure is over
SOLVED = (
    "edit: solved", "made it go away", "for the record", "leaving this here for", "a été remplacé",
    "de nouveau dispon", "wurde ersetzt", "wurde getauscht", "wieder in betrieb", "wieder verfügbar",
    "that fixed it", "problem solved", "[solved]", "(solved)", "solved it by", "fixed it by",
    "就好了", "记录一下", "成功解决", "问题解决", "最终解决", "已解决", "搞定",
    "で解決", "解決しました", "解決した", "直りました", "直った", "解決済",
    "해결했", "해결되었", "해결됨",
    "ist erledigt", "hat sich erledigt", "ist behoben", "ist gelöst", "haben wir gelöst", "lag es an",
    "es lag a", "решено", "решилась", "помогло", "удалось исправить", "résolu", "c'est réglé",
    "solucionado", "resuelto", "resolvido", "rozwiązane", "çözüldü", "risolto",
)  # fmt: skip
# a change, or a report that is closed
CLOSED = (
    "what does this pr do", "\nfixes #", "\ncloses #", "\nresolves #", "resolution: fixed", "status: closed",
    "status: resolved", "status: fixed", "this issue is stale", "closing in favo", "closing as", "closed as", "looks like a duplicate", "marked as duplicate",
    "this reverts commit", "\nchange-id: ",
    "approved this merge request", "approved these changes", "approved this pull request",
    "\nsigned-off-by: ", "\nco-authored-by: ", "\\begin{", "### response:", "[resolved]",
)  # fmt: skip
# how lists of known errors, of changes and of incidents are headed
LIST_TITLES = (
    "root cause analysis", "incident report", "incident review", "post-incident", "after-action", "faq", "frequently asked", "known issues",
    "known errors", "contents", "table of contents", "release notes",
    "常见问题", "常见错误", "目录", "目次", "よくある質問", "よくあるエラー", "자주 묻는 질문", "자주 발생하는",
    "частые вопросы", "частые ошибки", "häufige fragen", "häufige fehler", "inhalt", "preguntas frecuentes",
    "errores comunes", "foire aux questions", "erreurs fréquentes", "domande frequenti",
    "perguntas frequentes",
)  # fmt: skip
# and how articles, lessons and exercises are
TITLES = (
    "how to fix", "how to solve", "how to resolve", "how to debug", "fixing ", "understanding ", "guide", "tutorial", "troubleshooting", "explained", "common errors", "common pytorch", "solved",
    "cheat sheet", "cheatsheet", "faq", "frequently asked", "known issues", "best practices", "pitfalls",
    "slide", "interview", "survey", "notes de version", "versionshinweise", "wiki", "collected", "migrat", "upgrading", "breaking changes", "what's new", "newsletter", "weekly", "runbook", "playbook",
    "chapter", "lesson", "exercise", "exam", "quiz", "postmortem", "post-mortem", "release notes", "changelog",
    "deep dive", "demystif", "causes and", "things to", "tips for", "beginners",
    "手順書", "手册", "应急预案", "処置", "练习", "习题", "解决", "汇总", "详解", "教程", "指南", "笔记", "总结",
    "原因", "踩坑", "问题集", "常见", "处理方法", "解析", "面试", "対処", "解決", "まとめ", "解説", "入門",
    "備忘録", "해결", "정리", "방법", "가이드", "오류 모음", "速查", "一览", "早見表", "更新说明", "发布说明",
    "リリースノート", "変更点", "릴리스", "変更履歴", "更新日志",
    "aufgabe", "übung", "kapitel", "verstehen", "beheben", "behebt", "lösung", "anleitung", "tipps",
    "leitfaden", "häufige", "wöchentlich", "rundbrief",
    "задача", "задание", "как исправить", "решение", "исправление", "что делать", "почему возникает",
    "руководство", "шпаргалка", "понима", "разбор",
    "ejercicio", "exercice", "comprendre", "entendendo", "entendiendo", "capire", "zrozumie", "anlamak",
    "solución", "cómo solucionar", "como resolver", "comment résoudre", "corriger", "jak naprawić",
    "nasıl çözülür", "come risolvere",
)  # fmt: skip

# within a sentence: somebody leads up to what he was shown
TELLS = _rules("""
$meets $shows $ends met meet + $noun - if
$ends + with mit due
there_is there_was there_were + $noun
got get see + console terminal command_line
still + happen happens fail fails failing crash crashes occur occurs get getting see seeing broken
same + here
报错 报了 出现 错误 提示 エラー 에러 ошибк вылетает падает получаю выдаёт выдает
fehler fehlermeldung wirft meldet sagt bricht stirbt endet scheitert erhalte bekomme kommt
erreur j'obtiens reçois erro errores me_sale me_aparece me_da obtengo recibo
""")
# one such word is enough right before what he was shown
LEADS = _rules("""
$meets $shows $ends $noun met meet
raise throw show print report return + i we my it when
""")
# what is said of other people, of other times, or of the way out
SUPPOSES = _rules("""
if should case + you we one user users people someone they
when whenever + you one user users people someone they
you your you're user users people they someone somebody others + will may might can could would should
    get getting see seeing saw have had met - do did ?
fix fixes fixed solves solved resolves resolved gone workaround usually typically means mean meaning
    indicates refers heißt bedeutet besagt signifie significa e.g avoid avoids avoided avoiding prevents
    prevent would might may harmless ignore ignored wenn falls absichtlich deliberately
reporter reporters op's
used_to no_longer went_away last_year last_month last_week for_example for_instance such_as stems_from
    difference_between like_this_one on_purpose expected_to see_compare si_aparece
you your + $shows $meets - i my me we our ?
merged verified closed corrected
years year + ago
will won't + $ends end ends raise throw be see get - i my we our
tomorrow planned next_week
is are was + caused due
is are gets get + raised thrown printed reported + if when by for as
remember recall + i
如果 の場合 ときは если 만약
""")
# a failure is over
SETTLED = _rules("""
merged verified closed corrected fixed solved resolved
went_away that_was_it
""")
# a reader who is spoken to
READER = frozenset("you your you're du dein deine deinem deinen sie ihr ihre ihrem ihren vous votre".split())
# the same, where a line may be the message itself
EXPLAINED = _rules("""
difference_between stems_from is_caused went_away no_longer means indicates usually typically fixed solved
is are + raised thrown + if when by
""")
# words of sentences, which stand in no prefix of a program's line
TALK = frozenset((
    "i my we our you your this that these those it is was are were be by of to and or if a an the when for in on"
    " at so but not no as what how why because get got catch fix fixes fixed avoid raise raises"
    " he she they there which who does do did has have had more than then"
    " pour de le la les des une est der die das und ist war mit von ein eine el los las una que con para um uma"
    " il di per"
).split())  # fmt: skip
# what happened, in a program's words or somebody's
HAPPENED = frozenset((
    "error exception fail fails failed failing failure died dies crash crashes crashed crashing abort aborts"
    " aborted caught got raise raises raised raising kill kills killed stopped because due warn warns warning"
    " reason message say says said with result results resulted terminate terminated terminates"
    " terminating trace traced traceback experience experienced encounter encountered encountering occur occurs occurred cannot unable"
    " threw thrown while"
).split())  # fmt: skip
# titles that ask for a change, and tell of no failure
WISHES = frozenset(
    "avoid handle catch improve better instead doc docs fix fixes fixed raise test tests add support".split()
)
