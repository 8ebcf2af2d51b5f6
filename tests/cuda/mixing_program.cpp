#include "tests/cuda/mixing_program.h"

#include <utility>

#include "fullbore/ir/op_def.h"

namespace fullbore::cuda {
namespace {

// As compilers write it, so that launches of it can become one.
constexpr const char* kPtx = R"(.version 7.0
.target sm_80
.address_size 64
.visible .entry mix(
	.param .u64 mix_param_0,
	.param .u64 mix_param_1,
	.param .u64 mix_param_2,
	.param .u64 mix_param_3
)
{
.reg .b32 %r<4>; .reg .b64 %l<16>;
ld.param.u64 %l0, [mix_param_0];
ld.param.u64 %l1, [mix_param_1];
ld.param.u64 %l2, [mix_param_2];
ld.param.u64 %l3, [mix_param_3];
mov.u32 %r0, %tid.x;
mov.u32 %r1, %ctaid.x;
mov.u32 %r2, %ntid.x;
mad.lo.s32 %r3, %r1, %r2, %r0;
mul.wide.u32 %l4, %r3, 8;
add.s64 %l5, %l0, %l4;
add.s64 %l6, %l1, %l4;
add.s64 %l7, %l2, %l4;
ld.global.u64 %l8, [%l5];
ld.global.u64 %l9, [%l6];
mul.lo.s64 %l10, %l8, %l3;
add.s64 %l11, %l10, %l9;
add.s64 %l12, %l11, 1;
st.global.u64 [%l7], %l12;
ret;
}
)";

}  // namespace

MixingKernel::MixingKernel() {
  const TensorType type{DType::i64, {kElements}};
  const Value x = graph.add_input("x", Role::batch, type);
  const Value y = graph.add_input("y", Role::batch, type);
  graph.add_node(get_op("add"), {x, y}, {}, nullptr, {"models/mixing.cpp", 12});
  std::vector<std::byte> factor(8);
  factor[0] = std::byte{3};
  std::vector<Launch> launches = {
      {.module = std::make_shared<Module>(Module{"mixing", kPtx}),
       .entry = "mix",
       .grid = {2},
       .block = {32},
       .dynamic_shared_bytes = 0,
       .arguments = {{.operand = 0}, {.operand = 1}, {.operand = 2}, {.bytes = factor}}}};
  node = std::make_unique<CompiledNode>(
      std::make_unique<CudaKernel>(
          std::move(launches),
          CudaKernel::Description{.text = "mixing", .nanoseconds = 1000, .scratch_bytes = 0}),
      graph, graph.nodes()[0]);
}

void MixingKernel::run(const uint64_t* x, const uint64_t* y, uint64_t* z) {
  for (int64_t i = 0; i < kElements; ++i) z[i] = 3 * x[i] + y[i] + 1;
}

}  // namespace fullbore::cuda
