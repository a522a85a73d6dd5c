"""A matmul large enough that fusion hardly matters, and the same for a single row."""

from explorer.chains.descriptor import Chain, Family, OpName
from explorer.chains.parameters import features, matmul_columns, matmul_dtype, matmul_rows

MATMUL = Chain(
    id="matmul",
    title="Matmul, with many rows and with one",
    family=Family.MATMUL,
    look_at=(
        "With many rows arithmetic sets the time, and what follows the matmul hardly shows; with "
        "one row reading W sets it, and each further launch costs as much as it can save."
    ),
    formula="gelu((x · W) · 0.5)",
    parameters=(
        matmul_rows(cuda=4096, cpu=4096),
        matmul_columns(cuda=4096, cpu=1024),
        features("Features of the result.", cuda=4096, cpu=1024),
        matmul_dtype("Type of x and W."),
    ),
    all_ops=(
        OpName(name="matmul", detail="x · W", output="product"),
        OpName(name="scale", detail="× 0.5", output="scaled"),
        OpName(name="gelu", detail="by tanh", output="y"),
    ),
    trains=True,
    compared="rows",
    compared_values=(4096, 1),
)  # fmt: skip
