"""Fixes say the numbers and names of the message, each read out of a fixture as a user would send it."""

from __future__ import annotations

import pytest
from case_files import catalogued

from torchdoctor import catalog
from torchdoctor.catalog import RuleSet
from torchdoctor.engine import FactBook, diagnose
from torchdoctor.engine.wording import duration
from torchdoctor.model import Fix
from torchdoctor.workbench.case import transcript

SENTENCES = [
    ("ipc-cuda-handle/rt-103", "CUDA answered 'invalid device context' when the receiver"),
    ("cpu-instruction-missing/unseen10-041", "names the library that held the instruction: libtorch_cpu.so"),
    ("ddp-ready-twice/named-parameter", "It is parameter module.enc.w"),
    ("ddp-shape-mismatch/strides", "Only the strides differ"),
    ("nccl-version-mismatch/two-numbers", "Rank 0 runs NCCL 22005 and rank 8 runs 21805"),
    ("gloo-peer-lost/rank1-left", "The rank at 127.0.0.1 ended first"),
    (
        "gloo-connect/windows-uv-refused",
        "A rank announced itself as 127.0.1.1 and did not answer there (port 16783)",
    ),
    ("dist-child-failed/box-without-traceback", "Read the output of local rank 2 (process 4123)"),
    ("dist-store-lost/recv-2_6", "The store was at gpu-a, port 29500"),
    ("nccl-timeout/monitored-barrier-two-ranks", "Rank(s) 1, 3 did not reach the barrier"),
    ("broadcast-shape/index-shapes", "The index tensors have the shapes [3], [2]:"),
    (
        "checkpoint-class-missing/module-gone",
        "The file asks for the module 'oldproj', which cannot be imported",
    ),
    ("checkpoint-corrupt/plain-zip", "it holds readme.txt at the top"),
    (
        "checkpoint-size-mismatch/torch-0-4-while-copying",
        "fc.weight is [1000, 512] in the checkpoint and [10, 512]",
    ),
    ("compile-fp8-gpu/inductor", "Triton offers 'fp8e4b15', 'fp8e5' on this card, not fp8e4nv"),
    ("compile-triton-ptxas/ptxas-error-class", "ptxas does not know sm_121a"),
    (
        "compile-triton-ptxas/smem-flex-backward",
        "triton_tem_fused_1 needs 131072 bytes, and this GPU has 101376",
    ),
    ("cudagraph-overwritten/dx-122", "was made in forward (/home/user/world/models/st_block.py:57)"),
    ("device-mismatch/sdpa", "query is on cuda:0, key on cpu, value on cpu"),
    ("device-mismatch/torch-0-4-type", "A LongTensor is on the CPU and meets a torch.cuda.LongTensor"),
    ("expected-ndim/permute", "The tensor has 2 axes and 3 are listed"),
    ("grad-unused-input/latents", "Input number 0 of the list (counted from 0)"),
    ("gradcheck-mismatch/float32", "the gradient of output 0 with respect to input 0"),
    ("inplace-modified/ag-030", "The tensor [torch.FloatTensor [1, 1024, 1, 1]] was at version 1 when"),
    ("invalid-device-string/misspelt", "'gpu' is no device type"),
    ("jit-script-unsupported/wrong-type", "Argument 'shift' counts as Tensor (inferred) and is given int"),
    ("matmul-shape/dot", "One vector has 3 elements, the other 5"),
    ("rnn-shape/cell-hidden", "The batch has 3 samples, the state 4"),
    ("optimizer-device/torch-1-6-sgd", "are on cpu and cuda:0: move the state"),
    ("anomaly-nan/ag-095", "PowBackward0 has no finite derivative here"),
    ("batchnorm-one-value/ag-001", "A batch of shape [1, 256, 1, 1] leaves one value per channel."),
    ("batchnorm-one-value/instance-norm", "The map that reached instance norm has shape [1, 64, 1, 1]"),
    ("broadcast-shape/add", "10 and 12 meet in dimension 1"),
    ("broadcast-shape/attention-mask", "The attention mask has shape [2, 2] and has to have (3, 3)"),
    ("broadcast-shape/bert-512", "A tensor of shape [1, 512] is to fill a place of shape [1, 598]"),
    ("broadcast-shape/mask-index", "The mask has shape [6], the tensor [5, 4]; they differ at axis 0."),
    ("broadcast-shape/output-shape", "The result has shape [2, 3], the tensor it is written to [3]"),
    ("cat-shape/ag-017", "In dimension 2 one tensor has 7 and another 6; only dimension 1"),
    (
        "cat-shape/skip-connection",
        "Tensor number 1 of the list (counted from 0) has size 15 where the first has 14",
    ),
    ("cat-shape/zero-dim", "Tensor 0 of the list is a single number"),
    ("checkpoint-corrupt/legacy-truncated", "The file ends 2000 bytes too early"),
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
    ("collate-unequal-size/boxes-in-worker", "Sample 0 of the batch has shape [1, 4], sample 1 has [2, 4]."),
    ("conv-channels/compiled", "The image has 1 channel and the layer wants 3"),
    ("conv-channels/ag-009", "The layer wants 3 channels and finds 361 in that place"),
    ("conv-kernel-larger/ag-083", "The padded map is (386 x 2), the kernel (3 x 3)."),
    ("cpu-alloc-failed/eight-terabytes", "7.13 TiB were asked for: the size is a mistake"),
    ("cpu-alloc-failed/numpy-under-collate", "An array of shape (1024, 1220, 1220) and type float64"),
    (
        "cuda-assert-index-range/cpu-advanced-index",
        "Index 7 was used on a dimension of size 5: valid are 0 to",
    ),
    ("cuda-assert-label-range/cpu-target", "Label 10 was met, so the last layer has at most 10 outputs"),
    ("cuda-oom-fragmentation/reserved-total-1-10", "10.12 GiB are free in torch's cache, but in pieces that"),
    ("cuda-oom-other-process/capacty-typo-2-1", "Process 21403 holds 9.96 GiB of GPU 0"),
    ("cuda-oom-other-process/vllm-startup", "9.12 of 79.18 GiB were free when the server started"),
    ("cuda-oom-too-big/cached-wording-windows", "The GPU has 8.00 GiB: 6.52 GiB hold tensors of this"),
    ("cuda-oom-too-big/h100-oom-big", "The request of 200.00 GiB alone is larger than the card (79.18 GiB)"),
    ("dataloader-slow-workers/rt-068", "Set num_workers=2 at most, divided by the ranks on the machine."),
    ("dataparallel-attribute/colab-dp", "Write model.module.encode instead of model.encode."),
    ("ddp-shape-mismatch/count", "Rank 3 has 290 parameters"),
    ("ddp-unused-parameters/dx-108", "On rank 0 no gradient came to encoder.net.base_model.model.pooler"),
    (
        "device-mismatch/ag-044",
        "Argument 'index' of the operation is on cuda:7, what it was compared with is on",
    ),
    ("dist-address-in-use/dx-059", "Port 47531 is taken."),
    ("dist-rendezvous-timeout/dx-045", "1 of 2 processes had joined after 601 seconds."),
    ("dist-rendezvous-timeout/store-barrier-1_11", "4 of 8 processes had come after 0:30:00."),
    ("driver-too-old/env-102", "This driver offers CUDA 11.4: install the torch build for CUDA 11.8"),
    ("dtype-mismatch/autocast-index-put", "here a Half value goes into a Float one"),
    ("dtype-not-implemented/cuda-addmm-long", "The tensor is Long: convert it before the operation"),
    ("expected-ndim/conv1d", "The input has shape [2, 3, 1, 100], and the layer takes 3D with a batch axis"),
    (
        "expected-ndim/dimension-out-of-range",
        "Dimension 1 was asked of a tensor whose dimensions are -1 to 0",
    ),
    ("gpu0-memory-imbalance/gpustat", "2 processes that work on another GPU also hold memory on GPU 0."),
    (
        "inplace-modified/ag-030",
        "The tensor [torch.FloatTensor [1, 1024, 1, 1]] was at version 1 when backward",
    ),
    ("matmul-shape/ag-090", "for nn.Linear set in_features=768 (nn.Linear(768, 5120))"),
    ("mps-oom/gib-units-shared-pool", "torch holds 42.28 GiB of the 42.43 GiB it may take, and 384.00 MiB"),
    ("nccl-duplicate-gpu/dx-087", "Ranks 3 and 2 are both on the card at PCI address e2000."),
    ("nccl-timeout/dx-082", "waited 30 min for ALLREDUCE number 469508."),
    ("size-not-divisible/group-norm", "The input has shape [2, 48, 8, 8], and 32 groups do not divide"),
    ("optimizer-device/adam-resume-fused", "The state 'exp_avgs' is not where the parameters are"),
    ("rnn-shape/ag-020", "h0 = torch.zeros(1, 32, 256, device=x.device)"),
    ("scheduler-total-steps/onecycle", "It was built for 4 steps and is at step 5."),
    ("target-shape/ag-003", "The loss got 79 predictions and 47 labels."),
    ("target-shape/bce-logits", "The prediction has shape [4, 1], the target [4]."),
    ("torch-cpu-only/env-034", "torch 2.2.2+cpu is a CPU build"),
    ("view-invalid-shape/ag-041", "The tensor has 33554432 elements, which do not make [16, 2048, 32, 128]."),
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


@pytest.fixture(scope="module")
def rules() -> RuleSet:
    return catalog.load()


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
