"""The torch functions of the built-in chains, matched to the descriptors by id."""

from explorer.engine.chain_functions import (
    adam,
    attention,
    attention_scores,
    bias_dropout_residual,
    bias_gelu,
    cross_entropy,
    elementwise,
    geglu,
    layernorm,
    layernorm_gelu,
    residual_layernorm,
    residual_rmsnorm,
    rmsnorm,
    rotary,
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
        layernorm.CODE,
        residual_layernorm.CODE,
        layernorm_gelu.CODE,
        bias_gelu.CODE,
        bias_dropout_residual.CODE,
        swiglu.CODE,
        geglu.CODE,
        rotary.CODE,
        cross_entropy.CODE,
        adam.CODE,
        elementwise.CODE,
    )
}
