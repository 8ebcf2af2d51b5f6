#pragma once
#include <bit>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fullbore/base/hash.h"

namespace fullbore {

/// Ids of tokens by their bytes. A vocabulary of today has a hundred thousand tokens and twice as many merges, of which
/// each asks three times: open addressing in one array, half full, is several times as fast as a map of texts.
class TokenTable {
 public:
  TokenTable() = default;
  /// Of tokens that stand twice the first has its place. `tokens` must outlive the table.
  explicit TokenTable(const std::vector<std::string>& tokens)
      : tokens_(&tokens), slots_(std::bit_ceil(2 * tokens.size() + 2)) {
    for (size_t id = 0; id < tokens.size(); ++id) {
      Slot& slot = slots_[place(tokens[id])];
      if (slot.id < 0) slot = {check_of(hash_of(tokens[id])), static_cast<int32_t>(id)};
    }
  }
  /// -1: there is none.
  int32_t find(std::string_view token) const {
    return slots_.empty() ? -1 : slots_[place(token)].id;
  }

 private:
  struct Slot {
    uint32_t check = 0;  ///< upper half of the hash
    int32_t id = -1;
  };
  static uint64_t hash_of(std::string_view token) { return hash_bytes(token.data(), token.size()); }
  static uint32_t check_of(uint64_t hash) { return static_cast<uint32_t>(hash >> 32); }
  /// Where the token stands, or the empty slot where it would.
  size_t place(std::string_view token) const {
    const uint64_t hash = hash_of(token);
    size_t at = hash & (slots_.size() - 1);
    while (slots_[at].id >= 0 && (slots_[at].check != check_of(hash) ||
                                  (*tokens_)[static_cast<size_t>(slots_[at].id)] != token))
      at = (at + 1) & (slots_.size() - 1);
    return at;
  }

  const std::vector<std::string>* tokens_ = nullptr;
  std::vector<Slot> slots_;
};

}  // namespace fullbore
