"""What the job's interpreter, torch and environment are, and whether one kernel runs on each of its GPUs.

Called as ``python environment.py FILE`` by the job's python, from the job's folder,
with the job's environment.
Needs nothing of ours. The harmless questions come first: what was told before a crash stands.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import glob
import hashlib
import json
import os
import re
import signal
import socket
import sys
import tempfile
import time
from typing import Any

REPORT = sys.argv[-1]
LIBRARIES = re.compile(
    r"/(libnccl|libcudnn|libcublas|libcublasLt|libcudart|libnvrtc|libtorch_cuda|libcuda)\.so[.\d]*$"
)
LEAKED = (
    "CUDA_LAUNCH_BLOCKING", "NCCL_P2P_DISABLE", "NCCL_IB_DISABLE", "NCCL_SHM_DISABLE", "NCCL_NET_GDR_DISABLE",
    "NCCL_DEBUG", "NCCL_ALGO", "NCCL_PROTO", "CUDA_DEVICE_MAX_CONNECTIONS", "PYTORCH_NO_CUDA_MEMORY_CACHING",
    "TORCH_NCCL_BLOCKING_WAIT", "TORCH_NCCL_DESYNC_DEBUG", "TORCH_DISTRIBUTED_DEBUG",
    "CUDA_DEVICE_WAITS_ON_EXCEPTION",
    "TORCH_USE_CUDA_DSA", "TORCH_SHOW_CPP_STACKTRACES", "CUDA_ENABLE_COREDUMP_ON_EXCEPTION", "TORCH_LOGS",
    "PYTORCH_CUDA_ALLOC_CONF", "LD_PRELOAD", "LD_LIBRARY_PATH", "NVIDIA_TF32_OVERRIDE",
)  # fmt: skip
# what torch, CUDA, NCCL, the OpenMP runtimes and the loader read while they start
SETTINGS = (
    "PYTORCH_", "TORCH_", "TORCHINDUCTOR_", "CUDA_", "CUBLAS_", "CUDNN_", "NCCL_", "HIP_", "HSA_", "ROCR_",
    "OMP_", "GOMP_", "KMP_", "MKL_", "LD_PRELOAD", "LD_LIBRARY_PATH", "NVIDIA_TF32_OVERRIDE",
)  # fmt: skip
SHOWN = 300
# what names the container's image to those who are in it
IMAGES = ("APPTAINER_CONTAINER", "SINGULARITY_CONTAINER", "NVIDIA_BUILD_ID", "IMAGE_DIGEST")
JOB = (
    "MASTER_ADDR",
    "MASTER_PORT",
    "RANK",
    "WORLD_SIZE",
    "LOCAL_RANK",
    "NCCL_SOCKET_IFNAME",
    "GLOO_SOCKET_IFNAME",
)
PR_SET_PDEATHSIG = 1
NETWORK = ("nfs", "lustre", "cifs", "smb", "9p", "ceph", "beegfs", "gpfs", "weka", "fuse.")
MOST_BUILDS = 100
TRIED_BYTES = 65536
CONNECT_S = 1.5
# what cannot be reached at all; a refused connection shows that the host is there
UNREACHABLE = (errno.EHOSTUNREACH, errno.ENETUNREACH, errno.ENETDOWN, errno.EHOSTDOWN)


def die_with_parent() -> None:
    """End when the supervisor is killed: nobody would hold our limits any more. Linux only, else nothing."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def write(record: dict[str, object]) -> None:
    with open(REPORT, "a", encoding="utf-8") as stream:
        stream.write(json.dumps(record, default=str) + "\n")


def fact(name: str, value: object) -> None:
    write({"name": f"env.{name}", "value": value})


def folders() -> None:
    """Caches of compilers and extensions: writable, with room, allowed to run code; locks left in them."""
    home = os.path.expanduser("~")
    user = os.environ.get("USER") or str(os.getuid())
    temporary = tempfile.gettempdir()
    caches = {
        "extensions": os.environ.get("TORCH_EXTENSIONS_DIR")
        or os.path.join(home, ".cache", "torch_extensions"),
        "inductor": os.environ.get("TORCHINDUCTOR_CACHE_DIR")
        or os.path.join(temporary, f"torchinductor_{user}"),
        "triton": os.environ.get("TRITON_CACHE_DIR") or os.path.join(home, ".triton", "cache"),
        "temporary": temporary,
    }
    shares = {name: share_of(folder) for name, folder in caches.items()}
    fact("shared", {name: share for name, share in shares.items() if share})
    fact("caches", [[folder, *usable(folder)] for folder in dict.fromkeys(caches.values())])
    extensions = caches["extensions"]
    fact("locks", locks(extensions))
    fact("built", built(extensions))
    fact("locking", [extensions, *locking(extensions)])


def built(root: str) -> list[list[object]]:
    """[folder, architectures] of the CUDA extensions that were built there, from what ninja was told."""
    found: list[list[object]] = []
    paths = glob.glob(f"{glob.escape(root)}/*/build.ninja") + glob.glob(
        f"{glob.escape(root)}/*/*/build.ninja"
    )
    for path in sorted(paths)[:MOST_BUILDS]:
        try:
            with open(path, encoding="utf-8", errors="replace") as stream:
                arches = sorted(set(re.findall(r"code=\[?((?:sm|compute)_\d+[af]?)", stream.read(1 << 20))))
        except OSError:
            continue
        if arches:
            found.append([os.path.dirname(path), arches])
    return found


def share_of(folder: str) -> str:
    """Server and path of a folder on a network's disk, the same on every node that mounts it; else ""."""
    real = os.path.realpath(existing(folder))
    place, kind, source, root = mount_of(real)
    if not kind.startswith(NETWORK):
        return ""
    inside = os.path.relpath(os.path.join(real, os.path.relpath(folder, existing(folder))), place)
    return f"{source}{root.rstrip('/')}:{os.path.normpath(inside)}"


def locking(folder: str) -> list[str]:
    """What is wrong with locks there ("" for nothing), and the type of the file system.

    Two builders of one extension hold each other off by a file that only one of them can make.
    """
    at = existing(folder)
    path = os.path.join(at, f".torchdoctor-lock-{os.getpid()}")
    wrong = ""
    try:
        first = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    except OSError as error:
        return [f"no lock can be created: {error.strerror}", kind_of(at)]
    try:
        try:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            wrong = "two processes can make the same lock (O_EXCL)"
        except FileExistsError:
            pass
        fcntl.flock(first, fcntl.LOCK_EX | fcntl.LOCK_NB)
        second = os.open(path, os.O_WRONLY)
        try:
            fcntl.flock(second, fcntl.LOCK_EX | fcntl.LOCK_NB)
            wrong = wrong or "two processes can hold the same lock (flock)"
        except BlockingIOError:
            pass
        finally:
            os.close(second)
    except OSError as error:
        wrong = wrong or f"flock: {error.strerror}"
    finally:
        os.close(first)
        os.unlink(path)
    return [wrong, kind_of(at)]


def kind_of(path: str) -> str:
    """The type of the file system that a folder lies on."""
    return mount_of(os.path.realpath(path))[1]


def mount_of(real: str) -> tuple[str, str, str, str]:
    """Where the file system of a path is mounted, its type, what is mounted, and which folder of that."""
    best, kind, source, root = "", "", "", "/"
    with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as stream:
        for line in stream:
            fields, _, rest = line.partition(" - ")
            parts = fields.split()
            place = parts[4] if len(parts) > 4 else ""
            inside = real == place or real.startswith(place.rstrip("/") + "/")
            if place and inside and len(place) >= len(best):
                best, root = place, parts[3]
                kind, source = (*rest.split()[:2], "", "")[:2]
    return best, kind, source, root


def existing(folder: str) -> str:
    """The folder, or the nearest one above it that there is."""
    while not os.path.isdir(folder) and os.path.dirname(folder) != folder:
        folder = os.path.dirname(folder)
    return folder


def usable(folder: str) -> list[object]:
    """What is wrong with writing there ("" for nothing), whether code may run from there, and bytes free."""
    at = existing(folder)
    if at != folder and os.path.lexists(folder):
        return ["it is not a folder", True, -1]
    try:
        handle, path = tempfile.mkstemp(prefix=".torchdoctor-", dir=at)
    except OSError as error:
        return [error.strerror or str(error), True, -1]
    wrong = ""
    try:
        left = TRIED_BYTES
        while left > 0:  # a disk that is nearly full takes a part, and the next write says why
            left -= os.write(handle, b"\0" * left)
        os.fsync(handle)
    except OSError as error:
        wrong = error.strerror or str(error)
    finally:
        os.close(handle)
        os.unlink(path)
    space = os.statvfs(at)
    return [wrong, not space.f_flag & os.ST_NOEXEC, space.f_bavail * space.f_frsize]


def locks(root: str) -> list[list[object]]:
    """Build locks with their age; a builder that was killed leaves one, and every later one waits for it."""
    found: list[list[object]] = []
    seen = 0
    for folder, _, names in os.walk(root):
        seen += 1
        if seen > 500:
            break
        for name in names:
            if name in ("lock", "baton.lock"):
                path = os.path.join(folder, name)
                try:
                    status = os.stat(path)
                except OSError:
                    continue
                found.append([path, time.time() - status.st_mtime, status.st_uid])
    return found


def rendezvous() -> None:
    told = {name: os.environ[name] for name in JOB if name in os.environ}
    fact("job", told)
    interfaces = sorted(os.listdir("/sys/class/net")) if os.path.isdir("/sys/class/net") else []
    states = []
    for name in interfaces:
        try:
            with open(f"/sys/class/net/{name}/operstate", encoding="ascii") as stream:
                states.append([name, stream.read().strip()])
        except OSError:
            states.append([name, "unknown"])
    fact("interfaces", states)
    with contextlib.suppress(OSError):
        own = socket.getaddrinfo(socket.gethostname(), None, type=socket.SOCK_STREAM)
        fact("host_addresses", sorted({str(one[4][0]) for one in own}))
    host = told.get("MASTER_ADDR")
    if host is None:
        return
    try:
        addresses = sorted(
            {str(one[4][0]) for one in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)}
        )
        fact("master_addresses", addresses)
    except OSError as error:
        fact("master_error", str(error))
        return
    port = told.get("MASTER_PORT", "")
    if told.get("RANK") == "0" and re.match(r"[0-9]{1,5}$", port) and 0 < int(port) < 65536:
        family = socket.AF_INET6 if all(":" in one for one in addresses) else socket.AF_INET
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("", int(port)))
                fact("master_port_free", True)
            except OSError as error:
                fact("master_port_free", error.errno != errno.EADDRINUSE)
    elif re.match(r"[0-9]{1,9}$", told.get("RANK", "")) and re.match(r"[0-9]{1,5}$", port):
        fact("master_reached", reached(host, int(port)))


def reached(host: str, port: int) -> str:
    """ "yes", also where nobody listens yet; else why not."""
    try:
        socket.create_connection((host, port), CONNECT_S).close()
    except OSError as error:
        if isinstance(error, socket.timeout):
            return f"no answer within {CONNECT_S:g} s"
        if error.errno in UNREACHABLE:
            return error.strerror or str(error)
    return "yes"


def loaded() -> list[list[str]]:
    """Name and path of the libraries in this process that may stand there twice."""
    found: dict[str, str] = {}
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as stream:
        for line in stream:
            path = line.rstrip("\n").partition("/")[2]
            match = LIBRARIES.search(f"/{path}") if path else None
            if match:
                found[os.path.realpath(f"/{path}")] = match[1]
    return [[name, path] for path, name in sorted(found.items())]


def shadowed(found: list[list[str]], torch_file: str) -> list[list[str]]:
    """[name, path, path] of libraries that torch's wheel brings and that were loaded from elsewhere."""
    site = os.path.realpath(os.path.dirname(os.path.dirname(torch_file)))
    odd = []
    for name, path in found:
        own = glob.glob(f"{glob.escape(site)}/nvidia/*/lib/{name}.so*")
        own += glob.glob(f"{glob.escape(site)}/torch/lib/{name}.so*")
        if own and not path.startswith(site + os.sep):
            odd.append([name, path, own[0]])
    return odd


def devices(torch: Any) -> None:
    count = torch.cuda.device_count()
    fact("device_count", count)
    found = []
    for index in range(count):
        properties = torch.cuda.get_device_properties(index)
        pci = ""
        if hasattr(properties, "pci_bus_id"):
            pci = f"{properties.pci_domain_id:04x}:{properties.pci_bus_id:02x}:{properties.pci_device_id:02x}"
        uuid = f"GPU-{properties.uuid}" if hasattr(properties, "uuid") else ""
        found.append([index, properties.name, f"{properties.major}.{properties.minor}", uuid, pci])
    fact("devices", found)
    for index in range(count):
        write({"stage": f"kernel {index}"})
        try:
            value = float(torch.arange(1024, device=f"cuda:{index}", dtype=torch.float32).sum().item())
            fact(f"kernel.{index}", "ok" if value == 523776.0 else f"wrong result {value}")
        except Exception as error:  # what is wrong with it is the answer
            fact(f"kernel.{index}", f"{type(error).__name__}: {str(error).splitlines()[0][:300]}")


def packages() -> str:
    """A digest of the installed distributions and their versions: the same where these are."""
    names = set()
    for folder in sys.path:
        with contextlib.suppress(OSError):
            names |= {
                name for name in os.listdir(folder or ".") if name.endswith((".dist-info", ".egg-info"))
            }
    return hashlib.sha256("\n".join(sorted(names)).encode()).hexdigest()[:16]


def leaks(name: str) -> bool:
    return name in LEAKED or name.startswith("TORCH_NCCL_")


def main() -> None:
    die_with_parent()
    fact("python", sys.executable)
    fact("python_version", ".".join(map(str, sys.version_info[:3])))
    fact("leaked", {name: value for name, value in os.environ.items() if leaks(name)})
    settings = {
        name: value[:SHOWN] for name, value in sorted(os.environ.items()) if name.startswith(SETTINGS)
    }
    fact("settings", settings)
    fact("nccl_variables", {name: value for name, value in os.environ.items() if "NCCL_" in name})
    fact("image", next((os.environ[name] for name in IMAGES if os.environ.get(name)), ""))
    fact("packages", packages())
    write({"stage": "caches"})
    folders()
    write({"stage": "addresses"})
    rendezvous()
    write({"stage": "import"})
    begun = time.monotonic()
    try:
        import torch
    except BaseException as error:  # a broken torch may raise anything
        fact("import_error", f"{type(error).__name__}: {str(error)[:500]}")
        return
    fact("import_seconds", round(time.monotonic() - begun, 3))
    untyped: Any = torch
    fact("torch", torch.__version__)
    fact("torch_file", torch.__file__)
    fact("torch_cuda", torch.version.cuda)
    fact("torch_hip", getattr(torch.version, "hip", None))
    try:
        fact("arch_list", list(torch.cuda.get_arch_list()))
        fact("cudnn", untyped.backends.cudnn.version())
        if torch.version.cuda and hasattr(torch.cuda, "nccl"):
            fact("nccl", ".".join(map(str, untyped.cuda.nccl.version())))
    except Exception as error:  # a torch without CUDA lacks some of it
        fact("version_error", str(error)[:300])
    write({"stage": "cuda"})
    try:
        available = bool(torch.cuda.is_available())
        fact("cuda_available", available)
        if available:
            untyped.cuda.init()
            devices(torch)
    except Exception as error:
        fact("cuda_error", f"{type(error).__name__}: {str(error).splitlines()[0][:300]}")
    found = loaded()
    fact("loaded", found)
    fact("shadowed", shadowed(found, torch.__file__ or ""))
    write({"stage": "end"})


if __name__ == "__main__":
    main()
    sys.stdout.flush()
    os._exit(0)  # tearing CUDA down takes longer than all of the above
