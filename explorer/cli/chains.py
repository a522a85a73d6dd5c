"""``kernel-explorer chains``: what can be picked, and what of it can be set."""

from argparse import Namespace
from typing import Any

from explorer.chains import CHAINS, find_chain
from explorer.chains.descriptor import Chain, Parameter
from explorer.cli.plans import PLAN_FORMS, plan_example
from explorer.cli.table import Column, render, shortened
from explorer.cli.terminal import DONE, paragraphs, write_json, write_lines
from explorer.model.device import DeviceKind
from explorer.model.fusion import BETWEEN, WITHIN
from explorer.model.strategies import plan_spec

OPS_WIDTH = 64


def execute(options: Namespace) -> int:
    """Print the list of chains, or one chain.

    Raises:
        UsageError: There is no chain of that name.
    """
    if options.name is None:
        chains = list(CHAINS.values())
        if options.json:
            write_json({"chains": [chain_to_plain(chain) for chain in chains]})
        else:
            write_lines(_list(chains))
        return DONE
    chain = find_chain(options.name)
    if options.json:
        write_json(chain_to_plain(chain))
    else:
        write_lines(_describe(chain))
    return DONE


def chain_to_plain(chain: Chain) -> dict[str, Any]:
    """A chain as JSON data; defaults differ between a GPU and a CPU, so both are told."""
    return {
        "name": chain.id,
        "title": chain.title,
        "formula": chain.formula,
        "look_at": chain.look_at,
        "family": chain.family.value,
        "trains": chain.trains,
        "dtypes": _dtypes(chain),
        "compared": _compared(chain),
        "parameters": [_parameter_to_plain(parameter) for parameter in chain.parameters],
        "ops": [
            {"name": op.name, "detail": op.detail, "output": op.output, "in_place": op.in_place}
            for op in chain.all_ops
        ],
        "plan_forms": [plan_spec(form) for form in (plan_example(chain), *PLAN_FORMS)],
    }


def _dtypes(chain: Chain) -> list[str]:
    """What its tensors may be; a device may lack some of them."""
    named = (parameter for parameter in chain.parameters if parameter.name == "dtype")
    return [choice for parameter in named for choice in parameter.choices]


def _compared(chain: Chain) -> dict[str, Any] | None:
    """What is run side by side unless it is set."""
    if chain.compared is None:
        return None
    return {"parameter": chain.compared, "values": list(chain.compared_values)}


def _parameter_to_plain(parameter: Parameter) -> dict[str, Any]:
    plain: dict[str, Any] = {
        "name": parameter.name,
        "kind": parameter.kind,
        "default": {"cuda": parameter.cuda_default, "cpu": parameter.cpu_default},
        "range": parameter.range_text,
        "sentence": parameter.sentence,
    }
    if parameter.kind == "choice":
        return {**plain, "choices": list(parameter.choices)}
    return {
        **plain,
        "minimum": parameter.minimum,
        "maximum": parameter.maximum,
        "below_maximum": parameter.below_maximum,
    }


def _list(chains: list[Chain]) -> list[str]:
    columns = [Column(title=title, is_text=True) for title in ("chain", "title", "ops")]
    return render(
        columns,
        [
            [chain.id, chain.title, shortened(" ".join(op.name for op in chain.all_ops), OPS_WIDTH)]
            for chain in chains
        ],
    )


def _describe(chain: Chain) -> list[str]:
    parameters = render(
        [
            Column(title="parameter", is_text=True),
            Column(title="on a GPU"),
            Column(title="on a CPU"),
            Column(title="takes", is_text=True),
            Column(title="what it is", is_text=True),
        ],
        [
            [
                parameter.name,
                str(parameter.default(DeviceKind.CUDA)),
                str(parameter.default(DeviceKind.CPU)),
                parameter.range_text,
                parameter.sentence,
            ]
            for parameter in chain.parameters
        ],
    )
    ops = render(
        [Column(title=title, is_text=True) for title in ("op", "what it does", "makes")],
        [[op.name, op.detail, op.output + ", in place" * op.in_place] for op in chain.all_ops],
    )
    return [
        f"{chain.title} ({chain.id})", f"  {chain.formula}", *paragraphs([chain.look_at], "  "),
        "", *parameters, *_beside(chain), "", *ops, *_length(chain), "",
        f"plans: '{plan_spec(plan_example(chain))}', {', '.join(map(plan_spec, PLAN_FORMS))}",
        f"  {WITHIN} within a kernel, {BETWEEN} between kernels; what is not named stays alone",
    ]  # fmt: skip


def _beside(chain: Chain) -> list[str]:
    """What else can be asked for: the backward pass, and what is compared unless it is set."""
    lines = ["with --backward: forward and backward"] if chain.trains else []
    if chain.compared is not None:
        values = " and ".join(f"{chain.compared}={value}" for value in chain.compared_values)
        lines.append(f"side by side unless --set: {values}")
    return lines


def _length(chain: Chain) -> list[str]:
    """How many of the ops there are, where a parameter says so."""
    if chain.length_parameter is None:
        return []
    name = chain.length_parameter
    on_gpu, on_cpu = map(chain.parameter(name).default, (DeviceKind.CUDA, DeviceKind.CPU))
    usual = f"{on_gpu}" if on_gpu == on_cpu else f"{on_gpu} on a GPU and {on_cpu} on a CPU"
    return [f"The first {name} of them are run, by default {usual}."]
