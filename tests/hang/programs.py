"""Programs that hang, or only look so. Each prints ``ready`` when it is where it is to be looked at."""

from __future__ import annotations

READY = "import sys, time, os\n\ndef ready():\n    print('ready', flush=True)\n"

STDIN = """
def ask():
    ready()
    return input("overwrite? ")

ask()
"""

DEBUGGER = """
def train():
    ready()
    breakpoint()
    return 1

train()
"""

LOCK_ORDER = """
import threading
first, second = threading.Lock(), threading.Lock()
met = threading.Barrier(2)

def one():
    with first:
        met.wait()
        with second:
            pass

def other():
    with second:
        met.wait()
        with first:
            pass

threads = [threading.Thread(target=function, name=function.__name__) for function in (one, other)]
for thread in threads:
    thread.start()
time.sleep(0.3)
ready()
for thread in threads:
    thread.join()
"""

GIL = """
import ctypes, threading

def logs():
    while True:
        time.sleep(0.05)

def native():
    ready()
    ctypes.PyDLL(None).sleep(600)  # PyDLL keeps the interpreter's lock

threading.Thread(target=logs, daemon=True).start()
time.sleep(0.2)
native()
"""

VFORK = """
import ctypes
# the child of vfork shares the memory of its parent, which sleeps until the child ends
def load():
    libc = ctypes.CDLL(None)
    ready()
    child = libc.vfork()
    if child == 0:
        libc.sleep(600)
        libc._exit(0)

load()
"""

SLOW = """
def step(number):
    total = 0
    for value in range(3_000_000):
        total += value * number
    return total

ready()
number = 0
while True:
    number += 1
    step(number)
"""

IDLE = """
import socketserver

class Answer(socketserver.BaseRequestHandler):
    def handle(self):
        pass

server = socketserver.TCPServer(("127.0.0.1", 0), Answer)
ready()
server.serve_forever()
"""

STALE_LOCK = """
import torch.utils.cpp_extension as extension
folder = os.environ["TORCH_EXTENSIONS_DIR"] + "/mine"
os.makedirs(folder, exist_ok=True)
open(folder + "/lock", "w").close()
extension.verify_ninja_availability = lambda: None
ready()
extension.load_inline("mine", "int one() { return 1; }", functions=["one"], build_directory=folder)
"""

LOCK_OF_A_BUILD = """
from torch.utils.file_baton import FileBaton
import subprocess

def build(build_directory):
    baton = FileBaton(os.path.join(build_directory, "lock"))
    assert baton.try_acquire()
    ready()
    subprocess.run([sys.argv[2], "600"])

def wait(build_directory):  # as torch.utils.cpp_extension._jit_compile has it
    ready()
    FileBaton(os.path.join(build_directory, "lock")).wait()

(build if sys.argv[3] == "build" else wait)(sys.argv[1])
"""

OS_LOCK = """
import fcntl
import torch.utils.cpp_extension as extension

def hold(build_directory):
    with open(build_directory + "/lock", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        ready()
        time.sleep(600)

def wait(build_directory):
    with open(build_directory + "/lock", "w") as file:
        ready()
        fcntl.flock(file, fcntl.LOCK_EX)

(hold if sys.argv[2] == "hold" else wait)(sys.argv[1])
"""

LOADER_STUCK = """
import torch
from torch.utils.data import DataLoader, Dataset

class Slow(Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        if index == 3:
            open(sys.argv[1]).read()  # a pipe that nobody writes to
        return torch.ones(2)

def train():
    loader = DataLoader(Slow(), batch_size=1, num_workers=2)
    for number, batch in enumerate(loader):
        if number == 2:
            ready()

train()
"""

LOADER_KILLED = """
import signal, threading
import torch
from torch.utils.data import DataLoader, Dataset
import torch.utils.data._utils as utils
utils.MP_STATUS_CHECK_INTERVAL = 600.0

class Killed(Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        if index == 3:
            time.sleep(0.5)
            os.kill(os.getpid(), signal.SIGKILL)
        return index

def train():
    loader = iter(DataLoader(Killed(), batch_size=1, num_workers=1, collate_fn=list))
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # another library takes the handler that would tell
    for number in range(3):
        next(loader)
    threading.Timer(0.5, ready).start()
    next(loader)

train()
"""

FORK = """
import multiprocessing, threading
lock = threading.Lock()

def holder():
    with lock:
        time.sleep(600)

def child():
    with lock:
        pass

def parent():
    threading.Thread(target=holder, daemon=True).start()
    time.sleep(0.2)
    process = multiprocessing.get_context("fork").Process(target=child)
    process.start()
    time.sleep(0.3)
    ready()
    process.join()

parent()
"""

FORK_OPENMP = """
import multiprocessing
import torch
torch.set_num_threads(2)

def work():
    return torch.ones(4_000_000).add_(1).sum()

def child():
    work()

def parent():
    for _ in range(3):
        work()
    process = multiprocessing.get_context("fork").Process(target=child)
    process.start()
    time.sleep(1.0)
    ready()
    process.join()

parent()
"""

RANKS = """
import datetime
import torch
import torch.distributed as dist

def train():
    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=300))
    rank = dist.get_rank()
    if rank == 0:
        ready()
        save()
    dist.all_reduce(torch.ones(1))

def save():
    time.sleep(0.2)
    dist.broadcast(torch.ones(1), 0) if sys.argv[1] == "other" else time.sleep(600)

def evaluate():
    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=300))
    if dist.get_rank() == 0:
        dist.all_reduce(torch.ones(1))
    else:
        ready()
        time.sleep(600)

evaluate() if sys.argv[1] == "first" else train()
"""

RENDEZVOUS = """
import datetime
import torch.distributed as dist
ready()
dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=300))
"""

COMPILE = """
import torch

@torch.compile
def model(x):
    for number in range(2000):
        x = torch.sin(x) * (number + 1) + torch.cos(x) ** 2
    return x

import torch._dynamo, torch._inductor.compile_fx  # what is imported is not compiled yet
ready()
model(torch.ones(64, 64, requires_grad=True))
time.sleep(600)
"""

RANKS_ON_GPUS = """
import torch
import torch.distributed as dist

def wait_for_disk():
    ready()
    while True:
        time.sleep(0.5)

dist.init_process_group("nccl")
torch.cuda.set_device(dist.get_rank())
value = torch.ones(1, device="cuda")
dist.all_reduce(value)
torch.cuda.synchronize()
if dist.get_rank() == 1:
    wait_for_disk()
dist.all_reduce(value)
torch.cuda.synchronize()
"""

CUDA = """
import torch
from torch.utils.cpp_extension import load_inline

source = "__global__ void spin() { while (true) {} } void start() { spin<<<1, 1>>>(); }"
module = load_inline("spin", "void start();", source, functions=["start"])
module.start()
ready()
torch.cuda.synchronize()
"""
