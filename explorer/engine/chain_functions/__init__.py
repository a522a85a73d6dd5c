"""The torch functions of the built-in chains, matched to the descriptors by id."""

from explorer.engine.chain_functions import (
    adam,
    attention,
    attention_scores,
    elementwise,
    layernorm_gelu,
    residual_rmsnorm,
    rmsnorm,
    swiglu,
)
from explorer.engine.chain_functions.base import ChainCode

CHAIN_CODE: dict[str, ChainCode] = {
    code.chain_id: code
    for code in (
        attention.CODE,
        attention_scores.CODE,
        rmsnorm.CODE,
        residual_rmsnorm.CODE,
        layernorm_gelu.CODE,
        swiglu.CODE,
        adam.CODE,
        elementwise.CODE,
    )
}
