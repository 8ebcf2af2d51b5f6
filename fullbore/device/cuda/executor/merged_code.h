#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fullbore/device/cuda/executor/launch_sink.h"

/// Small launches of one entry that may happen side by side as one launch: layers of blocks (blockIdx.z), each with the
/// arguments of one of them. It is the same code: bits do not change.
namespace fullbore::cuda {

struct MergedCode {
  std::shared_ptr<const Module> module;
  std::string entry;          ///< its parameter is a table of records
  int64_t record_bytes = 0;   ///< of one launch
  int64_t most_launches = 0;  ///< whose records are as many bytes as a launch's parameters may have
};

/// The code of the launch's entry for several launches; none if blocks are in layers already, if two records would be too
/// many bytes, or if its PTX uses parameters in a way that is not known here.
std::optional<MergedCode> merged_code(const Launch& launch);

/// The table of launches of that code, each with its operands' addresses.
struct LaunchWithOperands {
  const Launch* launch = nullptr;
  std::span<const Place> operands;
};
std::vector<std::byte> merged_table(const MergedCode& code,
                                    std::span<const LaunchWithOperands> launches);

}  // namespace fullbore::cuda
