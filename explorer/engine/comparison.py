"""Compares the strategies of a request with one fp64 reference, and checks their randomness."""

import dataclasses
import math
from collections.abc import Callable, Iterator
from contextlib import closing

import torch

from explorer.engine.capture import Captured
from explorer.engine.chain_functions.base import (
    ChainCode,
    Parameters,
    ReferenceSlice,
    stored_dtype,
)
from explorer.engine.dtypes import rounding_of
from explorer.engine.faults import NoReferenceError, first_line, is_out_of_memory
from explorer.engine.measure.accuracy import (
    Errors,
    Reference,
    compute_reference,
    errors_by_slices,
    errors_of,
    judge,
)
from explorer.engine.measure.fp64 import fp64_results, longest_sum, slices_of
from explorer.engine.prepare import capture_chain
from explorer.engine.prepared import Prepared
from explorer.engine.strategies import Built, Strategy, find_strategy
from explorer.model.errors import ExplorerError
from explorer.model.run import Accuracy, Direction, DistributionCheck
from explorer.model.strategies import PLAN, plan_spec

_FP32_EPS = torch.finfo(torch.float32).eps
_BUDGET_S = 2.0
_SLICE_BYTES = 64 << 20
_HELD_BYTES = 1 << 30


class Comparison:
    """The truth, and eager's own error against it.

    Every error is that of the chain without its randomness under the same strategy. Where the
    chain has none to take out, that is what was measured; else it is one more build, made after
    the measured one was closed, so that there is never room needed for both. It compiles anew, but
    finds what the first one autotuned and built in the caches. A chain that updates its inputs is
    compared on inputs as they were before any call.
    """

    def __init__(
        self,
        prepared: Prepared,
        code: ChainCode,
        capture: Callable[[Parameters], Captured] | None = None,
    ) -> None:
        """Compute the reference within its budget.

        Args:
            prepared: The chain.
            code: Of the chain.
            capture: Captures it with other parameters, where it is not built in.

        Raises:
            torch.OutOfMemoryError: There is no room for a slice.
        """
        self._prepared = prepared
        self._code = code
        self._capture = capture or (
            lambda parameters: (
                capture_chain(
                    prepared.chain.id, parameters, prepared.device, prepared.direction
                ).captured
            )
        )
        parameters = code.without_randomness(prepared.parameters)
        self.is_random = parameters != prepared.parameters
        self._calm = prepared
        if self.is_random:
            self._calm = dataclasses.replace(
                prepared, parameters=parameters, function=code.make_function(parameters)
            )
        self._is_calm_captured = not self.is_random
        prepared.restore_inputs()
        sizes = _sizes_of_results(prepared)
        if not sum(sizes):
            raise NoReferenceError("There is no accuracy: the results have no elements.")
        with torch.no_grad():
            self.reference: Reference = compute_reference(
                self._truth(),
                n_elements=sum(sizes),
                n_results=len(sizes),
                budget_s=_BUDGET_S,
                max_bytes=_HELD_BYTES,
            )
        self._eager_errors: Errors = {}
        # What partial sums in fp32 are off by, in whatever order they are made: gradients of
        # weights sum up over all rows, and compilers do it row after row.
        self._summing = 0.0
        if prepared.direction is not Direction.FORWARD:
            self._summing = _FP32_EPS * math.sqrt(longest_sum(prepared.graph))

    def _truth(self) -> Iterator[ReferenceSlice]:
        prepared = self._prepared
        if prepared.direction is Direction.FORWARD and not self._code.compared_whole:
            return self._code.reference(prepared.parameters, prepared.inputs, _SLICE_BYTES)
        try:
            return slices_of(fp64_results(self._calm), _SLICE_BYTES)
        except Exception as error:
            is_known = isinstance(error, ExplorerError) or is_out_of_memory(error)
            if is_known or self._code.captured_function is None:
                raise
            return slices_of(self._truth_of_graph(error), _SLICE_BYTES)

    def _truth_of_graph(self, refused: Exception) -> tuple[torch.Tensor, ...]:
        """The captured graph in fp64, for code that holds tensors of another dtype itself.

        Raises:
            NoReferenceError: It does not run either; the sentence says what the code raised.
        """
        try:
            captured = self._code.captured_function
            function = self._calm.function if captured is None else captured()
            return fp64_results(dataclasses.replace(self._calm, function=function))
        except Exception as error:
            if is_out_of_memory(error):
                raise
            raise NoReferenceError(
                "There is no accuracy: the code does not run in fp64 "
                f"({type(refused).__name__}: {first_line(refused)})."
            ) from error

    def measure_eager(self, *, whole: bool) -> None:
        """Find eager's own errors, which the others are judged by.

        Args:
            whole: Run the whole chain; else slice by slice, where eager does not fit. A
                backward pass has no slices.

        Raises:
            torch.OutOfMemoryError: There is no room for it.
        """
        has_slices = self._prepared.direction is Direction.FORWARD and (
            not self._code.compared_whole
        )
        if whole or not has_slices:
            self._eager_errors = self.errors(find_strategy("eager"))
            return
        calm = self._calm
        calm.restore_inputs()
        with torch.no_grad():
            self._eager_errors = errors_by_slices(
                lambda part: self._code.slice_as_written(
                    calm.parameters, calm.inputs, part.index, part.output
                ),
                self.reference,
            )

    def errors(self, strategy: Strategy, plan: str | None = None) -> Errors:
        """The errors of the chain without its randomness, built for the purpose.

        Args:
            strategy: How to build it.
            plan: Of a fusion plan: the groups of what was measured, written out.
        """
        built = self._calm_strategy(strategy, plan).build(self._calm)
        with closing(built):
            return self.errors_as_built(built)

    def errors_as_built(self, built: Built) -> Errors:
        """The errors of a chain without randomness."""
        self._calm.restore_inputs()
        return errors_of(self._calm.results(built.call()), self.reference)

    def distribution(self, built: Built) -> tuple[DistributionCheck, ...]:
        """Checks of the random ops as built, with their randomness on."""
        if not self.is_random:
            return ()
        prepared = self._prepared

        def call() -> torch.Tensor:
            prepared.restore_inputs()
            return prepared.results(built.call())[0]

        torch.manual_seed(prepared.seed)
        with torch.no_grad():
            return self._code.distribution(
                prepared.parameters, prepared.inputs, call, built.random_resolution
            )

    def judge(
        self,
        errors: Errors,
        distribution: tuple[DistributionCheck, ...],
        rounding: float = 0.0,
    ) -> Accuracy:
        """The errors beside eager's.

        Args:
            errors: Of the results.
            distribution: Checks of the random ops.
            rounding: What is allowed beyond the dtype's own rounding, as a share.
        """
        name = self._code.dtype_of(self._prepared.parameters)
        return judge(
            errors,
            self._eager_errors,
            self.reference,
            dtype=stored_dtype(name),
            eps=rounding_of(name, stored_dtype(name)) + self._summing + rounding,
            distribution=distribution,
        )

    def _calm_strategy(self, strategy: Strategy, plan: str | None) -> Strategy:
        """The strategy for the chain without its randomness.

        A fusion plan is carried out on the captured graph, which is captured for it once. It is
        the same plan as the measured one's, without the ops that are not there.
        """
        if strategy.name != PLAN:
            return strategy
        self._capture_calm()
        return strategy if plan is None else find_strategy(plan_spec(plan))

    def _capture_calm(self) -> None:
        if self._is_calm_captured:
            return
        calm = self._calm
        captured = self._capture(calm.parameters)
        self._calm = dataclasses.replace(
            calm,
            graph=captured.graph,
            graph_module=captured.graph_module,
            nodes=captured.nodes,
            updated=captured.updated,
        )
        self._is_calm_captured = True


def _sizes_of_results(prepared: Prepared) -> list[int]:
    """Numbers in each result: of what a call hands out, and of the inputs it updates."""
    [output] = [node for node in prepared.graph_module.graph.nodes if node.op == "output"]
    # A captured graph returns the inputs that it updates first.
    returned = list(output.args[0])[len(prepared.updated) :]
    handed_out = [node.meta["val"] for node in returned if isinstance(node, torch.fx.Node)]
    results = [*handed_out, *(prepared.inputs[name] for name in prepared.updated)]
    return [result.numel() * (2 if result.is_complex() else 1) for result in results]
