"""Parts that runs have alike are kept once; the runs stay equal to what they were."""

from dataclasses import replace

from explorer.model.codec import from_plain, to_plain
from explorer.model.opgraph import GraphBreak
from explorer.model.run import Run
from explorer.model.sharing import Sharing
from tests.fixtures_runs import compiled_attention, eager_attention


def read_anew(run: Run) -> Run:
    """As it comes from a file or a worker: equal, and nothing of it the same object."""
    read = from_plain(Run, to_plain(run))
    assert isinstance(read, Run)
    return read


def test_a_second_run_of_a_setting_takes_its_parts_from_the_first() -> None:
    sharing = Sharing()
    first, second = (sharing.shared(read_anew(eager_attention())) for _ in range(2))
    assert first == second == eager_attention()
    assert second.graph is first.graph
    assert second.tensors is first.tensors
    for mine, others in zip(second.launches, first.launches, strict=True):
        assert mine.accesses is others.accesses
        assert mine.kernel is others.kernel
    compiled = sharing.shared(read_anew(compiled_attention()))
    assert compiled == compiled_attention()


def test_what_torch_said_of_a_break_stays_with_its_run() -> None:
    sharing = Sharing()
    runs = [
        sharing.shared(
            replace(
                eager_attention(),
                graph=replace(
                    eager_attention().graph,
                    breaks=(GraphBreak(place="f.py:1", reason="print", raw=said),),
                ),
            )
        )
        for said in ("once", "twice")
    ]
    assert [run.graph.breaks[0].raw for run in runs] == ["once", "twice"]
