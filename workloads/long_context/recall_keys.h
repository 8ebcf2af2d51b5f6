#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "fullbore/train/config.h"

namespace fullbore {

/// Keys of the made-up tasks of memory, of data.batching mqar and passkey.
struct RecallKeys {
  std::vector<std::string> mqar_sizes = {};
  int64_t mqar_vocabulary = 0;  ///< 0: 256
  std::vector<int64_t> passkey_lengths = {};
  bool operator==(const RecallKeys&) const = default;
};

inline const RecallKeys& recall_keys(const Config& config) { return config.get<RecallKeys>(); }
inline RecallKeys& recall_keys(Config& config) { return config.get<RecallKeys>(); }

}  // namespace fullbore
