#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace fullbore {

/// Texts that carry their own checksum (xxHash64) where other readers of the format pass over it. It tells damage; it
/// is no proof of who wrote the text.
enum class Seal : uint8_t {
  kNone,   ///< of an older version, or written by somebody else
  kWhole,  ///< as it was written
  kBroken  ///< changed since, or cut off
};

/// `text`: an object with members as JSON, on one line or, ending in a line's end, on several. It gets a last member
/// "xxhash64", the hash of the text as it was, by `seed`.
std::string seal_json(std::string_view text, uint64_t seed = 0);

/// Such a text taken apart.
struct SealedJson {
  Seal seal = Seal::kNone;
  std::string text;           ///< without the member; as given where there is none
  std::string_view checksum;  ///< what the member says: 16 digits; empty where there is none
};
SealedJson open_sealed_json(std::string_view text, uint64_t seed = 0);

/// `text`: lines of YAML. It becomes a comment that announces a checksum, the text, and a comment with the checksum of
/// all before: a text that is cut off anywhere has lost one of them.
std::string seal_yaml(std::string_view text);
Seal yaml_seal(std::string_view text);

}  // namespace fullbore
