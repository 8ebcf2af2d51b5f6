// Kernels that clang compiled from kernels/*.cpp, executed: what they compute, and that each planted fault is met.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "fullbore/base/dtype.h"
#include "fullbore/base/files.h"
#include "fullbore/base/philox.h"
#include "tests/support/paths.h"
#include "tests/support/ptx/edited_text.h"
#include "tests/support/ptx/machine.h"

namespace fullbore::ptx {
namespace {

using ::testing::HasSubstr;

std::string text_of(const std::string& name) {
  return read_file(testing::source_folder() + "/tests/ptx/kernels/" + name + ".ptx")
      .take_or_throw();
}

/// Arguments of a kernel, each aligned to its size.
class Arguments {
 public:
  template <class T>
  Arguments& operator<<(T value) {
    bytes_.resize((bytes_.size() + sizeof(T) - 1) / sizeof(T) * sizeof(T));
    const auto* const begin = reinterpret_cast<const std::byte*>(&value);
    bytes_.insert(bytes_.end(), begin, begin + sizeof(T));
    return *this;
  }
  const std::vector<std::byte>& bytes() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

template <class T>
uint64_t upload(DeviceMemory& memory, const std::vector<T>& values) {
  const auto bytes = static_cast<int64_t>(values.size() * sizeof(T));
  const uint64_t address = memory.allocate(bytes);
  std::memcpy(memory.at(address, bytes).data(), values.data(), static_cast<size_t>(bytes));
  return address;
}
template <class T>
std::vector<T> download(DeviceMemory& memory, uint64_t address, size_t count) {
  std::vector<T> values(count);
  std::memcpy(values.data(), memory.at(address, static_cast<int64_t>(count * sizeof(T))).data(),
              count * sizeof(T));
  return values;
}

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  const size_t at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return text.replace(at, what.size(), by);
}

struct Softmax {
  static constexpr uint32_t kRows = 3, kColumns = 200, kThreads = 96;
  std::vector<float> x = std::vector<float>(size_t{kRows} * kColumns);
  std::vector<float> y;

  explicit Softmax(const std::string& text, uint64_t seed = 1) {
    PhiloxStream draws(5);
    for (float& each : x) each = static_cast<float>(3 * draws.normal());
    DeviceMemory memory;
    const Module module = parse(text);
    const uint64_t from = upload(memory, x), to = upload(memory, std::vector<float>(x.size()));
    Arguments arguments;
    arguments << from << to << static_cast<int32_t>(kColumns);
    run({.kernel = &module.kernels.at("softmax"),
         .grid = {kRows},
         .block = {kThreads},
         .parameters = arguments.bytes(),
         .seed = seed},
        memory);
    y = download<float>(memory, to, x.size());
  }
};

TEST(PtxKernels, SoftmaxIsThat) {
  const Softmax made(text_of("softmax"));
  for (uint32_t row = 0; row < Softmax::kRows; ++row) {
    double sum = 0;
    const auto x = [&](uint32_t i) {
      return static_cast<double>(made.x[row * Softmax::kColumns + i]);
    };
    for (uint32_t i = 0; i < Softmax::kColumns; ++i) sum += std::exp(x(i));
    for (uint32_t i = 0; i < Softmax::kColumns; ++i)
      EXPECT_NEAR(made.y[row * Softmax::kColumns + i], std::exp(x(i)) / sum, 1e-6);
  }
  for (uint64_t seed = 2; seed < 6; ++seed)
    EXPECT_EQ(Softmax(text_of("softmax"), seed).y, made.y) << "whatever thread comes first";
}

TEST(PtxKernels, EachBarrierOfSoftmaxIsMissed) {
  int removed = 0;
  for (; const auto text = without(text_of("softmax"), "bar.sync", removed); ++removed)
    EXPECT_THROW(Softmax{*text}, Fault) << removed;
  EXPECT_EQ(removed, 2);
}

struct Product {
  static constexpr int64_t kM = 64, kN = 96, kK = 128;
  std::vector<uint16_t> a = std::vector<uint16_t>(kM * kK), b = std::vector<uint16_t>(kK * kN);
  std::vector<float> c;

  explicit Product(const std::string& text, uint64_t seed = 1, uint32_t rows = kM) {
    PhiloxStream draws(6);
    for (auto* each : {&a, &b})
      for (uint16_t& value : *each) value = f32_to_bf16(static_cast<float>(draws.normal()));
    DeviceMemory memory;
    const Module module = parse(text);
    const uint64_t of_a = upload(memory, a), of_b = upload(memory, b),
                   of_c = upload(memory, std::vector<float>(kM * kN));
    Arguments arguments;
    arguments << of_a << of_b << of_c << static_cast<int32_t>(kN) << static_cast<int32_t>(kK);
    run({.kernel = &module.kernels.at("matmul"),
         .grid = {kN / 32, rows / 32},
         .block = {128},
         .parameters = arguments.bytes(),
         .seed = seed},
        memory);
    c = download<float>(memory, of_c, kM * kN);
  }
};

TEST(PtxKernels, ProductsOfTensorCoresAreThat) {
  const Product made(text_of("matmul"));
  for (int64_t row = 0; row < Product::kM; ++row)
    for (int64_t column = 0; column < Product::kN; ++column) {
      double sum = 0, size = 0;
      for (int64_t k = 0; k < Product::kK; ++k) {
        const double term =
            static_cast<double>(bf16_to_f32(made.a[static_cast<size_t>(row * Product::kK + k)])) *
            bf16_to_f32(made.b[static_cast<size_t>(k * Product::kN + column)]);
        sum += term;
        size += std::abs(term);
      }
      ASSERT_NEAR(made.c[static_cast<size_t>(row * Product::kN + column)], sum, 1e-6 * size)
          << row << " " << column;
    }
  EXPECT_EQ(Product(text_of("matmul"), 9).c, made.c);
}

TEST(PtxKernels, EachBarrierAndWaitOfTheProductIsMissed) {
  for (const std::string what : {"bar.sync", "cp.async.wait_group"}) {
    int removed = 0;
    for (; const auto text = without(text_of("matmul"), what, removed); ++removed)
      EXPECT_THROW(Product{*text}, Fault) << what << " " << removed;
    EXPECT_EQ(removed, 2) << what;
  }
  // Waiting for one group too few.
  EXPECT_THROW(
      Product{replaced(text_of("matmul"), "cp.async.wait_group 1", "cp.async.wait_group 2")},
      Fault);
}

TEST(PtxKernels, WhatLiesBeyondAnAllocationIsMet) {
  const auto fault_of = [](const auto& act) -> std::string {
    try {
      act();
    } catch (const Fault& fault) {
      return fault.what();
    }
    return "";
  };
  EXPECT_THAT(fault_of([] { Product(text_of("matmul"), 1, Product::kM + 32); }),
              HasSubstr("are in no allocation (line "));
  // An index off by one: the thread behind the last column reads, and then writes, beyond the row. Only the last row's
  // is beyond the allocation, and others are another block's.
  EXPECT_THAT(fault_of([] {
                Softmax(replaced(text_of("softmax"), "[softmax_param_2];",
                                 "[softmax_param_2];\nadd.s32 %r25, %r25, 1;"));
              }),
              ::testing::AnyOf(HasSubstr("are in no allocation"), HasSubstr("of block")));
}

}  // namespace
}  // namespace fullbore::ptx
