#include "tests/ptx/tensor_kernel.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>

#include "fullbore/base/dtype.h"
#include "tests/support/ptx/machine.h"
#include "tests/support/ptx/tensor_map.h"

namespace fullbore::ptx {

uint16_t TensorOf16::element(int64_t index) const {
  return is_bf16 ? f32_to_bf16(static_cast<float>(index % 7)) : static_cast<uint16_t>(index + 1);
}

uint16_t TensorOf16::at(int64_t inner, int64_t middle, int64_t outer) const {
  const std::array<int64_t, 3> place = {inner, middle, outer};
  for (size_t d = 0; d < 3; ++d)
    if (place[d] < 0 || place[d] >= static_cast<int64_t>(extents[d])) return 0;
  const auto width = static_cast<int64_t>(extents[0]), height = static_cast<int64_t>(extents[1]);
  return element((outer * height + middle) * width + inner);
}

std::string TensorLaunch::text(const std::string& body) const {
  return ".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry k(\n"
         ".param .align 64 .b8 k_param_0[128],\n.param .u64 k_param_1,\n.param .u64 "
         "k_param_2\n)\n" +
         (cluster > 1
              ? fmt::format(".explicitcluster\n.maxntid {}, 1, 1\n.reqnctapercluster {}, 1, "
                            "1\n",
                            threads, cluster)
              : std::string()) +
         "{\n.reg .pred %p<8>;\n.reg .b16 %h<4>;\n.reg .f32 %f<8>;\n.reg .b32 %r<32>;\n"
         ".reg .b64 %l<16>;\n.shared .align 8 .b8 bars[64];\n" +
         fmt::format(".shared .align 1024 .b8 boxes[{}];\n", shared_bytes) +
         (is_map_global ? "ld.param.u64 %l0, [k_param_2];\n"
                        : "mov.b64 %l0, k_param_0;\ncvta.param.u64 %l0, %l0;\n") +
         "ld.param.u64 %l1, [k_param_1];\nmov.u32 %r0, %tid.x;\nmov.u32 %r1, %cluster_ctarank;\n"
         "mov.u32 %r2, boxes;\nmov.u32 %r3, bars;\n" +
         body + "ret;\n}\n";
}

std::vector<uint32_t> TensorLaunch::run(const std::string& body) const {
  DeviceMemory memory;
  const auto [width, height, depth] = tensor.extents;
  const auto bytes = static_cast<int64_t>(2 * width * height * depth);
  const uint64_t of_tensor = memory.allocate(bytes);
  auto* const elements = reinterpret_cast<uint16_t*>(memory.at(of_tensor, bytes).data());
  for (int64_t i = 0; i < bytes / 2; ++i) elements[i] = tensor.element(i);
  const std::array<uint64_t, 2> strides = {2 * width, 2 * width * height};
  const std::array<uint32_t, 3> each = {1, 1, 1};
  alignas(kTensorMapAlignment) std::array<std::byte, kTensorMapBytes> map{};
  if (encode_tensor_map(map.data(), tensor.dtype, 3, reinterpret_cast<void*>(of_tensor),
                        tensor.extents.data(), strides.data(), tensor.box.data(), each.data(), 0,
                        tensor.swizzle, 3, tensor.fill) != 0)
    throw Fault("the map is refused");
  const uint64_t out = memory.allocate(4 * out_words);
  const uint64_t of_map = memory.allocate(kTensorMapBytes);
  std::memcpy(memory.at(of_map, kTensorMapBytes).data(), map.data(), kTensorMapBytes);
  std::vector<std::byte> parameters(map.begin(), map.end());
  for (const uint64_t each_address : {out, of_map}) {
    const auto* const begin = reinterpret_cast<const std::byte*>(&each_address);
    parameters.insert(parameters.end(), begin, begin + sizeof(each_address));
  }
  const Module module = parse(text(body));
  ptx::run({.kernel = &module.kernels.at("k"),
            .grid = {cluster},
            .block = {threads},
            .dynamic_shared_bytes = 0,
            .parameters = parameters,
            .seed = seed},
           memory, 100'000);
  std::vector<uint32_t> result(static_cast<size_t>(out_words));
  std::memcpy(result.data(), memory.at(out, 4 * out_words).data(), 4 * result.size());
  return result;
}

std::string TensorLaunch::fault_of(const std::string& body) const {
  try {
    run(body);
  } catch (const Fault& fault) {
    return fault.what();
  }
  return "none";
}

std::string without(const std::string& text, const std::string& what) {
  const size_t at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  EXPECT_EQ(text.find(what, at + 1), std::string::npos) << what;
  const size_t begin = text.rfind('\n', at) + 1, end = text.find('\n', at);
  return text.substr(0, begin) + text.substr(end + 1);
}

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  const size_t at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return text.replace(at, what.size(), by);
}

std::string wait_for(const std::string& label, const std::string& mbarrier,
                     const std::string& parity) {
  return fmt::format(
      "{{\n.reg .pred over;\n{0}:\nmbarrier.try_wait.parity.shared::cta.b64 over, [{1}], {2}; // "
      "{0} try\n@!over bra {0}; // {0} again\n}}\n",
      label, mbarrier, parity);
}

}  // namespace fullbore::ptx
