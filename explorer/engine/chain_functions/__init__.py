"""The torch functions of the built-in chains, matched to the descriptors by id."""

from explorer.engine.chain_functions import attention
from explorer.engine.chain_functions.base import ChainCode

CHAIN_CODE: dict[str, ChainCode] = {code.chain_id: code for code in (attention.CODE,)}
