#pragma once
#include <optional>
#include <span>
#include <string_view>

#include "tests/support/ptx/module.h"

namespace fullbore::ptx {

/// A type that instructions name.
struct Type {
  enum class Kind : uint8_t {
    bits,
    is_signed,
    is_unsigned,
    real,
    bf16,
    tf32,
    predicate,
    e4m3,
    e5m2
  };
  Kind kind = Kind::bits;
  int bits = 32;
  int count = 1;  ///< 2: f16x2
};
std::optional<Type> type_of(std::string_view word);

/// A function that the driver links to code that declares it; null if it has none of that name. What it is passed lies in local
/// memory, at addresses that are the operands.
Execute driver_function(std::string_view name);

/// Fills in what the words of an opcode mean: "add", "rn", "f32". The operands have been read. False: it is not known.
bool decode(std::span<const std::string_view> words, Instruction& instruction);
// Some of its parts: what reads and writes memory, what threads do together, what tensor cores do beside them, mbarriers and
// the barrier of a cluster, and copies of boxes of tensors.
bool decode_memory(std::span<const std::string_view> words, Instruction& instruction);
bool decode_meeting(std::span<const std::string_view> words, Instruction& instruction);
bool decode_warpgroup(std::span<const std::string_view> words, Instruction& instruction);
bool decode_cluster(std::span<const std::string_view> words, Instruction& instruction);
bool decode_tensor_copy(std::span<const std::string_view> words, Instruction& instruction);

}  // namespace fullbore::ptx
