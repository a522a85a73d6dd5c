"""One sentence for each refusal, with a remedy that is fit to follow."""

import re

import pytest

from explorer.engine.cupti.errors import refusal

# The refusals that CUPTI's header names for profiling, and what the remedy must contain.
REMEDIES = {
    1: "another CUPTI",
    26: "close Nsight Compute",
    27: "Turing",
    33: "use a whole GPU",
    35: "NVreg_RestrictProfilingToAdminUsers=0",
    38: "newer CUPTI",
    39: "run without ncu, nsys or cuda-gdb",
    40: "enable_profiling=1",
    41: "that mode off",
    42: "use another GPU",
    43: "turn MIG off",
    44: "turn SLI off",
    45: "wsl --update",
    46: "newer CUPTI",
    47: "stop MPS",
    999: "libnvperf_host.so",
}


@pytest.mark.parametrize(("code", "remedy"), REMEDIES.items())
def test_a_refusal_is_one_sentence_with_its_remedy(code: int, remedy: str) -> None:
    refused = refusal(code, "cuptiRangeProfilerEnable", "13.0", wsl=False, admin_only=True)
    assert refused.code == code
    assert refused.call == "cuptiRangeProfilerEnable"
    assert str(refused) == refused.sentence
    assert refused.sentence.startswith("DRAM bytes are not counted: ")
    assert refused.sentence.endswith(f"(CUPTI result {code}).")
    assert remedy in refused.sentence
    # one sentence: no full stop followed by another, but release numbers are fine
    assert not re.search(r"\.\s", refused.sentence)


@pytest.mark.parametrize("wsl", [True, False])
@pytest.mark.parametrize("admin_only", [True, False])
def test_no_result_lacks_a_sentence_or_asks_for_more_rights(wsl: bool, admin_only: bool) -> None:
    for code in range(1, 1000):
        refused = refusal(code, "cuptiProfilerInitialize", "13.0", wsl=wsl, admin_only=admin_only)
        assert len(refused.sentence) > 60
        assert not any(word in refused.sentence for word in ("{", "root", "sudo"))


def test_on_wsl_the_remedy_is_on_the_windows_side() -> None:
    refused = refusal(35, "cuptiRangeProfilerEnable", "13.0", wsl=True, admin_only=None)
    assert "NVIDIA Control Panel" in refused.sentence
    assert "Manage GPU Performance Counters" in refused.sentence
    assert "modprobe" not in refused.sentence


def test_where_the_driver_allows_all_users_the_container_is_named() -> None:
    refused = refusal(35, "cuptiRangeProfilerEnable", "13.0", wsl=False, admin_only=False)
    assert "RmProfilingAdminOnly is 0" in refused.sentence
    assert "modprobe" not in refused.sentence


def test_an_unknown_release_that_refuses_its_arguments_is_named() -> None:
    refused = refusal(1, "cuptiRangeProfilerEnable", "14.2", known_release=False)
    assert "CUPTI 14.2 is newer than" in refused.sentence
    other = refusal(26, "cuptiRangeProfilerEnable", "14.2", known_release=False)
    assert "is newer than" not in other.sentence
