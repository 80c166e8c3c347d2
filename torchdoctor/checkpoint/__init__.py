"""What a file of weights says, without loading it: what is wrong with it, what it needs, what it fits.

``examine`` answers for paths; ``facts`` gives what one file is, for an answer about a log that names it.
"""

from __future__ import annotations

from torchdoctor.model import Fact


def facts(path: str) -> tuple[Fact, ...]:
    """``ckpt.*`` of one regular file or of a folder's largest part; () for what is no checkpoint.

    Never raises for what is in the file. Bounded memory; to be called in a child where time matters.
    """
    from torchdoctor.checkpoint import judge
    from torchdoctor.checkpoint.inspect import inspect
    from torchdoctor.checkpoint.stretch import CheckpointError
    from torchdoctor.checkpoint.summary import facts_of
    from torchdoctor.checkpoint.target import Target

    try:
        contents = inspect(path)
    except CheckpointError:
        return ()
    judge.judge(contents, Target())
    return tuple(facts_of(contents))
