"""The text of a small Python module that applies a run's fusion plan in anyone's program.

A run may come from a file of unknown origin, and the module is Python that somebody starts: what
the run says stands in it as text only.
"""

import json
import re
import textwrap
from collections.abc import Iterator

from explorer.model.aten_names import check_aten_plan, in_aten_names
from explorer.model.comparison import headline
from explorer.model.errors import UsageError
from explorer.model.fusion import BETWEEN, WITHIN, parse_plan
from explorer.model.run import Direction, Run
from explorer.model.strategies import PLAN
from explorer.model.traffic import run_traffic
from explorer.model.units import format_bytes, format_us

MODULE_SUFFIX = ".py"
WIDTH = 96
_NOT_PLAIN = re.compile(r"[^ -!#-\[\]-~\u00a1-\u024f\u0370-\u03ff\u2010-\u2027\u2200-\u22ff]")
"""What a docstring must not hold as it is: quotes, backslashes, line breaks, invisible signs."""

_MODULE = '''\
"""{docstring}"""

import explorer

PLAN = {plan}

backend = explorer.backend(PLAN)


def compile(function):
    """The function with its kernels fused as planned; compiled when first called."""
    return backend.compile(function)


if __name__ == "__main__":
    print(__doc__)
'''


def plan_module(run: Run) -> str:
    """The module's text.

    Args:
        run: Of a fusion plan, with the op graph that the plan is about.

    Raises:
        UsageError: It is no run of a plan, or one of forward and backward; its plan does not fit
            its graph, or the graph's operators cannot be named in a plan.
    """
    if run.chain.direction is not Direction.FORWARD:
        raise UsageError(
            f"The plan of {run.chain.name} is of forward and backward as one graph, and "
            "torch.compile makes two of them; measure it without --backward to export a plan."
        )
    names = [op.name for op in run.graph.ops]
    if run.strategy.name != PLAN or run.strategy.plan is None or not names:
        raise UsageError(f"A run of {run.strategy.spec} has no fusion plan to export.")
    plan = parse_plan(run.strategy.plan, names, run.chain.name)
    renamed = in_aten_names(plan, names, [op.aten for op in run.graph.ops])
    # A recording may call an operator anything.
    check_aten_plan(renamed.text)
    paragraphs = _paragraphs(run, plan.text, renamed.text)
    docstring = "\n\n".join(
        textwrap.fill(_plain(text), WIDTH, break_on_hyphens=False) for text in paragraphs
    )
    return _MODULE.format(docstring=f"{docstring}\n", plan=json.dumps(renamed.text))


def _paragraphs(run: Run, plan: str, renamed: str) -> Iterator[str]:
    chain, versions = run.chain, run.versions
    settings = ", ".join(f"{name}={value}" for name, value in chain.parameters.items())
    triton = f", triton {versions.triton}" if versions.triton else ""
    yield f"The fusion plan {plan} of {chain.name}, as a backend of torch.compile."
    yield (
        f"In the names of ATen operators it is {renamed}: {WITHIN} joins what shares a kernel, "
        f"{BETWEEN} stands between kernels."
    )
    yield (
        f"Measured on {run.device.name} ({run.created_at}) with torch {versions.torch}{triton} and "
        f"Kernel Explorer {versions.explorer}: {chain.direction.words}, {settings}, "
        f"seed {run.seed}."
    )
    yield " ".join(_figures(run))
    yield (
        "It fits a function whose forward graph has these operators: compile(function) gives the "
        "function with the plan applied. The backward graph, if there is one, is fused whole."
    )


def _figures(run: Run) -> Iterator[str]:
    timed = headline(run)
    if run.error is not None:
        yield f"The run failed: {run.error}"
    if timed is None:
        yield "It was not timed."
    else:
        samples = timed.samples
        yield (
            f"Time: {format_us(samples.median_us)}, the median of {samples.n} calls, quartiles "
            f"{format_us(samples.q1_us)} and {format_us(samples.q3_us)} ({timed.condition.value}, "
            f"{samples.clock.value})."
        )
    best = run_traffic(run).best
    if best is not None:
        read, written, pedigree = best
        yield (
            f"{run.device.memory_name}: {format_bytes(read)} read, {format_bytes(written)} "
            f"written ({pedigree.value}), in {len(run.launches)} launches."
        )
    if run.accuracy is None:
        yield "Its values were not compared with a reference."
    elif run.accuracy.passed:
        yield f"Largest error against 64-bit: {run.accuracy.max_abs_error:.1e}."
    else:
        yield f"Its error against 64-bit is too large: {run.accuracy.max_abs_error:.1e}."


def _plain(text: str) -> str:
    return _NOT_PLAIN.sub("?", text)
