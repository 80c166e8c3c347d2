"""Imports that no checkpoint needs and an attack does: what would run as soon as the file is loaded.

After fickling's analyses (trailofbits/fickling, ``analysis.py``): each name with what it can do, so that the
answer is more than "unsafe". A name on neither list is a class that somebody has to know.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from torchdoctor.checkpoint.pickled import Import

# what the functions of a module do -> modules, or heads of modules
_BY_MODULE: Final = {
    "runs commands and changes files": "os posix nt",
    "looks at files": "posixpath ntpath glob nturl2path",
    "runs commands": (
        "subprocess pty commands popen2 platform _posixsubprocess distutils.spawn "
        "numpy.testing._private.utils torch.utils.collect_env torch.distributed.run uuid mailcap"
    ),
    "changes the interpreter": "sys",
    "imports and runs modules": "importlib imp pkgutil zipimport logging.config",
    "runs Python files": "runpy",
    "runs Python code": (
        "code timeit profile cProfile trace pdb bdb doctest test.support.script_helper idlelib "
        "distutils.core torch.utils.bottleneck torch.fx.experimental.symbolic_shapes lib2to3"
    ),
    "compiles Python code": "codeop",
    "calls native code": "ctypes _ctypes cffi",
    "loads compiled code": "marshal",
    "makes functions of bytes": "types dill cloudpickle",
    "loads a further pickle": "pickle _pickle cPickle shelve torch.utils._config_module",
    "opens connections": "socket _socket ssl http httplib ftplib telnetlib xmlrpc aiohttp paramiko",
    "fetches from the network": "urllib urllib2 requests",
    "sends mail": "smtplib",
    "runs commands and opens connections": "asyncio",
    "starts processes": "multiprocessing",
    "starts a program": "webbrowser antigravity pydoc",
    "changes files": "shutil tempfile",
    "looks at and changes files": "pathlib",
    "installs packages": "pip ensurepip venv",
    "ends processes": "signal _signal",
    "starts threads": "threading _thread",
    "reaches every object of the process": "gc",
    "reaches every frame": "inspect",
    "runs code at the end": "atexit",
    "loads native code": "sqlite3",
    "fetches and runs code": "torch.hub",
    "compiles and loads native code": "torch.utils.cpp_extension",
    "compiles and runs code": "torch._inductor",
}

# single names of modules that are well otherwise
_BY_NAME: Final = {
    "runs or reaches code": (
        "builtins.eval builtins.exec builtins.execfile builtins.compile builtins.__import__ builtins.open "
        "builtins.input builtins.raw_input builtins.breakpoint builtins.globals builtins.locals "
        "builtins.vars builtins.setattr builtins.delattr builtins.apply builtins.file builtins.exit "
        "builtins.quit builtins.help builtins.memoryview __builtin__.eval __builtin__.exec "
        "__builtin__.execfile __builtin__.compile __builtin__.__import__ __builtin__.open __builtin__.input "
        "__builtin__.raw_input __builtin__.breakpoint __builtin__.globals __builtin__.locals "
        "__builtin__.vars __builtin__.setattr __builtin__.delattr __builtin__.apply __builtin__.file "
        "__builtin__.exit __builtin__.quit __builtin__.help __builtin__.memoryview __builtins__.eval "
        "__builtins__.exec __builtins__.execfile __builtins__.compile __builtins__.__import__ "
        "__builtins__.open __builtins__.input __builtins__.raw_input __builtins__.breakpoint "
        "__builtins__.globals __builtins__.locals __builtins__.vars __builtins__.setattr "
        "__builtins__.delattr __builtins__.apply __builtins__.file __builtins__.exit __builtins__.quit "
        "__builtins__.help __builtins__.memoryview"
    ),
    "loads a further file": "torch.load torch.jit.load torch.serialization.load",
    "loads native code": "torch.ops.load_library torch.classes.load_library",
    "writes a file": "torch.save",
    "runs Python code": (
        "torch.jit.unsupported_tensor_ops.execWrapper numpy.f2py.crackfortran.getlincoef "
        "numpy.f2py.crackfortran._eval_length cgitb.lookup site.main pandas.eval"
    ),
    "loads a further pickle": (
        "numpy.load joblib.load joblib.numpy_pickle.load numpy.loads pandas.read_pickle"
    ),
    "reaches any attribute": "operator.attrgetter _operator.attrgetter",
    "calls any method": "operator.methodcaller _operator.methodcaller",
    "opens a file": "codecs.open io.open io.FileIO _io.FileIO io.open_code",
    "reads a file": "linecache.getline linecache.updatecache",
    "calls any function": "functools.reduce itertools.starmap builtins.map builtins.filter",
    "runs commands": "_aix_support._read_cmd_output _osx_support._read_output _pyrepl.pager.pipe_pager",
    "loads code out of a file": "torch.package.package_importer.PackageImporter",
}

# classes that stand in modules above, are common in pickles, and do nothing by themselves
_HARMLESS: Final = frozenset(
    (  # noqa: SIM905 (a list of names)
        "importlib.metadata.PackagePath inspect.Parameter inspect.Signature inspect._ParameterKind "
        "multiprocessing.context.BaseContext pathlib.Path pathlib.PosixPath pathlib.PurePath "
        "pathlib.PurePosixPath pathlib.PureWindowsPath pathlib.WindowsPath pathlib._local.Path "
        "pathlib._local.PosixPath pathlib._local.WindowsPath signal.Signals sys.version_info "
        "torch.storage.TypedStorage torch.storage.UntypedStorage torch.storage._TypedStorage "
        "torch.storage._UntypedStorage types.MappingProxyType types.NoneType types.SimpleNamespace "
        "urllib.parse.ParseResult urllib.parse.SplitResult uuid.UUID"
    ).split()
)
_MODULES: Final = {module: words for words, names in _BY_MODULE.items() for module in names.split()}
_NAMES: Final = {path: words for words, names in _BY_NAME.items() for path in names.split()}


def meaning(module: str, name: str) -> str:
    """What an import can do that no checkpoint needs; "" when it is not known for anything of the kind."""
    path = f"{module}.{name}"
    if path in _HARMLESS:
        return ""
    found = _NAMES.get(path)
    if found is not None:
        return found
    head = module
    while head:
        if head in _MODULES:
            return _MODULES[head]
        head = head.rpartition(".")[0]
    # a dotted name reaches through a module that is allowed into one that is not (CVE-2025-1716 and kin)
    for part in name.split(".")[:-1]:
        if _MODULES.get(part):
            return _MODULES[part]
    return ""


def dangerous(imports: Iterable[Import]) -> list[tuple[Import, str]]:
    """The imports that are known for harm, with what they can do; each name once."""
    found: dict[str, tuple[Import, str]] = {}
    for one in imports:
        words = meaning(one.module, one.name)
        if words and one.path not in found:
            found[one.path] = (one, words)
    return list(found.values())
