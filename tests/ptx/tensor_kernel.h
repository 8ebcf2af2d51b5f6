#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace fullbore::ptx {

/// A tensor of 16-bit numbers 1, 2, 3 ..., or of bf16 0 to 6 over and over, and the box of it that copies bring.
struct TensorOf16 {
  std::array<uint64_t, 3> extents = {64, 48, 1};
  std::array<uint32_t, 3> box = {64, 8, 1};
  int swizzle = 3;  ///< as cuTensorMapEncodeTiled has it
  int dtype = 1;
  int fill = 0;
  bool is_bf16 = false;

  uint16_t element(int64_t index) const;
  /// Of these coordinates; 0 outside.
  uint16_t at(int64_t inner, int64_t middle, int64_t outer) const;
};

/// Launches of a kernel whose body is told: %l0 is the generic address of the map, a parameter; %l1 of `out`; %r0 the thread, %r1
/// the block's rank, %r2 the address of shared memory of dynamic size, at a multiple of 1024, %r3 of 64 bytes for mbarriers.
/// Registers beyond %r3 and %l1, %p0 to %p7 and %h0 to %h3 are the body's.
struct TensorLaunch {
  TensorOf16 tensor = {};
  uint32_t threads = 64;
  uint32_t cluster = 1;  ///< blocks; the grid is one cluster
  int64_t shared_bytes = 8192;
  int64_t out_words = 1024;
  uint64_t seed = 1;
  bool is_map_global = false;  ///< %l0 is its address in global memory

  std::string text(const std::string& body) const;
  /// `out`, 32 bits each.
  std::vector<uint32_t> run(const std::string& body) const;
  /// What the machine says, or "none".
  std::string fault_of(const std::string& body) const;
};

/// The text without lines that have `what` in them, of which there has to be one.
std::string without(const std::string& text, const std::string& what);
std::string replaced(std::string text, const std::string& what, const std::string& by);

/// Until the phase of that parity is over.
std::string wait_for(const std::string& label, const std::string& mbarrier,
                     const std::string& parity);
inline constexpr const char* kCopy3d =
    "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes";

}  // namespace fullbore::ptx
