#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace fullbore {

/// Loss that 8 bits may cost in nats per token, unless the user says otherwise, and at most.
inline constexpr double kInt8Gate = 0.01;
inline constexpr double kMostInt8Gate = 0.05;

struct Int8ExportOptions {
  std::string model;              ///< a run or a checkpoint
  std::string output;             ///< folder to write
  std::string data;               ///< text to compare on; "": what the run held out
  double gate = kInt8Gate;        ///< in [0, kMostInt8Gate]
  int64_t batches = 0;            ///< to compare on; 0: all
  int64_t smallest = 32;          ///< matrices with a smaller extent stay f32
  std::vector<std::string> keep;  ///< patterns of parameters that stay f32
  std::string frozen_from = {};   ///< LoadOptions
};

/// Writes a checkpoint whose large matmuls read 8-bit weights (ops/quantized_linear.h), after comparing the loss
/// with that of the model as it is. NumericalError, and nothing is written, if it is worse by more than the gate;
/// DataError if the folder exists or cannot be written; UsageError if nothing is there to be quantised, or a
/// pattern matches nothing.
void export_int8(const Int8ExportOptions& options);

}  // namespace fullbore
