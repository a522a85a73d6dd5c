"""Compares the strategies of a request with one fp64 reference, and checks their randomness."""

import dataclasses
import math
from contextlib import closing

import torch

from explorer.engine.chain_functions.base import DTYPES, ChainCode
from explorer.engine.measure.accuracy import (
    Error,
    Reference,
    compute_reference,
    error_by_slices,
    error_of,
    judge,
)
from explorer.engine.prepared import Prepared
from explorer.engine.strategies import Built, Strategy, find_strategy
from explorer.model.run import Accuracy, DistributionCheck
from explorer.model.tensor import TensorRole

_BUDGET_S = 2.0
_SLICE_BYTES = 256 << 20
_HELD_BYTES = 1 << 30


class Comparison:
    """The truth, and eager's own error against it.

    Every error is that of the chain without its randomness under the same strategy: one more
    build, made after the measured one was closed, so that there is never room needed for both. It
    compiles anew, but finds what the first one autotuned and built in the caches.
    """

    def __init__(self, prepared: Prepared, code: ChainCode) -> None:
        """Compute the reference within its budget.

        Raises:
            torch.OutOfMemoryError: There is no room for a slice.
        """
        self._prepared = prepared
        self._code = code
        parameters = code.without_randomness(prepared.parameters)
        self.is_random = parameters != prepared.parameters
        self._calm = dataclasses.replace(
            prepared, parameters=parameters, function=code.make_function(parameters)
        )
        [output] = [t for t in prepared.graph.tensors if t.role is TensorRole.OUTPUT]
        with torch.no_grad():
            self.reference: Reference = compute_reference(
                code.reference(prepared.parameters, prepared.inputs, _SLICE_BYTES),
                n_elements=math.prod(output.shape),
                budget_s=_BUDGET_S,
                max_bytes=_HELD_BYTES,
            )
        self._eager_error: Error | None = None

    def measure_eager(self, *, whole: bool) -> None:
        """Find eager's own error, which the others are judged by.

        Args:
            whole: Run the whole chain; else slice by slice, where eager does not fit.

        Raises:
            torch.OutOfMemoryError: There is no room for it.
        """
        if whole:
            self._eager_error = self.error(find_strategy("eager"))
            return
        with torch.no_grad():
            self._eager_error = error_by_slices(
                lambda index: self._code.slice_as_written(
                    self._calm.parameters, self._calm.inputs, index, 0
                ),
                self.reference,
            )

    def error(self, strategy: Strategy) -> Error | None:
        """The error of the chain without its randomness; None if it is not finite."""
        built = strategy.build(self._calm)
        with closing(built):
            self._calm.restore_inputs()
            [result] = self._calm.results(built.call())
            return error_of(result, self.reference)

    def distribution(self, built: Built) -> tuple[DistributionCheck, ...]:
        """Checks of the random ops as built, with their randomness on."""
        if not self.is_random:
            return ()

        def call() -> torch.Tensor:
            self._prepared.restore_inputs()
            return self._prepared.results(built.call())[0]

        torch.manual_seed(self._prepared.seed)
        return self._code.distribution(
            self._prepared.parameters,
            self._prepared.inputs,
            call,
            built.random_resolution,
        )

    def judge(self, error: Error, distribution: tuple[DistributionCheck, ...]) -> Accuracy:
        """The error beside eager's."""
        return judge(
            error,
            self._eager_error,
            self.reference,
            dtype=DTYPES[str(self._prepared.parameters["dtype"])],
            distribution=distribution,
        )
