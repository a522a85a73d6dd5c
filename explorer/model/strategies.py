"""The strategies by name: the one table that the command line, the window and the engine share.

The engine matches each entry to a callable by ``name``; whether it can run on a given device is
the engine's to say (``StrategyAbility``). Nothing here needs torch.
"""

from dataclasses import dataclass

from explorer.model.errors import UsageError
from explorer.model.fusion import ALL, EACH, INDUCTOR, PRESETS, SWEEP, TRITON
from explorer.model.run import Run, StrategyInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """One way to write a strategy on the command line.

    Attributes:
        option: The part after the colon, None for the bare name.
        title: As on screen.
        sentence: What it does.
    """

    option: str | None
    title: str
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Strategy:
    """A way to run a chain.

    Attributes:
        name: The part before the colon.
        variants: The bare name first, then each option it takes.
        takes_any_chain: It is not for certain chains alone.
        package: What has to be installed for it, None where torch alone will do.
    """

    name: str
    variants: tuple[Variant, ...]
    takes_any_chain: bool = False
    package: str | None = None

    @property
    def specs(self) -> tuple[str, ...]:
        """Every spelling it takes, the bare name first."""
        return tuple(_spec(self.name, variant.option) for variant in self.variants)


SDPA = "sdpa"
"""The strategy that is torch's own attention operator."""

STRATEGIES: tuple[Strategy, ...] = (
    Strategy(
        name="eager",
        takes_any_chain=True,
        variants=(
            Variant(
                option=None, title="eager",
                sentence="The chain as written: one kernel or more an op.",
            ),
        ),
    ),
    Strategy(
        name="compile",
        takes_any_chain=True,
        variants=(
            Variant(
                option=None, title="torch.compile",
                sentence="Inductor fuses what it can and generates the kernels.",
            ),
            Variant(
                option="reduce-overhead", title="compile · reduce-overhead",
                sentence="The same kernels, replayed from a CUDA graph that copies its inputs in.",
            ),
            Variant(
                option="max-autotune", title="compile · max-autotune",
                sentence="Kernels chosen by timing candidates, replayed from a CUDA graph.",
            ),
            Variant(
                option="max-autotune-no-cudagraphs", title="compile · max-autotune, no graphs",
                sentence="Kernels chosen by timing candidates, launched one by one.",
            ),
        ),
    ),
    Strategy(
        name="cudagraph",
        takes_any_chain=True,
        variants=(
            Variant(
                option=None, title="CUDA graph of eager",
                sentence="Eager's kernels in one CUDA graph: no launch cost, the same bytes.",
            ),
        ),
    ),
    Strategy(
        name=SDPA,
        variants=(
            Variant(
                option=None, title="SDPA",
                sentence="scaled_dot_product_attention with the backend that torch picks.",
            ),
            Variant(
                option="flash", title="SDPA, only FlashAttention",
                sentence="scaled_dot_product_attention with FlashAttention alone.",
            ),
            Variant(
                option="efficient", title="SDPA, only memory-efficient attention",
                sentence="scaled_dot_product_attention with the memory-efficient kernel alone.",
            ),
            Variant(
                option="cudnn", title="SDPA, only cuDNN",
                sentence="scaled_dot_product_attention with cuDNN's kernel alone.",
            ),
            Variant(
                option="math", title="SDPA, only math (not fused)",
                sentence="scaled_dot_product_attention op by op, in fp32 where that is wider.",
            ),
        ),
    ),
    Strategy(
        name="flex",
        variants=(
            Variant(
                option=None, title="FlexAttention",
                sentence="One attention kernel that Inductor writes around what changes a score.",
            ),
        ),
    ),
    Strategy(
        name="torch",
        variants=(
            Variant(
                option=None, title="torch's own",
                sentence="The operator that torch has for the chain, such as rms_norm.",
            ),
        ),
    ),
    Strategy(
        name="liger",
        package="liger-kernel",
        variants=(
            Variant(option=None, title="Liger", sentence="Liger's Triton kernel for the chain."),
        ),
    ),
    Strategy(
        name="quack",
        package="quack-kernels",
        variants=(
            Variant(option=None, title="quack", sentence="quack's CuTe kernel for the chain."),
        ),
    ),
    Strategy(
        name="flashinfer",
        package="flashinfer-python",
        variants=(
            Variant(
                option=None, title="FlashInfer", sentence="FlashInfer's kernel for the chain."
            ),
        ),
    ),
)  # fmt: skip
"""In the order in which they are offered."""

DEFAULT_SPECS = ("eager", "compile")
"""What runs when no strategy is named."""

PLAN = "plan"
"""The strategy whose option is a fusion plan or the name of one; see ``model.fusion``."""

_PLAN_TITLES = {
    EACH: "fusion · one op a kernel",
    ALL: "fusion · all in one",
    INDUCTOR: "fusion · as Inductor groups",
    TRITON: "fusion · as written by hand",
}
_PLAN_SENTENCE = "Each group of the fusion plan is compiled by Inductor on its own."

NOT_YET_BUILT = ("triton", "aot")
"""Names that a later release fills; asked for, they are refused so."""


def all_specs() -> tuple[str, ...]:
    """Every strategy with each of its options, as on the command line; plans are without end."""
    return tuple(spec for strategy in STRATEGIES for spec in strategy.specs)


def specs_for_every_chain() -> tuple[str, ...]:
    """Those that run any chain, as far as the device can."""
    return tuple(spec for each in STRATEGIES if each.takes_any_chain for spec in each.specs)


def split_spec(spec: str) -> tuple[str, str | None]:
    """``compile:max-autotune`` -> ``("compile", "max-autotune")``; no colon gives None."""
    name, colon, option = spec.partition(":")
    return name, option if colon else None


def parse_spec(spec: str) -> StrategyInfo:
    """Look a strategy up.

    Args:
        spec: As on the command line.

    Returns:
        Name, option and title; what is found out by running (plan, backend) is left empty.

    Raises:
        UsageError: No strategy is called that, or it has no such option.
    """
    name, option = split_spec(spec)
    if name == PLAN:
        return _parse_plan_spec(spec, option)
    if name in NOT_YET_BUILT:
        raise UsageError(f"The strategy {spec!r} is not yet built; there are {_known()}.")
    strategy = next((entry for entry in STRATEGIES if entry.name == name), None)
    if strategy is None:
        raise UsageError(f"There is no strategy {spec!r}; there are {_known()}.")
    for variant in strategy.variants:
        if variant.option == option:
            return StrategyInfo(name=name, option=option, title=variant.title)
    raise UsageError(
        f"The strategy {name!r} has no option {option!r}; it can be {', '.join(strategy.specs)}."
    )


def plan_spec(plan: str) -> str:
    """The spec of a plan's text or preset: ``scale+mask`` -> ``plan:scale+mask``."""
    return f"{PLAN}:{plan}"


def is_plan(spec: str) -> bool:
    """Whether a spec is a fusion plan."""
    return split_spec(spec)[0] == PLAN


def is_plan_run(run: Run) -> bool:
    """Whether a run is one of a fusion plan."""
    return run.strategy.name == PLAN


def plan_text(run: Run) -> str:
    """The whole text of a plan run's plan; what was asked for where it failed before."""
    return run.strategy.plan or run.strategy.option or ""


def plan_sentence() -> str:
    """What the strategy ``plan`` does."""
    return _PLAN_SENTENCE


def _known() -> str:
    return f"{', '.join(all_specs())} and {plan_spec('TEXT')}"


def _parse_plan_spec(spec: str, option: str | None) -> StrategyInfo:
    """A plan's option is read against a chain's ops later; here it must only be there."""
    if option is None or not option.strip():
        raise UsageError(
            f"The strategy {spec!r} lacks its plan: write plan:scale+mask|softmax with op names "
            f"of the chain, plan:{SWEEP} for every plan, or one of "
            f"{', '.join(plan_spec(preset) for preset in PRESETS if preset != TRITON)}."
        )
    option = option.strip()
    return StrategyInfo(name=PLAN, option=option, title=_PLAN_TITLES.get(option, option))


def _spec(name: str, option: str | None) -> str:
    return name if option is None else f"{name}:{option}"
