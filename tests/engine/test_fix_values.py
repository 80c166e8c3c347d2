"""Fixes say the numbers and names of the message, each read out of a fixture as a user would send it."""

from __future__ import annotations

from pathlib import Path

import pytest
from case_files import catalogued

from torchdoctor.catalog import RuleSet
from torchdoctor.engine import FactBook, diagnose
from torchdoctor.engine.wording import duration
from torchdoctor.model import Fix
from torchdoctor.workbench.case import transcript

SENTENCES = [
    ("cpu-instruction-missing/unseen10-041", "Replace or rebuild libtorch_cpu.so"),
    ("ddp-ready-twice/named-parameter", "Call the module of parameter module.enc.w once"),
    ("ddp-shape-mismatch/strides", "only the strides differ"),
    ("gloo-connect/windows-uv-refused", "a rank announced itself as 127.0.1.1 and did not answer"),
    ("dataparallel-attribute/colab-dp", "Write model.module.encode instead of model.encode;"),
    ("dtype-not-implemented/cuda-addmm-long", "x.float(): the tensor is Long."),
    ("ipc-cuda-handle/rt-103", "used the tensors: CUDA answered 'invalid device context' when it opened"),
    (
        "nccl-version-mismatch/two-numbers",
        "on both nodes: rank 0 runs NCCL 22005, rank 8 21805 (22005 is 2.20.5).",
    ),
    ("gloo-peer-lost/rank1-left", "output of the rank at 127.0.0.1, which ended"),
    ("dist-child-failed/box-without-traceback", "Read the output of local rank 2 (process 4123)"),
    ("dist-store-lost/recv-2_6", "process at gpu-a, port 29500 (rank 0 or its"),
    ("nccl-timeout/monitored-barrier-two-ranks", "output of rank(s) 1, 3, which did not"),
    ("broadcast-shape/index-shapes", "(they have the shapes [3], [2]), or use x[i[:,"),
    ("checkpoint-class-missing/module-gone", "asks for the module 'oldproj', which cannot"),
    ("checkpoint-corrupt/plain-zip", "it holds readme.txt at the top"),
    (
        "checkpoint-size-mismatch/torch-0-4-while-copying",
        "fc.weight is [1000, 512] in the checkpoint and [10, 512]",
    ),
    (
        "compile-fp8-gpu/inductor",
        "Triton offers on this card, in your own kernels (fp8e5 is torch.float8_e5m2), not fp8e4nv.",
    ),
    ("compile-triton-ptxas/ptxas-error-class", "whose Triton knows sm_121a"),
    (
        "compile-triton-ptxas/smem-flex-backward",
        "triton_tem_fused_1 needs 131072 bytes, and this GPU has 101376",
    ),
    ("cudagraph-overwritten/dx-122", "(/home/user/world/models/st_block.py:57) returns, outside"),
    ("device-mismatch/sdpa", "query is on cuda:0, key on cpu, value on cpu"),
    ("device-mismatch/torch-0-4-type", "Move the LongTensor to the GPU,"),
    ("expected-ndim/permute", "has: the tensor has 2 axes and 3 are listed;"),
    ("grad-unused-input/latents", "depend on input number 0 (from 0)."),
    ("gradcheck-mismatch/float32", "the gradient of output 0 with respect to input 0"),
    ("inplace-modified/ag-030", "x += y: the tensor [torch.FloatTensor [1, 1024, 1, 1]] was at version"),
    ("invalid-device-string/misspelt", "torch.device('cuda:0'): 'gpu' is not a device"),
    ("jit-script-unsupported/wrong-type", "Argument 'shift' counts as Tensor (inferred) and is given int"),
    ("matmul-shape/dot", "dot: one vector has 3 elements, the other 5."),
    ("rnn-shape/cell-hidden", "hidden_size): the batch has 3 samples, the state 4."),
    ("optimizer-device/torch-1-6-sgd", "are on cpu and cuda:0."),
    ("anomaly-nan/ag-095", "Keep the argument of PowBackward0 away from zero,"),
    ("batchnorm-one-value/ag-001", "drop_last=True): a batch of shape [1, 256, 1, 1] leaves one value"),
    ("batchnorm-one-value/instance-norm", "instance norm has shape [1, 64, 1, 1], one element"),
    ("broadcast-shape/add", "10 and 12 meet in dimension 1"),
    ("broadcast-shape/attention-mask", "batch: it has shape [2, 2] and needs (3, 3), (queries, keys)."),
    ("broadcast-shape/bert-512", "a tensor of shape [1, 512] is to fill [1, 598]."),
    ("broadcast-shape/mask-index", "the mask has shape [6], the tensor [5, 4]; they differ at axis 0."),
    ("broadcast-shape/output-shape", "the result has shape [2, 3], the tensor it is written to [3]."),
    ("cat-shape/ag-017", "F.interpolate(x, size=skip.shape[-2:]) or padding: 7 and 6 differ in dimension"),
    (
        "cat-shape/skip-connection",
        "number 1 (from 0) to size 14 first, F.interpolate or padding: it has 15 outside dimension",
    ),
    ("cat-shape/zero-dim", "axis with unsqueeze(0): tensor 0 of"),
    ("checkpoint-corrupt/legacy-truncated", "saved: the file ends 2000 bytes too early."),
    ("checkpoint-device-index/ag-104", "map_location={'cuda:2': 'cuda:0'}"),
    ("checkpoint-missing-keys/whole-checkpoint-dict", "model.load_state_dict(torch.load(path)['model'])"),
    ("checkpoint-module-prefix/compiled", "sd = {k.removeprefix('_orig_mod.'): v for k, v in sd.items()}"),
    ("checkpoint-module-prefix/ag-118", "The names in the model begin with 'module.'"),
    ("checkpoint-newer-format/torch-1-4-version", "format version 3, and this torch reads up to 1"),
    ("checkpoint-size-mismatch/wider", "conv.weight is [96, 3, 3, 3] in the checkpoint and [64, 3, 3, 3] in"),
    (
        "checkpoint-weights-only/ag-061",
        "add_safe_globals([deepspeed.runtime.fp16.loss_scaler.LossScaler]) before torch.load",
    ),
    (
        "checkpoint-weights-only/torch-2-3-unsupported-class",
        "The file holds a numpy.core.multiarray._reconstruct, and this torch cannot allow a single class",
    ),
    ("checkpoint-weights-only/blocked-posix", "The file asks for posix.system of the module posix"),
    ("checkpoint-write-failed/no-directory", "os.makedirs('runs/exp7', exist_ok=True)"),
    (
        "collate-unequal-size/boxes-in-worker",
        "batch_first=True)): sample 0 has shape [1, 4], sample 1 has [2, 4].",
    ),
    ("conv-channels/compiled", "Image.open(f).convert('RGB'): it has 1 channel and the layer wants 3."),
    (
        "conv-channels/ag-009",
        "axis 1, x.permute(0, 3, 1, 2): the layer wants 3 channels and finds 361 in that place.",
    ),
    ("conv-kernel-larger/ag-083", "The padded map is (386 x 2), the kernel (3 x 3)."),
    ("cpu-alloc-failed/eight-terabytes", "go into the call: 7.13 TiB were asked for,"),
    (
        "cpu-alloc-failed/numpy-under-collate",
        "parts, if its shape (1024, 1220, 1220) is meant: as float64 it takes 11.40",
    ),
    ("cuda-assert-index-range/cpu-advanced-index", "Bring index 7 below 5, the size"),
    ("cuda-assert-label-range/cpu-target", "each class: label 10 needs more than"),
    ("cuda-oom-fragmentation/reserved-total-1-10", "10.12 GiB are free in torch's cache, but in pieces that"),
    (
        "cuda-oom-other-process/capacty-typo-2-1",
        "End process 21403, if it is yours: it holds 9.96 GiB of GPU 0 (in a container",
    ),
    ("cuda-oom-other-process/vllm-startup", "--gpu-memory-utilization below 9.12 / 79.18, or end what"),
    ("cuda-oom-too-big/cached-wording-windows", "accumulation steps: 6.52 GiB of 8.00 GiB are in tensors,"),
    (
        "cuda-oom-too-big/h100-oom-big",
        "image): the request of 200.00 GiB is larger than the card (79.18 GiB).",
    ),
    ("dataloader-slow-workers/rt-068", "Set num_workers=2 at most, divided"),
    ("ddp-shape-mismatch/count", "on every rank: rank 3 has 290 parameters,"),
    ("ddp-unused-parameters/dx-108", "wrapping: on rank 0 no gradient"),
    ("device-mismatch/ag-044", "one device: argument 'index' of the operation is on cuda:7, what it was"),
    ("dist-address-in-use/dx-059", "for this job, since 47531 is taken: --master-port"),
    ("dist-rendezvous-timeout/dx-045", "that are missing: 1 of 2 had joined after 601 seconds; one"),
    (
        "dist-rendezvous-timeout/store-barrier-1_11",
        "that are missing: 4 of 8 had come after 0:30:00; one often",
    ),
    ("driver-too-old/env-102", "This driver offers CUDA 11.4: install the torch build for CUDA 11.8"),
    ("dtype-mismatch/autocast-index-put", "here a Half value goes into a Float one"),
    ("expected-ndim/conv1d", "the input has shape [2, 3, 1, 100], and the layer takes 3D with a batch"),
    (
        "expected-ndim/dimension-out-of-range",
        "that a squeeze() took away: dimension 1 was asked of a tensor whose dimensions are -1 to 0.",
    ),
    (
        "gpu0-memory-imbalance/gpustat",
        "2 of another GPU also hold memory on GPU 0.",
    ),
    ("inplace-modified/ag-030", "x += y: the tensor [torch.FloatTensor [1, 1024, 1, 1]] was at version"),
    ("matmul-shape/ag-090", "for nn.Linear set in_features=768 (nn.Linear(768, 5120))"),
    ("mps-oom/gib-units-shared-pool", "torch holds 42.28 GiB of the 42.43 GiB it may take, and 384.00 MiB"),
    (
        "nccl-duplicate-gpu/dx-087",
        "torch.cuda.set_device(int(os.environ['LOCAL_RANK'])): ranks 3 and 2 share e2000.",
    ),
    ("nccl-timeout/dx-082", "waited 30 min for ALLREDUCE number 469508."),
    ("size-not-divisible/group-norm", "The input has shape [2, 48, 8, 8], and 32 groups do not divide"),
    ("optimizer-device/adam-resume-fused", "The state 'exp_avgs' is not where the parameters are"),
    ("rnn-shape/ag-020", "h0 = torch.zeros(1, 32, 256, device=x.device)"),
    ("scheduler-total-steps/onecycle", "accumulation): it was built for 4 steps and is at step 5."),
    ("target-shape/ag-003", "labels.flatten()): the loss got 79 predictions and 47 labels."),
    ("target-shape/bce-logits", "prediction has shape [4, 1], the target [4]."),
    ("torch-cpu-only/env-034", "torch 2.2.2+cpu is a CPU build"),
    (
        "view-invalid-shape/ag-041",
        "-1): the tensor has 33554432 elements, which do not make [16, 2048, 32, 128].",
    ),
]

COMMANDS = [
    ("cuda-oom-other-process/capacty-typo-2-1", "ps -o user,pid,lstart,cmd -p 21403"),
    ("dataloader-worker-killed/real-sigkill", "| grep -w 16079"),
    ("dist-address-in-use/dx-059", "ss -ltnp | grep :47531"),
    ("dist-address-in-use/windows-german", "netstat -ano | findstr :29500"),
    ("dist-rendezvous-timeout/client-socket", "nc -zv gpu-a.cluster 29500"),
    ("driver-too-old/env-102", "https://download.pytorch.org/whl/cu118"),
    ("host-oom-killed/rt-008", "| grep -w 1795"),
]

# advice that a value of the message rules out
LEFT_OUT = [
    ("checkpoint-weights-only/torchscript", "weights_only=False"),
    ("checkpoint-weights-only/blocked-posix", "weights_only=False"),
    ("compile-triton-ptxas/bf16-on-t4", "halve BLOCK_M"),
    ("grad-non-scalar/ag-068", "Take the real part"),
    ("checkpoint-weights-only/blocked-posix", "weights_only=False"),
    ("checkpoint-corrupt/empty-file", "git-lfs"),
    ("checkpoint-corrupt/empty-file", "web page"),
    ("cuda-assert-label-range/cpu-target", "ignore_index=10"),
    ("cuda-oom-too-big/cached-wording-windows", "set_per_process_memory_fraction"),
    ("cuda-oom-too-big/h100-oom-big", "Halve the batch size"),
    ("dist-address-in-use/windows-german", "ss -ltnp"),
    ("item-multi/empty", "Reduce first"),
    ("mps-oom/invalid-buffer-size", "PYTORCH_MPS_HIGH_WATERMARK_RATIO"),
]


# two cases of each rule in whose fixtures a value makes another fix the first
FIRST = [
    tuple(line.split("\t"))
    for line in (Path(__file__).parent / "first_fix.tsv").read_text("utf-8").splitlines()
]


def _fixes(case: str, rules: RuleSet) -> tuple[Fix, ...]:
    report = diagnose(transcript(catalogued()[case]), FactBook(None), rules)
    found = [diagnosis for diagnosis in report.diagnoses if diagnosis.rule == case.partition("/")[0]]
    assert found, f"{case} is not diagnosed as its own rule"
    return found[0].fixes


@pytest.mark.parametrize(("case", "sentence"), SENTENCES)
def test_a_fix_says_the_values_of_the_message(case: str, sentence: str, rules: RuleSet) -> None:
    assert [fix.do for fix in _fixes(case, rules) if sentence in fix.do], [
        fix.do for fix in _fixes(case, rules)
    ]


def test_what_runs_code_of_the_file_stands_last_and_says_so(rules: RuleSet) -> None:
    fixes = _fixes("checkpoint-weights-only/ag-061", rules)
    risks = ["weights_only=False" in fix.do or "NO_WEIGHTS_ONLY" in (fix.run or "") for fix in fixes]
    assert risks == sorted(risks)
    assert any(risks)
    assert [fix.risk == "runs-code" for fix in fixes] == risks


@pytest.mark.parametrize(("case", "start"), FIRST)
def test_a_value_chooses_the_first_fix(case: str, start: str, rules: RuleSet) -> None:
    assert _fixes(case, rules)[0].do.startswith(start)


@pytest.mark.parametrize(("case", "command"), COMMANDS)
def test_a_command_holds_the_values_of_the_message(case: str, command: str, rules: RuleSet) -> None:
    assert any(command in (fix.run or "") for fix in _fixes(case, rules))


@pytest.mark.parametrize(("case", "words"), LEFT_OUT)
def test_advice_that_a_value_rules_out_is_not_shown(case: str, words: str, rules: RuleSet) -> None:
    assert not [fix for fix in _fixes(case, rules) if words in fix.do or words in (fix.run or "")]


@pytest.mark.parametrize(
    ("milliseconds", "words"),
    [(900, "900 ms"), (60_000, "60 s"), (600_000, "10 min"), (1_800_000, "30 min"), (9_000_000, "2.5 h")],
)
def test_durations(milliseconds: int, words: str) -> None:
    assert duration(milliseconds) == words
