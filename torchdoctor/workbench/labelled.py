"""Labelled inputs of a folder, in either layout: ``labels.tsv`` beside them, or a tree of cases."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase

from torchdoctor.model import TorchdoctorError
from torchdoctor.workbench.case import NONE, Case
from torchdoctor.workbench.cases import read_all

LABELS = "labels.tsv"
USERS_OWN = ("user-bug", "plain-python")
NOTHING = "none-of-the-above"  # how labels.tsv calls NONE


class EvaluationError(TorchdoctorError):
    """A folder that holds no labelled inputs, or labels that cannot be read."""


def cases(folder: str, only: Sequence[str] = ()) -> list[Case]:
    """The labelled inputs, in order of their names; with ``only`` those whose name a pattern matches.

    Raises EvaluationError.
    """
    if not os.path.isdir(folder):
        raise EvaluationError(f"{folder}: no such folder")
    labels = os.path.join(folder, LABELS)
    if os.path.exists(labels):
        found = list(_listed(labels))
    else:
        found, problems = read_all(folder)
        if problems:
            raise EvaluationError(problems[0])
    if not found:
        raise EvaluationError(f"{folder}: holds neither {LABELS} nor cases")
    if only:
        found = [case for case in found if any(fnmatchcase(case.id, pattern) for pattern in only)]
        if not found:
            raise EvaluationError(f"{folder}: no case has a name like {' or '.join(only)}")
    return found


def _listed(path: str) -> Iterator[Case]:
    with open(path, encoding="utf-8") as file:
        header, *rows = (line.rstrip("\r\n").split("\t") for line in file if line.strip())
    for column in ("case", "cause"):
        if column not in header:
            raise EvaluationError(f'{path}:1: no column "{column}" in the first line')
    for number, row in enumerate(rows, start=2):
        values = dict(zip(header, row, strict=False))
        name = values["case"]
        file_name = os.path.join(os.path.dirname(path), name)
        if not os.path.exists(file_name):
            raise EvaluationError(f"{path}:{number}: {name} is not there")
        expected = [values["cause"], *(item.strip() for item in values.get("also", "").split(","))]
        if values.get("style") in USERS_OWN:  # labelled when no rule said so
            expected.append("own-code-error")
        rule, *also = (NONE if item == NOTHING else item for item in expected if item)
        yield Case(
            name,
            rule,
            also=tuple(also),
            origin=values.get("source", ""),
            path=file_name,
            place=f"{path}:{number}",
        )
