"""Real modules as own code: what a user would type for each, and what is to come of it.

The table of ``docs/own-code.md`` has a row for each; see :func:`row`.
"""

from dataclasses import dataclass

from explorer.model.opgraph import OpGraph
from explorer.model.own_code import OwnCode

_PLAIN = "tests/engine/own_code/modules/in_plain_torch.py:"
_HIDDEN = "hidden_states=dtype[1,16,64]"
_X = "x=dtype[1,16,64]"
_ROTARY = f"{_HIDDEN} position_embeddings=(dtype[1,16,16],dtype[1,16,16]) attention_mask=None"
_LLAMA = "hidden_size=64 intermediate_size=128 num_attention_heads=4 num_key_value_heads=2"
_BERT = "hidden_size=64 intermediate_size=128 num_attention_heads=4"


@dataclass(frozen=True, slots=True, kw_only=True)
class RealModule:
    """One module, and what to expect of it.

    Attributes:
        chain: As typed.
        inputs: As of ``--input``.
        init: As of ``--init``.
        training: As of ``--train``.
        also: Strategies beside eager.
        backward: Whether it is run forward and backward as well.
        breaks: Why its graph breaks first, where it is captured in pieces.
        refused: Why nothing is run, part of the sentence.
    """

    chain: str
    inputs: str
    init: str = ""
    training: bool = False
    also: tuple[str, ...] = ()
    backward: bool = False
    breaks: str | None = None
    refused: str | None = None

    @property
    def own(self) -> OwnCode:
        """How it is called."""
        return OwnCode(inputs=self.inputs, init=self.init, training=self.training)

    @property
    def package(self) -> str:
        """What has to be installed for it; empty for the project's own."""
        return "" if "/" in self.chain else self.chain.partition(".")[0]

    @property
    def label(self) -> str:
        """Short, and different from the others'."""
        where, _, name = self.chain.rpartition(":")
        model = where.rpartition(".modeling_")[2] if ".modeling_" in where else ""
        mode = ", training" if self.training else ""
        return f"{f'{model}:' if model else ''}{name}{mode}"


def _hf(model: str, name: str, inputs: str, init: str = "", **more: object) -> RealModule:
    chain = f"transformers.models.{model}.modeling_{model}:{name}"
    return RealModule(chain=chain, inputs=inputs, init=init, **more)  # type: ignore[arg-type] # fields


_BUILT_HERE = (
    RealModule(
        chain=f"{_PLAIN}SelectiveScan", inputs="x=dtype[2,6,16]", init="channels=16 n_states=4",
        also=("compile",), backward=True,
    ),
    RealModule(
        chain=f"{_PLAIN}LoopedLayers", inputs="x=dtype[8,32] collect=True",
        init="width=32 depth=3", also=("compile",),
    ),
    RealModule(
        chain=f"{_PLAIN}ConvBlock", inputs="x=dtype[2,8,8,8]", init="channels=8",
        training=True, backward=True,
    ),
    RealModule(
        chain=f"{_PLAIN}RunningMean", inputs="x=dtype[16,32]", init="width=32",
        also=("plan:each",),
    ),
    RealModule(
        chain=f"{_PLAIN}Clipped", inputs="x=dtype[16,32]", init="width=32", also=("compile",),
        breaks="a number is taken out of a tensor",
    ),
    RealModule(
        chain=f"{_PLAIN}WrongSizes", inputs="x=dtype[16,32]", init="width=32",
        refused="in_plain_torch.py:102 (return wide + x) raises RuntimeError: "
        "The size of tensor a (64) must match the size of tensor b (32)",
    ),
    RealModule(chain=f"{_PLAIN}SoftGate", inputs="x=dtype[16,32]", init="width=32 experts=4"),
)  # fmt: skip

_OF_TORCH = (
    RealModule(
        chain="torch.nn:TransformerEncoderLayer", inputs="src=dtype[2,16,64]",
        init="d_model=64 nhead=4 dim_feedforward=128 batch_first=True",
    ),
    RealModule(
        chain="torch.nn:TransformerEncoderLayer", inputs="src=dtype[2,16,64]",
        init="d_model=64 nhead=4 dim_feedforward=128 batch_first=True", training=True,
        backward=True,
    ),
    RealModule(
        chain="torch.nn:MultiheadAttention", init="embed_dim=64 num_heads=4 batch_first=True",
        inputs="query=dtype[1,16,64] key=dtype[1,16,64] value=dtype[1,16,64]",
    ),
    RealModule(
        chain="torch.nn:LSTMCell", inputs="input=dtype[8,32] hx=(dtype[8,64],dtype[8,64])",
        init="input_size=32 hidden_size=64",
    ),
    RealModule(
        chain="torch.nn:GRU", inputs="input=dtype[8,4,32]", init="input_size=32 hidden_size=64",
        breaks="Dynamo does not trace RNN, GRU and LSTM",
    ),
    RealModule(
        chain="torch.nn:BatchNorm2d", inputs="input=dtype[4,16,8,8]", init="num_features=16",
        training=True,
    ),
)  # fmt: skip

_OF_HUGGING_FACE = (
    _hf("llama", "LlamaRMSNorm", "hidden_states=dtype[rows=8,width=64]", "hidden_size=width",
        also=("plan:each", "compile"), backward=True),
    _hf("llama", "LlamaMLP", _X, _LLAMA, also=("compile",), backward=True),
    _hf("llama", "LlamaAttention", _ROTARY, _LLAMA, also=("compile",)),
    _hf("llama", "LlamaDecoderLayer", _ROTARY, _LLAMA, backward=True),
    _hf("bert", "BertSelfAttention", _HIDDEN, _BERT),
    _hf("bert", "BertSelfOutput", f"{_HIDDEN} input_tensor=dtype[1,16,64]", "hidden_size=64",
        training=True, backward=True),
    _hf("bert", "BertIntermediate", _HIDDEN, _BERT),
    _hf("bert", "BertLayer", _HIDDEN, _BERT),
    _hf("distilbert", "FFN", "input=dtype[1,16,64]", "dim=64 hidden_dim=128"),
    RealModule(chain="transformers.activations:NewGELUActivation", inputs="input=dtype[16,64]",
               also=("plan:each",)),
    _hf("gpt2", "GPT2MLP", _HIDDEN, "intermediate_size=128 n_embd=64", also=("compile",)),
    _hf("gpt2", "GPT2Attention", _HIDDEN, "n_embd=64 n_head=4"),
    _hf("t5", "T5LayerNorm", _HIDDEN, "hidden_size=64", also=("compile",)),
    _hf("t5", "T5DenseGatedActDense", _HIDDEN,
        "d_model=64 d_ff=128 feed_forward_proj='gated-gelu'"),
    _hf("vit", "ViTLayer", _HIDDEN, _BERT),
    _hf("dinov2", "Dinov2Layer", _HIDDEN, "hidden_size=64 num_attention_heads=4"),
    _hf("clip", "CLIPMLP", _HIDDEN, "hidden_size=64 intermediate_size=128"),
    _hf("convnext", "ConvNextLayer", "features=dtype[1,16,8,8]", "dim=16"),
    _hf("whisper", "WhisperAttention", _HIDDEN, "embed_dim=64 num_heads=4 d_model=64"),
    _hf("mistral", "MistralMLP", _X, _LLAMA),
    _hf("mistral", "MistralAttention", _ROTARY, f"{_LLAMA} head_dim=16"),
    _hf("qwen2", "Qwen2MLP", _X, _LLAMA),
    _hf("qwen3", "Qwen3Attention", _ROTARY, f"{_LLAMA} head_dim=16"),
    _hf("gemma", "GemmaRMSNorm", _X, "dim=64"),
    _hf("gemma", "GemmaMLP", _X, _LLAMA),
    _hf("phi", "PhiMLP", _HIDDEN, _LLAMA),
    _hf("phi", "PhiAttention",
        f"{_HIDDEN} position_embeddings=(dtype[1,16,8],dtype[1,16,8]) attention_mask=None",
        "hidden_size=64 num_attention_heads=4"),
    _hf("falcon", "FalconMLP", _X, "hidden_size=64"),
    _hf("bloom", "BloomMLP", f"{_HIDDEN} residual=dtype[1,16,64]", "hidden_size=64"),
    _hf("mamba", "MambaMixer", "hidden_states=dtype[1,8,32]",
        "hidden_size=32 state_size=4 expand=2"),
    _hf("mixtral", "MixtralSparseMoeBlock", "hidden_states=fp32[1,16,64]",
        "hidden_size=64 intermediate_size=128 num_local_experts=4 num_experts_per_tok=2",
        breaks="the size of a result depends on values"),
    _hf("switch_transformers", "SwitchTransformersSparseMLP", "hidden_states=fp32[1,16,64]",
        "d_model=64 d_ff=128 num_experts=4",
        breaks="the size of a result depends on values"),
)  # fmt: skip

REAL_MODULES = (*_BUILT_HERE, *_OF_TORCH, *_OF_HUGGING_FACE)


def row(module: RealModule, graph: OpGraph | None, refused: str = "") -> str:
    """A module's row of the table, from what came of it.

    Args:
        module: The module.
        graph: What was captured, None if nothing was.
        refused: Why not.
    """
    if graph is None:
        return f"| `{module.label}` | no | no | {refused} |"
    pieces = len({op.piece for op in graph.ops})
    what = f"in {pieces} {'piece' if pieces == 1 else 'pieces'}" if graph.breaks else "whole"
    strategies = ", ".join(f"`{spec}`" for spec in ("eager", *module.also))
    backward = "; and backward" if module.backward else ""
    first = graph.breaks[0] if graph.breaks else None
    where = f"breaks at `{first.place}`: " if first and first.place else ""
    note = f"{where}{first.reason}" if first else ""
    ops = "1 op" if len(graph.ops) == 1 else f"{len(graph.ops)} ops"
    return f"| `{module.label}` | {what}, {ops} | {strategies}{backward} | {note} |"
