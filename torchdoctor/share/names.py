"""Which words are names of people or machines, and a search for many names at once."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

_LEAST = 3
FORMS = {"hosts": "node{}", "users": "user{}"}

# names that tell nobody
COMMON = frozenset({
    "user", "users", "root", "ubuntu", "runner", "jovyan", "me", "app", "admin", "shared", "public",
    "default", "ec2-user", "localhost", "conda", "node", "host", "worker", "master", "name", "you",
    "builder", "jenkins", "linuxbrew", "git", "nobody", "vscode", "coder", "docker", "null", "none",
    "unknown", "fail", "example.com", "data", "the", "all", "any", "socket", "peer", "store", "redacted",
    "username", "kernel", "azureuser", "rendezvous", "c10d", "failed", "refused", "torch.distributed",
    "daemon", "bin", "sys", "sync", "mail", "www-data", "slurm", "munge", "postgres", "mysql", "redis",
    "systemd", "messagebus", "sshd", "nvidia-persistenced", "gitlab-ci-token", "x-access-token", "oauth2",
    "anonymous", "guest", "centos", "debian", "fedora", "opc", "vagrant", "pi", "mpiexec",
})  # fmt: skip
# a name that is also a word of torch is only taken out where it can be nothing else: in the path of a home
WORDS = frozenset({
    "torch", "pytorch", "python", "cuda", "gpu", "train", "model", "models", "test", "main", "error", "max",
    "min", "sum", "mean", "log", "norm", "grad", "index", "loss", "rank", "step", "batch", "device",
    "tensor", "nccl", "gloo", "lightning", "triton", "conda", "miniconda3", "anaconda3", "project",
    "projects", "code", "work", "workspace", "nvidia", "amd", "rocm", "mark", "will", "grant", "page",
    "art", "chance", "case", "rand", "ray", "dot", "dask", "flow", "dim", "ada", "adam", "jit", "val",
    "eval", "dist", "run", "job", "jobs", "python3", "system", "pdsh", "proxy", "wheel", "staff", "video",
    "render", "core", "head", "login", "remote", "local", "client", "server", "warning", "fatal", "info",
    "bash", "sh", "zsh", "ssh", "scp", "sudo", "env", "timeout", "srun", "mpirun", "nohup", "make", "line",
    "usage", "note", "hint",
})  # fmt: skip
# folders of a shared file system that are nobody's: what lies in them, not whose it is
FOLDERS = COMMON | WORDS | frozenset({
    "datasets", "dataset", "raw", "processed", "cache", "caches", "tmp", "temp", "scratch", "home", "homes",
    "checkpoints", "checkpoint", "ckpt", "ckpts", "weights", "runs", "logs", "output", "outputs", "out",
    "results", "exp", "exps", "experiments", "images", "image", "img", "imgs", "videos", "audio", "text",
    "labels", "annotations", "training", "validation", "testing", "tests", "dev", "prod", "src", "lib",
    "libs", "bin", "opt", "etc", "var", "usr", "env", "envs", "venv", "venvs", "sw", "software", "apps",
    "modules", "containers", "hf", "hf_cache", "huggingface", "hub", "datalake", "corpus", "corpora",
    "tokens", "tokenizer", "tokenized", "shards", "files", "file", "backup", "backups", "archive",
    "archives", "common", "group", "groups", "team", "teams", "lab", "labs", "db", "nfs", "gpfs", "lustre",
    "beegfs", "ssd", "hdd", "nvme", "local", "mnt", "media", "export", "exports", "volume", "volumes",
    "input", "inputs", "nas", "storage", "share", "profiles", "users", "configs", "config", "scripts",
    "notebooks", "repos", "repo", "python", "build", "builds", "pretrain", "pretrained", "finetune", "sft",
    "rl", "eval", "evals", "zoo", "json", "csv", "parquet", "npy", "h5", "lmdb", "vocab", "wiki",
    "wikipedia", "imagenet", "coco", "voc", "mnist", "cifar", "openwebtext", "pile", "redpajama", "fineweb",
    "laion", "librispeech", "llama", "qwen", "llm", "vlm", "asr", "ocr", "tts", "nlp", "cv", "hpo", "moe",
    "ml", "ai", "mistral", "gpt", "bert", "resnet", "sdxl", "flux", "kinetics", "cityscapes", "ade20k",
    "squad", "glue",
})  # fmt: skip
# services of everybody, which say what was not reached
_SERVICES = re.compile(
    r"(?:^|\.)(?:huggingface\.co|hf\.co|github(?:usercontent)?\.com|pytorch\.org|pypi\.org|pythonhosted\.org|anaconda\.org"
    r"|googleapis\.com|wandb\.ai|docker\.io|nvidia\.com|ngc\.nvidia\.com|openai\.com|kaggle\.com|zenodo\.org)$|^cdn-"
)
_WORD = re.compile(r"[^\W_]+")
_GOES_ON = re.compile(r"[^\W_]|-[^\W_]")
_FILE = re.compile(r".*\.(?:py|pyx|c|cc|cpp|cxx|cu|cuh|h|hpp|rs|go|so|sh|js|java)")


def tells(name: str, kind: str, *, sure: bool = False) -> bool:
    """Whether a word that stood in the place of a name is one. ``sure`` places hold nothing but names.

    Elsewhere a bare word is as likely part of a sentence as a host.
    """
    low = name.lower()
    if len(name) < _LEAST or low in COMMON or low in WORDS or name[0].isdigit() or is_stand_in(name, kind):
        return False
    if kind != "hosts":
        return True
    if _SERVICES.search(low) or _FILE.fullmatch(low):
        return False
    return sure or (
        any(char.isdigit() or char in "-." for char in name) and not name.startswith(("python", "torch"))
    )


def is_folder(name: str) -> bool:
    """Whether a folder of a shared file system says by its name what it holds, not whose it is."""
    low = name.lower()
    return low in FOLDERS or re.split(r"[^a-z]", low, maxsplit=1)[0] in FOLDERS


def is_stand_in(name: str, kind: str) -> bool:
    return bool(re.fullmatch(FORMS[kind].format(r"\d+"), name))


class NameSearch:
    """Finds many names in a text, each as a word of its own, the longest first.

    The cost of a text does not grow with the number of names: they are looked up by their first letters and
    digits, then by their length.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._names = {name for name in names if name and _WORD.match(name)}
        lengths: dict[str, set[int]] = {}
        for name in self._names:
            first = _WORD.match(name)
            assert first is not None
            lengths.setdefault(first[0], set()).add(len(name))
        self._lengths = {first: sorted(found, reverse=True) for first, found in lengths.items()}

    def replaced(self, text: str, stand_in: Callable[[str], str]) -> str:
        """The text with ``stand_in(name)`` for each name in it."""
        made: list[str] = []
        done = 0
        for word in _WORD.finditer(text) if self._names else ():
            start = word.start()
            for length in self._lengths.get(word[0], ()) if start >= done else ():
                name = text[start : start + length]
                if name in self._names and not _GOES_ON.match(text, start + length):
                    made += [text[done:start], stand_in(name)]
                    done = start + length
                    break
        return "".join([*made, text[done:]])
