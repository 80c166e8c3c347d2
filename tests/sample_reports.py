"""Reports made by hand, as the engine makes them, for the tests of the renderers."""

from __future__ import annotations

from torchdoctor.model import (
    Blame,
    CheckResult,
    Diagnosis,
    Evidence,
    Fact,
    FirstFailure,
    Fix,
    Frame,
    Incident,
    Link,
    NotChecked,
    Outcome,
    Reading,
    ReadingKind,
    Reason,
    Report,
    Role,
    Run,
    Severity,
    Standing,
    Suspect,
    Verdict,
)

ASSERT_LINE = (
    "../aten/src/ATen/native/cuda/Loss.cu:250: nll_loss_forward_reduce_cuda_kernel_2d: block: [0,0,0], "
    "thread: [4,0,0] Assertion `t >= 0 && t < n_classes` failed."
)

LABEL_RANGE = Diagnosis(
    rule="cuda-assert-label-range",
    family="cuda-runtime",
    title="A class label lies outside [0, num_classes)",
    severity=Severity.FATAL,
    role=Role.CAUSE,
    standing=Standing.CONFIRMED,
    why="The loss kernel reads one logit per label.\nA label that is negative has none.",
    rank=3,
    frame=Frame(
        "/home/me/project/train.py", 22, "training_step", "    loss = F.cross_entropy(logits, labels)"
    ),
    evidence=(
        Evidence(ASSERT_LINE, "train.log", 812, 3),
        Evidence("assert.kernel = nll_loss_forward", fact="assert.kernel"),
    ),
    missing=("torch.version (not-asked)",),
    leads_to=(
        Link(
            "cuda-assert-other",
            "A CUDA assertion stopped a kernel",
            Evidence("RuntimeError: CUDA error: device-side assert triggered", "train.log", 830, 3),
            3,
        ),
        Link(
            "nccl-timeout",
            "A collective operation timed out",
            Evidence("[Rank 0] Watchdog caught collective operation timeout: WorkNCCL", "train.log", 1990),
            0,
        ),
    ),
    fixes=(
        Fix("Bring the labels into 0 … num_classes - 1, or raise num_classes."),
        Fix("Reinstall torch.", "pip install 'torch==2.13.0'", "changes-environment"),
    ),
    decide_with="CUDA_LAUNCH_BLOCKING=1 python train.py",
    references=("https://docs.pytorch.org/docs/stable/notes/cuda.html",),
    reasons=("the message belongs only to this cause",),
)

OUT_OF_MEMORY = Diagnosis(
    rule="cuda-oom-capacity",
    family="memory",
    title="The model and its activations do not fit into the GPU",
    severity=Severity.FATAL,
    role=Role.CAUSE,
    standing=Standing.POSSIBLE,
    evidence=(Evidence("CUDA out of memory. Tried to allocate 2.00 GiB", "train.log", 5),),
)

DIAGNOSED = Report(
    Outcome.DIAGNOSED,
    ("train.log",),
    (LABEL_RANGE, OUT_OF_MEMORY),
    first_failure=FirstFailure(3, "node12", "2026-05-01T12:00:01.250+02:00", "time stamps"),
    notes=("The log ends in the middle of a line.",),
    facts=(
        Fact.known("torch.version", "2.13.0", "text:train.log:1"),
        Fact.absent("env.CUDA_VISIBLE_DEVICES", "environment"),
        Fact.unknown("driver.version", Reason.NOT_PERMITTED),
        Fact.known("torch.arch_list", ("sm_80", "sm_90")),
        Fact.known("gpu.others_memory_share", float("nan")),
    ),
)

UNRECOGNISED = Report(
    Outcome.UNRECOGNISED,
    ("train.log",),
    suspect=Suspect(
        "BrokenWidgetError",
        "the widget broke\nin two",
        1,
        Frame("widget.py", 3, "turn", "raise BrokenWidgetError()"),
        Evidence("BrokenWidgetError: the widget broke", "train.log", 7, 1),
        reading=Reading(ReadingKind.LIBRARY_REFUSED, "widgets", "widgets.core.turn", "3-D", "2-D"),
    ),
    first_failure=FirstFailure(0, None, None, "order of lines only", (0, 1)),
    runs=(
        Run(1, "train.log", 1, 6, "2026-03-09T03:12:00", Outcome.DIAGNOSED, "cuda-assert-label-range"),
        Run(2, "train.log", 7, 9, None, Outcome.UNRECOGNISED),
    ),
    incidents=(
        Incident(("train.log",), Outcome.UNRECOGNISED),
        Incident(
            ("other.log",), Outcome.DIAGNOSED, (LABEL_RANGE,), FirstFailure(3, None, None, "time stamps")
        ),
    ),
)


NO_FAILURE = Report(Outcome.NO_FAILURE, ("train.log",), notes=("A warning that means nothing.",))

UNREADABLE = Report(Outcome.UNREADABLE, ("gone.log",), notes=("gone.log: no such file",))

CHECKED = Report(
    Outcome.NO_FAILURE,
    checks=(
        CheckResult("driver", Verdict.WARN, "The driver is old", Blame.NODE, "525", "550", "release notes"),
        CheckResult("shm", Verdict.UNKNOWN, "Shared memory", reason="not-permitted"),
    ),
    not_checked=(NotChecked("nccl", "one GPU"),),
)

ALL = {
    "diagnosed": DIAGNOSED,
    "unrecognised": UNRECOGNISED,
    "no-failure": NO_FAILURE,
    "unreadable": UNREADABLE,
    "checked": CHECKED,
    "empty": Report(Outcome.NO_FAILURE),
}
