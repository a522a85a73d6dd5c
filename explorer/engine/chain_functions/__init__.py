"""The torch functions of the built-in chains, matched to the descriptors by id."""

from explorer.engine.chain_functions import (
    adam,
    adam_list,
    attention,
    attention_scores,
    bias_dropout_residual,
    bias_gelu,
    cross_entropy,
    decoder_block,
    elementwise,
    feed_forward,
    geglu,
    layernorm,
    layernorm_gelu,
    matmul,
    matmul_epilogue,
    qkv,
    residual_layernorm,
    residual_rmsnorm,
    rmsnorm,
    rmsnorm_fp8,
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
        feed_forward.CODE,
        matmul_epilogue.CODE,
        qkv.CODE,
        matmul.CODE,
        rmsnorm_fp8.CODE,
        adam.CODE,
        adam_list.CODE,
        elementwise.CODE,
        decoder_block.CODE,
    )
}
