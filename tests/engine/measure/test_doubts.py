"""Sentences about doubtful times."""

import dataclasses

from explorer.engine.measure.doubts import timing_doubts
from explorer.model.device import Clocks
from explorer.model.run import Clock, Samples, Timing

COLD = Samples(
    samples_us=(1.0, 2.0, 3.0), median_us=2.0, q1_us=1.9, q3_us=2.1, n=3, clock=Clock.EVENTS
)


def at(*speeds_mhz: int | None, reason: str = "power cap") -> Timing:
    clocks = (Clocks(sm_mhz=speed, throttle_reasons=("idle", reason)) for speed in speeds_mhz)
    return Timing(cold=COLD, clocks=(*clocks, Clocks(sm_mhz=speeds_mhz[0])))


def test_a_narrow_time_at_full_clock_needs_no_word() -> None:
    assert timing_doubts(Timing(cold=COLD, launch_total_us=1.9)) == ()
    assert timing_doubts(Timing()) == ()


def test_a_wide_spread_is_said() -> None:
    [sentence] = timing_doubts(Timing(cold=dataclasses.replace(COLD, q1_us=1.5, q3_us=2.5)))
    assert sentence.startswith("The times spread widely")


def test_clocks_held_down_are_said_with_how_far() -> None:
    [sentence] = timing_doubts(at(1770, 1905), full_sm_mhz=1980)
    assert sentence == (
        "The clocks were held down while timing (power cap): the SMs ran at 1,770 to 1,905 of "
        "1,980 MHz, so the times are longer than at full clock."
    )
    [sentence] = timing_doubts(at(1770))
    assert "ran at 1,770 MHz" in sentence
    assert timing_doubts(at(None)) == ("The clocks were held down while timing (power cap).",)


def test_a_cap_that_costs_no_clock_and_harmless_reasons_are_not_said() -> None:
    assert timing_doubts(at(1980), full_sm_mhz=1980) == ()
    assert timing_doubts(at(1200, reason="application clocks setting"), full_sm_mhz=1980) == ()


def test_a_gpu_that_waits_for_its_host_is_said() -> None:
    cold = dataclasses.replace(COLD, median_us=275.0, q1_us=270.0, q3_us=280.0)
    assert timing_doubts(Timing(cold=cold, launch_total_us=180.0)) != ()
    starved = Timing(cold=cold, launch_total_us=26.5)
    [sentence] = timing_doubts(starved)
    assert sentence.startswith("The GPU worked for 26.5 µs of the 275 µs and waited for the host")
    on_cpu = dataclasses.replace(cold, clock=Clock.HOST)
    assert timing_doubts(dataclasses.replace(starved, cold=on_cpu)) == ()
    assert timing_doubts(dataclasses.replace(starved, launch_total_us=200.0)) == ()
