#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fullbore/device/kernel.h"

namespace fullbore::cuda {

struct Extent {
  uint32_t x = 1, y = 1, z = 1;
  bool operator==(const Extent&) const = default;
};

/// PTX, as the driver turns it into machine code. Kernels share it, and the device loads it once.
struct Module {
  std::string name;  ///< of a file of kernels or of generated code: for errors and profiles
  std::string ptx;
};

/// An operand of 16-bit numbers as the copy engine of compute capability 9.0 sees it: an array of three axes, the innermost
/// first, of which it brings boxes to shared memory by the 128-byte swizzle, with zeros outside.
struct TensorMap {
  DType dtype = DType::bf16;             ///< or f16
  std::array<uint64_t, 3> extents = {};  ///< 1 to 2^32
  std::array<uint64_t, 2> strides = {};  ///< bytes, of the outer axes; multiples of 16
  std::array<uint32_t, 3> box = {};      ///< elements; 128 bytes of the innermost
};

/// A parameter of an entry, in the order in which the entry declares them.
struct Argument {
  /// Index of the kernel's operand whose device address is passed, as 64 bits: inputs, outputs, then scratch. -1: `bytes`.
  int operand = -1;
  int64_t offset = 0;                 ///< of the address passed, from the operand's own
  std::vector<std::byte> bytes = {};  ///< of a parameter by value, in its own size and alignment
  /// Not null: in place of the address a map of the operand is passed, of 128 bytes, which the driver makes.
  std::shared_ptr<const TensorMap> map = {};
};

/// One launch of one entry.
struct Launch {
  std::shared_ptr<const Module> module;
  std::string entry;
  Extent grid = {};
  Extent block = {};
  int64_t dynamic_shared_bytes = 0;
  std::vector<Argument> arguments = {};
};

class LibraryMatmul;

/// A product that cuBLASLt makes behind a kernel's own launches, if it has any (cublaslt/matmuls.h).
struct LibraryCall {
  std::shared_ptr<const LibraryMatmul> matmul = {};  ///< null: there is no such product
  Argument a = {}, b = {}, c = {}, y = {},
           workspace = {};  ///< by operand; c where the problem has it
};

/// A compiled node: launches that are made one after another, each behind the one before. None: there is nothing to do.
class CudaKernel final : public Kernel {
 public:
  struct Description {
    std::string text;        ///< description()
    double nanoseconds = 0;  ///< on one multiprocessor
    int64_t scratch_bytes = 0;
    /// Pairs of an output and an input whose bytes it may take.
    std::vector<std::pair<int, int>> aliases = {};
  };
  CudaKernel(std::vector<Launch> launches, Description description, LibraryCall library = {})
      : launches_(std::move(launches)),
        description_(std::move(description)),
        library_(std::move(library)) {}

  const std::vector<Launch>& launches() const { return launches_; }
  /// Null: launches are all.
  const LibraryCall* library() const { return library_.matmul ? &library_ : nullptr; }
  double nanoseconds() const override { return description_.nanoseconds; }
  int64_t scratch_bytes(int) const override { return description_.scratch_bytes; }
  bool may_alias(int input, int output) const override {
    for (const auto& [out, in] : description_.aliases)
      if (out == output && in == input) return true;
    return false;
  }
  std::string description() const override { return description_.text; }

 private:
  std::vector<Launch> launches_;
  Description description_;
  LibraryCall library_;
};

/// What a kernel may know of the card. Facts of the H200 (compute capability 9.0) where none is at hand.
struct CardFacts {
  int capability = 90;  ///< 80: compute capability 8.0
  int driver = 12040;   ///< its version, 12040: CUDA 12.4
  int multiprocessors = 132;
  int64_t shared_bytes = 227 << 10;        ///< of a block at most, opted in
  int64_t memory_bytes = 141'000'000'000;  ///< all of it
  double bytes_per_second = 4.8e12;        ///< of memory, as published
  double flops_per_second = 0.9 * 989e12;  ///< of bf16 products, dense
};

/// A node to be compiled.
struct Request {
  const Graph& graph;
  const Node& node;
  const CardFacts& card;

  const TensorType& input(size_t i) const { return graph.type(node.inputs[i]); }
  const TensorType& output(size_t i) const { return graph.type(node.outputs[i]); }
};

}  // namespace fullbore::cuda
