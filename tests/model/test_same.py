"""Records as keys by identity."""

from dataclasses import replace

from explorer.model.same import Same
from explorer.model.traffic import run_traffic
from tests.fixtures_runs import eager_attention


def test_an_equal_record_is_another_key() -> None:
    run = eager_attention()
    twin = replace(run)
    assert run == twin
    assert Same(run) == Same(run)
    assert hash(Same(run)) == hash(Same(run))
    assert Same(run) != Same(twin)
    assert Same(run) != run


def test_traffic_is_added_up_once_a_run() -> None:
    run = eager_attention()
    assert run_traffic(run) is run_traffic(run)
    assert run_traffic(replace(run, launches=run.launches[:1])) != run_traffic(run)
