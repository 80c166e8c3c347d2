"""What the report of load_state_dict says: the two lists of names, the prefix between them, the shapes."""

from __future__ import annotations

from typing import Any

import pytest

from torchdoctor.extract import of_event, state_dict
from torchdoctor.model import Event, EventKind, State, Transcript

HEAD = "Error(s) in loading state_dict for {}:\n\t"


def facts_of(text: str) -> dict[str, Any]:
    """Values of the known facts; absent ones are None, those not told are left out."""
    event = Event(0, EventKind.EXCEPTION, text, "log.txt", 7, 9, type="RuntimeError")
    found = {}
    for fact in of_event("state_dict", event, Transcript(("log.txt",), (event,))):
        assert fact.source == "text:log.txt:7"
        assert fact.name in state_dict.FACTS
        found[fact.name.removeprefix("state_dict.")] = fact.value if fact.state is State.KNOWN else None
    return found


def report(missing: list[str], unexpected: list[str], model: str = "Net", tail: str = "") -> str:
    lines = []
    if missing:
        lines.append("Missing key(s) in state_dict: " + ", ".join(f'"{name}"' for name in missing) + ". ")
    if unexpected:
        lines.append(
            "Unexpected key(s) in state_dict: " + ", ".join(f'"{name}"' for name in unexpected) + ". "
        )
    return HEAD.format(model) + "\n\t".join(lines) + tail


NAMES = ["conv.weight", "conv.bias", "bn.weight", "bn.running_mean", "fc.weight", "fc.bias"]


@pytest.mark.parametrize("prefix", ["module.", "_orig_mod.", "_forward_module.", "model.", "backbone.net."])
def test_a_prefix_before_every_name_of_the_checkpoint(prefix: str) -> None:
    found = facts_of(report(NAMES, [prefix + name for name in [*NAMES, "bn.num_batches_tracked"]]))
    assert found["prefix"] == prefix
    assert found["prefix_on"] == "checkpoint"
    assert found["prefix_only"] is True
    assert found["prefix_share"] == 1.0
    assert found["other_architecture"] is False
    assert found["missing_count"] == 6


def test_the_prefix_may_stand_on_the_side_of_the_model() -> None:
    found = facts_of(report(["module." + name for name in NAMES], NAMES, "DataParallel"))
    assert (found["prefix"], found["prefix_on"], found["prefix_only"]) == ("module.", "model", True)
    assert found["model"] == "DataParallel"


def test_a_wrapper_inside_the_names() -> None:
    found = facts_of(report(["body." + name for name in NAMES], ["body._orig_mod." + name for name in NAMES]))
    assert (found["prefix"], found["prefix_only"]) == ("_orig_mod.", True)


def test_one_wrapper_in_place_of_another() -> None:
    found = facts_of(report(["model." + name for name in NAMES], ["module." + name for name in NAMES]))
    assert (found["prefix"], found["prefix_on"], found["prefix_only"]) == ("module.", "checkpoint", True)


def test_a_renamed_layer_is_no_prefix() -> None:
    found = facts_of(report(["fc.weight", "fc.bias"], ["head.weight", "head.bias"]))
    assert found["prefix_only"] is False
    assert found["prefix"] is None
    assert found["prefix_share"] == 0.0


def test_a_prefix_that_leaves_names_over_is_not_all() -> None:
    found = facts_of(report(NAMES, ["module." + name for name in [*NAMES, "aux.weight", "aux.bias"]]))
    assert found["prefix"] == "module."
    assert found["prefix_only"] is False
    assert found["prefix_share"] == 1.0


def test_half_the_names_explained_gives_the_share() -> None:
    missing = [*NAMES, *(f"extra{number}.weight" for number in range(6))]
    found = facts_of(report(missing, ["module." + name for name in NAMES]))
    assert found["prefix_only"] is False
    assert found["prefix_share"] == 0.5


def test_lists_that_were_cut_are_compared_as_far_as_they_go() -> None:
    text = HEAD.format("Net") + 'Missing key(s) in state_dict: "a.weight", "a.bias", "b.weight", "b.bi'
    text += '\n\tUnexpected key(s) in state_dict: "module.a.weight", "module.a.bias", "module.b.weight", ...'
    found = facts_of(text)
    assert found["prefix_only"] is True
    assert found["missing"] == ("a.weight", "a.bias", "b.weight")


def test_names_and_shapes_differ_in_another_architecture() -> None:
    tail = (
        "\n\tsize mismatch for a.norm.weight: copying a param with shape torch.Size([96]) from checkpoint,"
        " the shape in current model is torch.Size([48])."
    )
    found = facts_of(report(["back.0.weight"], ["back.weight"], tail=tail))
    assert found["other_architecture"] is True
    assert found["mismatch_count"] == 1


def mismatch(name: str, one: list[int], two: list[int]) -> str:
    return (
        f"size mismatch for {name}: copying a param with shape torch.Size({one}) from checkpoint, "
        f"the shape in current model is torch.Size({two})."
    )


def test_shapes_alone_are_no_other_architecture() -> None:
    shapes = mismatch("fc.weight", [1000, 512], [7, 512]) + mismatch("fc.bias", [1000], [7])
    found = facts_of(HEAD.format("ResNet") + shapes)
    assert found["other_architecture"] is False
    assert found["mismatch_first_dim"] is True
    assert found["mismatch_embedding"] is False
    assert found["missing_count"] == 0
    assert found["prefix_only"] is False


def test_a_grown_vocabulary() -> None:
    shapes = mismatch("model.embed_tokens.weight", [128257, 4096], [128256, 4096])
    found = facts_of(HEAD.format("Llama") + shapes)
    assert found["mismatch_embedding"] is True


def test_wider_layers_are_no_grown_vocabulary() -> None:
    found = facts_of(HEAD.format("Llama") + mismatch("model.embed_tokens.weight", [100, 64], [100, 32]))
    assert found["mismatch_first_dim"] is False
    assert found["mismatch_embedding"] is False


def test_the_wording_of_torch_0_4_1() -> None:
    found = facts_of(
        HEAD.format("Net")
        + "size mismatch for fc.weight: copying a param of torch.Size([10, 4]) from checkpoint, "
        "where the shape is torch.Size([5, 4]) in current model."
    )
    assert (found["mismatch_count"], found["mismatch_first_dim"]) == (1, True)


def test_a_whole_training_checkpoint_was_passed() -> None:
    found = facts_of(report(NAMES, ["epoch", "optimizer", "model", "best_acc"]))
    assert found["wrapped_in"] == "model"
    assert found["prefix_only"] is False


def test_parameters_without_a_dot_are_no_training_checkpoint() -> None:
    assert facts_of(report(["weight"], ["model", "fc.bias"]))["wrapped_in"] is None


def test_key_errors_of_torch_0_3() -> None:
    found = facts_of("'unexpected key \"module.conv1.weight\" in state_dict'")
    assert (found["prefix"], found["prefix_on"], found["prefix_only"]) == ("module.", "checkpoint", True)
    found = facts_of("'missing keys in state_dict: \"{\\'fc.bias\\', \\'fc.weight\\'}\"'")
    assert found["missing_count"] == 2
    assert found["prefix_only"] is False


def test_a_name_broken_by_a_narrow_box_is_put_together() -> None:
    names = 'Missing key(s) in state_dict: "encoder.layers.0.self_\n  attn.weight". '
    found = facts_of(HEAD.format("Net") + names)
    assert found["missing"] == ("encoder.layers.0.self_attn.weight",)


def test_escaped_quotes_of_a_json_log() -> None:
    found = facts_of(HEAD.format("Net") + 'Unexpected key(s) in state_dict: \\"aux.weight\\". ')
    assert found["unexpected"] == ("aux.weight",)


@pytest.mark.parametrize(
    "text", ["CUDA out of memory", "loading state_dict from a.pt", "size mismatch, m1: [4 x 3], m2: [2 x 5]"]
)
def test_other_messages_give_no_facts(text: str) -> None:
    assert facts_of(text) == {}


def test_thousands_of_names_take_no_time() -> None:
    names = [f"layers.{number}.attn.weight" for number in range(4000)]
    found = facts_of(report(names, ["module." + name for name in names]))
    assert found["prefix_only"] is True
    assert len(found["missing"]) == state_dict.KEEP


def test_many_possible_prefixes_take_no_time() -> None:
    missing = ["weight", "bias", *(f"layers.{number}.weight" for number in range(3000))]
    found = facts_of(report(missing, [f"other.{number}.weight" for number in range(3000)]))
    assert found["prefix_only"] is False


def test_a_report_whose_lines_became_events_of_their_own() -> None:
    texts = [
        "Error(s) in loading state_dict for Net:",
        'Missing key(s) in state_dict: "a.weight", "a.bias". ',
        'Unexpected key(s) in state_dict: "module.a.weight", "module.a.bias". ',
        "worker stopped",
    ]
    events = tuple(Event(n, EventKind.LOG, text, "log.txt", n + 1, n + 1) for n, text in enumerate(texts))
    transcript = Transcript(("log.txt",), events)
    for event in events[:3]:
        found = {fact.name: fact.value for fact in of_event("state_dict", event, transcript)}
        assert found["state_dict.prefix_only"] is True
        assert found["state_dict.model"] == "Net"
    assert list(of_event("state_dict", events[3], transcript)) == []


def test_the_lists_of_another_rank_are_left_alone() -> None:
    one = Event(0, EventKind.LOG, 'Missing key(s) in state_dict: "a.weight". ', "log.txt", 1, 1, rank=0)
    two = Event(1, EventKind.LOG, 'Unexpected key(s) in state_dict: "b.c". ', "log.txt", 2, 2, rank=1)
    transcript = Transcript(("log.txt",), (one, two))
    found = {fact.name: fact.value for fact in of_event("state_dict", one, transcript)}
    assert found["state_dict.unexpected"] == ()


@pytest.mark.parametrize(("model", "prefix"), [("Net", "module."), ("DataParallel", None)])
def test_a_wrapper_word_on_all_names_of_one_list_says_nothing_of_a_parallel_model(
    model: str, prefix: str | None
) -> None:
    found = facts_of(report([], ["module.bn.weight", "module.bn.bias", "module.fc.weight"], model))
    assert found["prefix"] == prefix
