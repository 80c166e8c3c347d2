"""The labelled inputs of a tree: ``<id>.cases`` for each rule, ``clean.cases``, ``unknown.cases``."""

from __future__ import annotations

import gzip
import io
import os
import tarfile
from dataclasses import replace

from torchdoctor.catalog.loader import rule_files
from torchdoctor.catalog.reader import meant
from torchdoctor.workbench.blocks import BIG, SUFFIX, is_inline, parse, written
from torchdoctor.workbench.case import Case, CaseError


def files(root: str) -> list[str]:
    """The ``.cases`` files of a tree, in order of their names."""
    return sorted(
        entry.path
        for entry in os.scandir(root)
        if entry.name.endswith(SUFFIX) and not entry.name.startswith(".")
    )


def file_of(root: str, of: str) -> str:
    """Where the cases of a rule stand, ``clean`` and ``unknown`` among them."""
    return os.path.join(root, of + SUFFIX)


def read_file(path: str) -> tuple[list[Case], list[str]]:
    """The cases of a file, and one line for each fault in it. Raises CaseError when it cannot be read."""
    try:
        with open(path, "rb") as file:
            return parse(file.read(), path)
    except OSError as error:
        raise CaseError(f"{path}: {error.strerror}") from error


def read_all(root: str) -> tuple[list[Case], list[str]]:
    """The cases of a tree that can be read, in order, and one line for each fault."""
    cases: list[Case] = []
    problems: list[str] = []
    for path in files(root):
        found, faults = read_file(path)
        cases += found
        problems += faults
    return cases, problems


def put(root: str, case: Case, *, over: bool = False) -> Case:
    """Write a case into its file, in place of an unfinished one of its name; returns it as it lies there.

    ``over`` replaces a finished one as well. An input that is long or no text goes gzipped into ``big/``.
    Raises CaseError.
    """
    path = file_of(root, case.of)
    there, problems = read_file(path) if os.path.exists(path) else ([], [])
    if problems:
        raise CaseError(problems[0])
    names = [item.name for item in there]
    if case.name in names and not over and not there[names.index(case.name)].unfinished:
        raise CaseError(f"{path}: has a case {case.name}; take another name, or remove that one first")
    try:
        stored = stow(root, case)
        if case.name in names:
            there[names.index(case.name)] = stored
        else:
            there.append(stored)
        with open(path, "wb") as file:
            file.write(written(there))
    except OSError as error:
        raise CaseError(f"{error.filename or path}: cannot be written: {error.strerror}") from error
    return stored


def stow(root: str, case: Case) -> Case:
    """The case as its file can hold it: what does not stand in the file itself is written to ``big/``."""
    os.makedirs(root, exist_ok=True)
    data = case.input()
    if is_inline(data):
        return replace(case, data=data, path=None)
    path = os.path.join(root, BIG, f"{case.of}.{case.name}.{'tar.gz' if case.several_files else 'gz'}")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        # the same bytes each time: no name and no time in the head
        file.write(data if case.several_files else gzip.compress(data, 9, mtime=0))
    return replace(case, data=b"", path=path)


def unpack(case: Case, target: str) -> list[str]:
    """Write the input to a file, one of several files into a folder; returns what was written.

    Raises CaseError.
    """
    try:
        if not case.several_files:
            with open(target, "wb") as file:
                file.write(case.input())
            return [target]
        with tarfile.open(fileobj=io.BytesIO(case.input())) as archive:
            members = [item for item in archive if item.isfile()]
            for item in members:
                if item.name.startswith("/") or ".." in item.name.split("/"):
                    raise CaseError(f"{case.path}: {item.name} leads out of the folder")
            for item in members:
                path = os.path.join(target, item.name)
                os.makedirs(os.path.dirname(path), exist_ok=True)
                held = archive.extractfile(item)
                with open(path, "wb") as file:
                    file.write(held.read() if held is not None else b"")
            return [os.path.join(target, item.name) for item in members]
    except (OSError, tarfile.TarError) as error:
        why = getattr(error, "strerror", None) or error
        raise CaseError(f"{target}: cannot be written: {why}") from error


def place(rules: str) -> str:
    """Where the cases of a rules directory belong: ``fixtures`` in the same folder."""
    return os.path.join(os.path.dirname(os.path.abspath(rules)), "fixtures")


def beside(rules: str) -> str | None:
    """The tree of cases that belongs to a rules directory: ``fixtures`` in the same folder.

    None where there is no such folder, or where it holds something else: nothing in it is named after a rule
    of the directory.
    """
    root = place(rules)
    if not os.path.isdir(root) or not os.path.isdir(rules):
        return None
    named = {os.path.splitext(os.path.basename(path))[0] for path in rule_files(rules)}
    return root if named.intersection(name.removesuffix(SUFFIX) for name in os.listdir(root)) else None


def find(root: str, name: str) -> Case:
    """The case ``ID/NAME`` of a tree. Raises CaseError, which says what there is."""
    of, _, one = name.partition("/")
    known = {os.path.basename(path).removesuffix(SUFFIX): path for path in files(root)}
    if of not in known:
        raise CaseError(f"{file_of(root, of)}: no such file{meant(of, known)}")
    cases, problems = read_file(known[of])
    for case in cases:
        if case.name == one:
            return case
    if problems:
        raise CaseError(problems[0])
    named = ", ".join(case.name for case in cases)
    raise CaseError(f'{known[of]}: no case "{one}"; a case is called ID/NAME, here are {named}')
