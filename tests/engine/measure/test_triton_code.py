"""What a Triton kernel does to its arguments, read from the code that Triton made of it."""

from explorer.engine.measure.triton_code import PointerUse, pointer_uses

READ = PointerUse(is_read=True, is_written=False)
WRITTEN = PointerUse(is_read=False, is_written=True)
BOTH = PointerUse(is_read=True, is_written=True)

HEAD = (
    "module {\n  tt.func public @scale(%y_ptr: !tt.ptr<bf16> {tt.divisibility = 16 : i32} "
    'loc("y_ptr"(#loc)), %x_ptr: !tt.ptr<bf16> loc("x_ptr"(#loc)), %n: i32 loc("n"(#loc))) '
    "attributes {noinline = false} {\n"
)
TAIL = "    tt.return loc(#loc9)\n  } loc(#loc)\n} loc(#loc)\n"


def test_pointers_are_followed_to_loads_and_stores() -> None:
    body = """\
    %offsets = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32> loc(#loc1)
    %x = tt.splat %x_ptr : !tt.ptr<bf16> -> tensor<64x!tt.ptr<bf16>> loc(#loc2)
    %x_0 = tt.addptr %x, %offsets : tensor<64x!tt.ptr<bf16>>, tensor<64xi32> loc(#loc2)
    %x_1 = tt.load %x_0 : tensor<64x!tt.ptr<bf16>> loc(#loc3)
    %total = "tt.reduce"(%x_1) <{axis = 0 : i32}> ({
    ^bb0(%a: bf16 loc(#loc4), %b: bf16 loc(#loc4)):
      %sum = arith.addf %a, %b : bf16 loc(#loc4)
      tt.reduce.return %sum : bf16 loc(#loc4)
    }) : (tensor<64xbf16>) -> bf16 loc(#loc4)
    %y = tt.splat %y_ptr : !tt.ptr<bf16> -> tensor<64x!tt.ptr<bf16>> loc(#loc5)
    %y_2 = tt.addptr %y, %offsets : tensor<64x!tt.ptr<bf16>>, tensor<64xi32> loc(#loc5)
    tt.store %y_2, %x_1 : tensor<64x!tt.ptr<bf16>> loc(#loc6)
"""
    assert pointer_uses(HEAD + body + TAIL) == (WRITTEN, READ)


def test_pointers_are_followed_through_loops() -> None:
    body = """\
    %0:2 = scf.for %i = %c0 to %n step %c1 iter_args(%at = %x_ptr, %to = %y_ptr) -> \
(!tt.ptr<bf16>, !tt.ptr<bf16>)  : i32 {
      %value = tt.load %at : !tt.ptr<bf16> loc(#loc2)
      tt.store %to, %value : !tt.ptr<bf16> loc(#loc3)
      %next = tt.addptr %at, %c1 : !tt.ptr<bf16>, i32 loc(#loc4)
      %after = tt.addptr %to, %c1 : !tt.ptr<bf16>, i32 loc(#loc4)
      scf.yield %next, %after : !tt.ptr<bf16>, !tt.ptr<bf16> loc(#loc5)
    } loc(#loc5)
"""
    assert pointer_uses(HEAD + body + TAIL) == (WRITTEN, READ)


def test_what_is_updated_is_read_and_written() -> None:
    atomic = "    %old = tt.atomic_rmw fadd, acq_rel, gpu, %y_ptr, %one, %true : (...) -> bf16\n"
    assert pointer_uses(HEAD + atomic + TAIL)[0] == BOTH
    in_place = (
        "    %value = tt.load %x_ptr : !tt.ptr<bf16>\n    tt.store %x_ptr, %one : !tt.ptr<bf16>\n"
    )
    assert pointer_uses(HEAD + in_place + TAIL) == (PointerUse(False, False), BOTH)


def test_other_text_tells_nothing() -> None:
    assert pointer_uses("") == ()
