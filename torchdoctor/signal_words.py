"""The words with which a shell tells of a signal, and docker compose of the end of a service.

Those of other languages are glibc's (its message catalogs of strsignal), and a few that older releases had.
zsh has its own (Src/signames2.awk), without a capital; "terminated", of those, tells of a person's wish.
"""

from __future__ import annotations

ENGLISH = {
    "Segmentation fault": "SIGSEGV", "Bus error": "SIGBUS", "Aborted": "SIGABRT", "Abort trap": "SIGABRT",
    "Floating point exception": "SIGFPE", "Illegal instruction": "SIGILL", "Killed": "SIGKILL",
    "Terminated": "SIGTERM", "Hangup": "SIGHUP", "Trace/breakpoint trap": "SIGTRAP",
    "Trace/BPT trap": "SIGTRAP", "Bad system call": "SIGSYS",
}  # fmt: skip
ZSH = {
    "segmentation fault": "SIGSEGV", "bus error": "SIGBUS", "abort": "SIGABRT",
    "floating point exception": "SIGFPE", "illegal hardware instruction": "SIGILL", "killed": "SIGKILL",
    "trace trap": "SIGTRAP",
}  # fmt: skip
# "zsh: abort      python a.py", "[1]    181810 segmentation fault (core dumped)  python a.py"; without a
# line's end before it, behind the command that was typed
OF_ZSH = (
    r"(?:^zsh: |(?:^| {4,})\[\d{1,4}\] +(?:[+-] +)?\d+ )"
    rf"(?P<word>{'|'.join(ZSH)})(?: \(core dumped\))?(?: +\S|$)"
)

# enough by themselves: no other program says so on a line of its own or behind a number
TELLING = {
    "Speicherzugriffsfehler": "SIGSEGV", "Bus-Zugriffsfehler": "SIGBUS",
    "Erreur de segmentation": "SIGSEGV", "Erreur du bus": "SIGBUS", "Violación de segmento": "SIGSEGV",
    "Error del bus": "SIGBUS", "Falha de segmentação": "SIGSEGV", "Erro no barramento": "SIGBUS",
    "Errore di segmentazione": "SIGSEGV", "Errore di bus": "SIGBUS",
    "Ошибка сегментирования": "SIGSEGV", "Ошибка шины": "SIGBUS", "Убито": "SIGKILL",
    "段错误": "SIGSEGV", "段錯誤": "SIGSEGV", "记忆体区段错误": "SIGSEGV",
    "程式記憶體區段錯誤": "SIGSEGV", "总线错误": "SIGBUS", "匯流排錯誤": "SIGBUS", "已杀死": "SIGKILL",
    "已放弃": "SIGABRT", "セグメンテーション違反です": "SIGSEGV", "バスエラー": "SIGBUS",
    "세그멘테이션 오류": "SIGSEGV", "버스 오류": "SIGBUS",
}  # fmt: skip

# everyday words: a signal's name only as a whole line, or behind a process id with the command after it.
# Not here: words that programs end well with (SIGTERM's Terminado, Beendet, Завершено; SIGABRT's Abandon)
BARE = {
    # be bg ca cs da de el eo es fi fr gl hr hu id it ja ko lt nb nl pl pt ru sk sl sr sv tr uk vi zh_TW
    "Забіты": "SIGKILL", "Безусловно прекъснат": "SIGKILL", "Matat": "SIGKILL", "Zabit": "SIGKILL",
    "Zabit (SIGKILL)": "SIGKILL", "Dræbt": "SIGKILL", "Getötet": "SIGKILL", "Σκοτώθηκε": "SIGKILL",
    "Buĉita": "SIGKILL", "Terminado (killed)": "SIGKILL", "Tapettu": "SIGKILL",
    "Processus arrêté": "SIGKILL", "Tué": "SIGKILL", "Matado": "SIGKILL", "Ubijen": "SIGKILL",
    "Kilőve": "SIGKILL", "Terbunuh": "SIGKILL", "Ucciso": "SIGKILL", "強制終了": "SIGKILL",
    "죽었음": "SIGKILL", "Nutraukta (killed)": "SIGKILL", "Drept": "SIGKILL", "Geëlimineerd": "SIGKILL",
    "Unicestwiony": "SIGKILL", "Morto": "SIGKILL", "Zabitý": "SIGKILL", "Pobit": "SIGKILL",
    "Убијен": "SIGKILL", "Dödad": "SIGKILL", "Süreç durduruldu": "SIGKILL", "Вбито": "SIGKILL",
    "Bị buộc kết thúc": "SIGKILL", "強制結束": "SIGKILL", "已砍掉": "SIGKILL",
    "Аварийный останов": "SIGABRT", "Abortado": "SIGABRT",
    "Naruszenie ochrony pamięci": "SIGSEGV", "Segmentatiefout": "SIGSEGV", "Segmenteringsfel": "SIGSEGV",
    "Помилка адресування": "SIGSEGV", "Parçalama arızası": "SIGSEGV", "Lỗi phân đoạn": "SIGSEGV",
    "Neoprávněný přístup do paměti (SIGSEGV)": "SIGSEGV", "Muistialueen ylitys": "SIGSEGV",
    "Błąd szyny": "SIGBUS", "Busfout": "SIGBUS", "Erro de bus": "SIGBUS",
}  # fmt: skip

# docker compose, which erases the line first where it writes to a terminal
SERVICE_LEFT = r"(?:\x1b\[K)?(?P<service>[\w.-]{1,80}) exited with code (?P<code>\d{1,3})\s*$"
