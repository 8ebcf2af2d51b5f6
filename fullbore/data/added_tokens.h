#pragma once
#include <array>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "fullbore/data/tokenizer.h"

namespace fullbore {

/// Tokens that are found in a text before it is split into words: of those that begin first the longest. Those marked
/// `normalized` are looked for after the others, in what these leave, when it has been brought into normal form.
/// Source: the behaviour of the Python package tokenizers 0.23.
class AddedTokens {
 public:
  AddedTokens() = default;
  /// `composes`: whether the normal form is C; else a text is left as it is.
  AddedTokens(const std::vector<SpecialToken>& tokens, bool composes);

  /// Called for each piece of a text in turn: a token with its id, or ordinary text with -1.
  using Visit = std::function<void(std::string_view piece, int32_t id)>;
  void split(std::string_view text, const Visit& visit) const;

 private:
  /// Tokens by their text, and which lengths there are for each first byte: one lookup for each.
  class Finder {
   public:
    void add(std::string text, const SpecialToken& token);
    void split(std::string_view text, const Visit& visit) const;

   private:
    const SpecialToken* longest_at(std::string_view text, size_t at, size_t& length) const;

    struct Hash {
      using is_transparent = void;
      size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
    };
    std::unordered_map<std::string, SpecialToken, Hash, std::equal_to<>> tokens_;
    std::array<std::vector<size_t>, 256> lengths_;  ///< longest first
  };

  bool composes_ = false;
  Finder first_;
  Finder normalized_;
};

}  // namespace fullbore
