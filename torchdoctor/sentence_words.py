"""Words that sentences are made of and output is not: articles, pronouns, prepositions, small verbs.

The most frequent of each language that people ask in. Left out are those that are names, units or words of
programs elsewhere: "i", "o", "e", "y", "no", "en", "se", "per", "os", "do".
"""

from __future__ import annotations

COMMON = frozenset((
    # English
    "the", "a", "an", "to", "of", "is", "are", "was", "were", "be", "in", "on", "that", "this", "it", "we",
    "you", "i", "my", "our", "your", "for", "with", "and", "or", "not", "but", "when", "if", "what", "how",
    "do", "does", "did", "can", "could", "should", "would", "will", "has", "have", "had", "there", "then",
    "so", "as", "at", "by", "from", "which", "who", "why", "they", "still", "only", "same", "me", "all",
    "each", "after", "before", "no",
    # German
    "der", "die", "das", "ist", "nicht", "mit", "und", "auf", "ich", "ein", "eine", "einen", "einem", "wenn",
    "wird", "wurde", "sind", "auch", "bei", "dem", "den", "wir", "beim", "aber", "oder", "nur", "noch",
    "nach", "vor", "habe", "hat", "kann", "warum", "wie", "sich", "es", "zu", "von", "für", "mein", "meine",
    "immer", "ohne", "dann", "schon", "jemand",
    # French
    "le", "la", "les", "est", "pas", "et", "une", "que", "des", "du", "vous", "pour", "dans", "qui", "avec",
    "sans", "mais", "plus", "mon", "ma", "mes", "je", "j'ai", "nous", "sur", "au", "aux", "ça", "c'est",
    "ne", "même", "après", "avant", "pourquoi", "comment", "fait", "quand", "alors",
    # Spanish
    "el", "los", "las", "una", "por", "para", "con", "como", "cuando", "pero", "mi", "mis", "del", "al",
    "más", "muy", "qué", "cómo", "esto", "este", "hay", "tengo", "estoy", "desde", "hasta", "también",
    "porque", "alguien", "está", "sin", "ya",
    # Portuguese
    "um", "uma", "em", "quando", "não", "são", "meu", "minha", "mas", "mais", "isso", "estou", "tenho",
    "alguém", "pelo", "pela", "ou", "até", "sem", "já", "também", "na", "nos", "ao", "com",
    # Italian
    "il", "gli", "di", "che", "non", "è", "sono", "mio", "mia", "ma", "più", "questo", "quando", "ho", "nel",
    "della", "dopo", "senza", "anche", "perché", "ogni", "qualcuno", "come", "alla", "sul",
    # Dutch and Swedish
    "het", "een", "niet", "maar", "ik", "mijn", "wij", "dat", "deze", "naar", "bij", "ook", "hoe", "waarom",
    "jag", "och", "inte", "är", "att", "som", "ett", "på", "för", "när",
    # Polish and Czech
    "się", "nie", "jest", "mam", "mi", "po", "ale", "jak", "dlaczego", "przy", "na", "od", "żeby", "jestem",
    "mój", "moje", "tylko", "już", "ktoś", "když", "proč", "mám", "při",
    # Turkish, Indonesian, Vietnamese
    "bir", "ve", "ama", "bu", "için", "ile", "neden", "nasıl", "değil", "çok", "var", "yok", "sonra", "daha",
    "saya", "tidak", "dengan", "yang", "tapi", "kenapa", "bagaimana", "untuk", "sudah", "pada", "dan",
    "tôi", "không", "khi", "nhưng", "của", "và", "bị", "là", "với",
))  # fmt: skip
