#pragma once

namespace fullbore {

struct Config;

/// engine.fp8: are matmuls of weights products of 8-bit floats in training (fp8_matmuls.h)?
struct Fp8Keys {
  bool fp8 = false;
  bool operator==(const Fp8Keys&) const = default;
};

bool has_fp8(const Config& config);

}  // namespace fullbore
