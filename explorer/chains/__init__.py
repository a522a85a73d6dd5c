"""Descriptors of the built-in chains: what can be picked, without torch.

A new chain is one entry in ``CHAINS`` and one function in ``engine/chain_functions``.
"""

from explorer.chains.adam import ADAM
from explorer.chains.adam_list import ADAM_LIST
from explorer.chains.attention import ATTENTION
from explorer.chains.attention_scores import ATTENTION_SCORES
from explorer.chains.bias_dropout_residual import BIAS_DROPOUT_RESIDUAL
from explorer.chains.bias_gelu import BIAS_GELU
from explorer.chains.cross_entropy import CROSS_ENTROPY
from explorer.chains.decoder_block import DECODER_BLOCK
from explorer.chains.descriptor import Chain
from explorer.chains.elementwise import ELEMENTWISE
from explorer.chains.feed_forward import FEED_FORWARD
from explorer.chains.geglu import GEGLU
from explorer.chains.layernorm import LAYERNORM
from explorer.chains.layernorm_gelu import LAYERNORM_GELU
from explorer.chains.matmul import MATMUL
from explorer.chains.matmul_epilogue import MATMUL_EPILOGUE
from explorer.chains.qkv import QKV
from explorer.chains.residual_layernorm import RESIDUAL_LAYERNORM
from explorer.chains.residual_rmsnorm import RESIDUAL_RMSNORM
from explorer.chains.rmsnorm import RMSNORM
from explorer.chains.rmsnorm_fp8 import RMSNORM_FP8
from explorer.chains.rotary import ROTARY
from explorer.chains.swiglu import SWIGLU
from explorer.model.errors import UsageError

CHAINS: dict[str, Chain] = {
    chain.id: chain
    for chain in (
        ATTENTION,
        ATTENTION_SCORES,
        RMSNORM,
        RESIDUAL_RMSNORM,
        LAYERNORM,
        RESIDUAL_LAYERNORM,
        LAYERNORM_GELU,
        BIAS_GELU,
        BIAS_DROPOUT_RESIDUAL,
        SWIGLU,
        GEGLU,
        ROTARY,
        CROSS_ENTROPY,
        FEED_FORWARD,
        MATMUL_EPILOGUE,
        QKV,
        MATMUL,
        RMSNORM_FP8,
        ADAM,
        ADAM_LIST,
        ELEMENTWISE,
        DECODER_BLOCK,
    )
}


def find_chain(chain_id: str) -> Chain:
    """Return the built-in chain with that id.

    Raises:
        UsageError: There is none; the sentence lists those there are.
    """
    try:
        return CHAINS[chain_id]
    except KeyError:
        known = ", ".join(CHAINS)
        raise UsageError(f"There is no chain {chain_id!r}; known chains: {known}.") from None
