"""What is written for everybody, and what somebody writes of his own failure in the same places."""

from __future__ import annotations

import pytest
from pace import bounded

from torchdoctor.intake import read_text
from torchdoctor.intake.published import are_sayings, is_notes, is_notice, is_posted

MM = "RuntimeError: mat1 and mat2 shapes cannot be multiplied (4x10 and 12x5)"
TRACE = f'Traceback (most recent call last):\n  File "a.py", line 3, in f\n    a @ b\n{MM}\n'


def counts(text: str) -> bool:
    """Does an event with that message count?"""
    return any(
        "mat1 and mat2" in event.text and not event.recovered and (event.told or not event.quoted)
        for event in read_text(text).events
    )


FOR_ALL = {
    "notes": f"# Release 2.1.0\n\n### Bug fixes\n- **Linear**: `{MM}` now names the layer (#12)\n- faster\n",
    "a mail of them": f"Subject: [ANN] kit 2.8.0\n\nBugs fixed since 2.7:\n\n  - 18: {MM}\n  - 19: docs\n",
    "French notes": f"Notes de version 5.3\n\nCorrections\n- « {MM} » avec un seul exemple\n- menus\n",
    "Chinese notes": f'v1.6.3 更新日志\n\n修复\n- 修复加载时报 "{MM}" 的问题\n- 中文路径\n',
    "posts": f"@a_b · Mar 3\nStages of grief:\n1. {MM}\n2. batch_size=1\n\n@c_d · Mar 4\n3. {MM}\n",
    "a post with counters": f"u/oldgpu · 4h\n{MM}\n312 points\n\nu/other · 3h\nlol\n98 points\n",
    "tags": f"I no longer dream of\n\n{MM}\n\nHere is what it taught me about sales.\n#AI #Leadership\n",
    "an advert": f'ML Engineer, Ulm\n\nYou know "{MM}" by heart.\n\nWhat you bring\n  • Linux\n\n'
    f"What we offer\n"
    "  • holidays\n",
    "a Chinese advert": f'【招聘】工程师\n\n看到 "{MM}" 不慌。\n\n岗位职责：\n1、集群\n\n任职要求：'
    f"\n1、Linux\n",
    "a syllabus": f'DL · Syllabus\n\nWeek 1   Tensors\nWeek 2   "{MM}"\n\nGrading: homework 50 %\n',
    "a talk": f'Title: Pages\nSpeaker: E. N.\nTrack: Reliability\n\n"{MM}" is rarely about shapes.\n',
    "sayings": f'"{MM}" — Jan\n"I have not lost my data." — Mira\n"It is a feature, of course." — Tom\n',
}


@pytest.mark.parametrize("name", FOR_ALL)
def test_what_is_written_for_everybody_befell_nobody(name: str) -> None:
    assert not counts(FOR_ALL[name])


HIS_OWN = {
    "the notes, and his run": f"The notes of 2.1.0 say:\n\n- fixed `{MM}`\n- docs\n\nIt still "
    f"fails for me:\n\n"
    f"{TRACE}\nAny idea?\n",
    "notes at a prompt": f"$ head -4 CHANGELOG.md\n## 2.1.0\n### Fixed\n- shapes\n- docs\n$ python "
    f"a.py\n{TRACE}",
    "notes that a program prints": f"=== kit 2.1.0 ===\nWhat's new in 2.1.0:\n - shapes\n - docs\n{TRACE}",
    "a form": f"### Bug in 1.9.0\n\n- kit 1.9.0\n- torch 2.4\n\nI get this in the first epoch:\n\n{MM}\n",
    "a post that asks": f"@a_b · Mar 3\nanyone any idea? my training dies with\n{MM}\n\n@c_d · Mar "
    f"3\nshapes\n",
    "a post that tells": f"@a_b · Mar 3\nthe run just died again\n{MM}\n#mlops #gpu\n",
    "a mail to those who advertise": f"Hello,\n\nthe syllabus says to ask. My homework stops with\n\n{MM}\n\n"
    "Could you give me a hint?\n",
}


HIS_OWN |= {
    "fields of a record": f"Level: ERROR\nSession: 18821\nLocation: train.py:12\nDuration: 12 s\n"
    f"Message: {MM}\n",
    "code with decorators": f"My model is\n\n@dataclass\nclass A:\n    x: int\n\n@torch.no_grad()\ndef f():\n"
    f"    pass\n\nand it stops with\n\n{MM}\n\nI use torch 2.3.\n",
    "what he changed": f"What I changed since 1.2:\n- bigger batch\n- new head\n- bf16\n\nSince then it "
    f"crashes:\n\n{MM}\n",
    "ages of pods": f"train-0 3 minutes ago\ntrain-1 3 minutes ago\nLast log of train-0:\n{MM}\n",
    "who asked and when": f"Error in a first network\nAsked 3 days ago   Viewed 41 times\n\nI get\n\n{MM}\n\n"
    "asked 3 days ago\nmira\n101 points\n",
}


@pytest.mark.parametrize("name", HIS_OWN)
def test_what_somebody_writes_of_his_own_failure_counts(name: str) -> None:
    assert counts(HIS_OWN[name])


@pytest.mark.parametrize("unit", ["**", " ", "a b ", '"', "1 ", "♥ 1", "@", "#a", "posted by ", "u/", "- "])
def test_hostile_lines_take_no_time(unit: str) -> None:
    lines = [f"{(unit * 600)[: 150 + 450 * (at % 2)]}{at}" for at in range(400)]
    is_notes(lines, lines[0]), is_notice(lines), is_posted(lines), are_sayings(lines)
    bounded(0.15, lambda: (is_notes(lines, lines[0]), is_notice(lines), is_posted(lines), are_sayings(lines)))


CHATS = {
    "Chinese": f"""\
[09:31] 老王：还记得去年那个报错吗
[09:32] 小林：是 "{MM}"，改了就好了
[09:33] 老王：对，我写进手册
[09:34] 小林：好的
""",
    "Japanese": f"""\
[14:01] 田中：昨日の学習は終わりましたか
[14:02] 佐藤：はい。去年の "{MM}" は直りました
[14:03] 田中：手順書に書きます
[14:04] 佐藤：了解です
""",
    "Russian": f"""\
[12:40] Олег: помнишь, что было весной?
[12:41] Света: да, "{MM}", потом поменяли слой
[12:42] Олег: точно, записал
[12:43] Света: хорошо
""",
    "German": f"""\
[09:12] Jo: was zeigen wir im Kurs?
[09:14] Mira: "{MM}", das versteht jeder
[09:15] Jo: gut, und dann die Labels
[09:16] Mira: ich baue das bis Freitag
""",
}
NOW = {
    "Chinese": f"""\
[09:31] 老王：跑完了吗
[09:33] 小林：没有，又挂了
[09:34] 小林：{MM}
[09:35] 老王：看看形状
""",
    "Chinese, of last year": f"""\
[09:31] 王工：去年那个问题今天又来了
[09:32] 王工：{MM}
[09:33] 小林：加了吗
[09:34] 王工：加了，还是报，帮忙看看
[09:35] 小林：好
""",
    "Japanese": f"""\
[14:01] 田中：動きましたか
[14:02] 佐藤：このエラーで落ちます
[14:03] 佐藤：{MM}
[14:04] 田中：うーん
""",
    "Russian": f"""\
[18:10] Лена: у меня опять упало
[18:12] Лена: {MM}
[18:13] Олег: понял
[18:14] Олег: смотрю
""",
    "English, without a question": f"""\
Ann: morning
Bob: my job crashed over night
Bob: {MM}
Ann: which node?
Bob: n12
""",
    "Chinese, between marks": f"""\
[09:01] 老王：早
[09:02] 小林：我的任务报错 "{MM}" 了，不知道为什么
[09:03] 老王：哪台
[09:04] 小林：n12
""",
    "German, again": f"""\
[12:40] Olaf: Letztes Jahr hatten wir das doch, es wurde behoben
[12:41] Ute: Ja, wieso?
[12:43] Olaf: Heute kam es schon wieder, mein Job ist abgebrochen: {MM}
[12:44] Ute: Mist
""",
}


@pytest.mark.parametrize("name", CHATS)
def test_a_chat_that_recalls_or_plans(name: str) -> None:
    assert not counts(CHATS[name])


@pytest.mark.parametrize("name", NOW)
def test_a_chat_of_a_failure_that_is_there(name: str) -> None:
    assert counts(NOW[name])
