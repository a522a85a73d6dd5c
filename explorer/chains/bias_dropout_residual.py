"""Bias, dropout and the residual addition, as they end each half of a transformer's block."""

import dataclasses

from explorer.chains.attention import DROPOUT
from explorer.chains.descriptor import Chain, Family, OpName
from explorer.chains.parameters import COLUMNS, ROWS, float_dtype

BIAS_DROPOUT_RESIDUAL = Chain(
    id="bias-dropout-residual",
    title="Bias + dropout + residual",
    family=Family.ACTIVATIONS,
    look_at=(
        "Fused, only x and r are read and y is written, yet a random number is made for each "
        "element: see whether the time still follows the bytes."
    ),
    formula="dropout(x + b) + r",
    parameters=(
        ROWS,
        COLUMNS,
        float_dtype("Type of x, b and r."),
        dataclasses.replace(DROPOUT, sentence="Share of the values set to zero; 0 drops the op."),
    ),
    all_ops=(
        OpName(name="bias", detail="+ b", output="biased"),
        OpName(name="dropout", detail="p", output="dropped"),
        OpName(name="residual", detail="+ r", output="y"),
    ),
    skipped_ops=(("dropout", 0.0, "dropout"),),
    trains=True,
)
