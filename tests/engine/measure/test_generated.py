"""Reading what Inductor generates: kernels, handles and the variables of a call."""

from pathlib import Path

import pytest

from explorer.engine.measure.generated import GeneratedModule, Pointer, read_module

SOURCE = """\
async_compile = AsyncCompile()
triton_poi_fused_add_0 = async_compile.triton('triton_poi_fused_add_0', \'\'\'
def triton_poi_fused_add_0(in_ptr0, out_ptr0, xnumel, XBLOCK): pass
\'\'\', device_str='cuda')
cpp_fused_mul_0 = async_compile.cpp_pybinding(['float*', 'const float*', 'const int64_t'], r\'\'\'
#include <torch/csrc/inductor/cpp_prefix.h>
extern "C"  void  kernel(float* in_out_ptr0,
                       const float* in_ptr0,
                       const int64_t ks0)
{
}
\'\'\')
def call(args):
    # Topologically Sorted Source Nodes: [s], Original ATen: [aten.bmm]
    # [Provenance debug handles] extern_kernels.bmm:1
    extern_kernels.bmm(reinterpret_tensor(arg1_1, (2, 8), (8, 1), 0), arg0_1, out=buf0)
    aten.stray.default(buf0)
    # [Provenance debug handles] triton_poi_fused_add_0:2
    stream0 = get_raw_stream(0)
    buf1 = empty_strided_cuda((8, ), (1, ), torch.float32)
    triton_poi_fused_add_0.run(buf0, buf1, 8, stream=stream0)
"""


@pytest.fixture
def module(tmp_path: Path) -> GeneratedModule:
    path = tmp_path / "generated.py"
    path.write_text(SOURCE, encoding="utf-8")
    return read_module(str(path))


def line_of(text: str) -> int:
    return next(n for n, line in enumerate(SOURCE.splitlines(), start=1) if text in line)


def test_kernels_come_with_their_source(module: GeneratedModule) -> None:
    triton, cpp = module.kernels["triton_poi_fused_add_0"], module.kernels["cpp_fused_mul_0"]
    assert (triton.language, cpp.language) == ("triton", "cpp")
    assert "def triton_poi_fused_add_0" in triton.source
    assert cpp.arguments == (
        Pointer(name="in_out_ptr0", is_const=False),
        Pointer(name="in_ptr0", is_const=True),
        None,
    )


def test_a_handle_speaks_of_the_next_call_only(module: GeneratedModule) -> None:
    assert module.handle_above(line_of("extern_kernels.bmm(")) == "extern_kernels.bmm:1"
    assert module.handle_above(line_of(".run(")) == "triton_poi_fused_add_0:2"
    assert module.handle_above(line_of("aten.stray")) is None


def test_the_variables_of_a_call_are_seen_through_views(module: GeneratedModule) -> None:
    assert module.argument_names(line_of("extern_kernels.bmm(")) == ("arg1_1", "arg0_1")
    assert module.argument_names(line_of(".run(")) == ("buf0", "buf1", None)
    assert module.argument_names(line_of("def call")) == ()
