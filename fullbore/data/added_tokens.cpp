#include "fullbore/data/added_tokens.h"

#include <algorithm>

#include "fullbore/data/composed_text.h"
#include "fullbore/data/unicode_classes.h"

namespace fullbore {
namespace {

bool is_space_at(std::string_view text, size_t at, size_t& bytes) {
  return UnicodeClasses::instance().of(character_at(text.data() + at, bytes)) ==
         CharacterClass::kSpace;
}

/// Where the white space that ends at `end` begins, not before `least`.
size_t space_before(std::string_view text, size_t end, size_t least) {
  while (end > least) {
    size_t begin = end - 1;
    while (begin > 0 && (static_cast<unsigned char>(text[begin]) & 0xC0U) == 0x80) --begin;
    size_t bytes = 0;
    if (begin < least || !is_space_at(text, begin, bytes)) break;
    end = begin;
  }
  return end;
}

size_t space_after(std::string_view text, size_t begin) {
  size_t bytes = 0;
  while (begin < text.size() && is_space_at(text, begin, bytes)) begin += bytes;
  return begin;
}

}  // namespace

AddedTokens::AddedTokens(const std::vector<SpecialToken>& tokens, bool composes)
    : composes_(composes) {
  std::string buffer;
  for (const SpecialToken& token : tokens) {
    if (!token.normalized)
      first_.add(token.text, token);
    else
      normalized_.add(composes ? std::string(composed_text(token.text, buffer)) : token.text,
                      token);
  }
}

void AddedTokens::Finder::add(std::string text, const SpecialToken& token) {
  if (text.empty()) return;
  std::vector<size_t>& lengths = lengths_[static_cast<unsigned char>(text[0])];
  const auto place = std::ranges::lower_bound(lengths, text.size(), std::greater<>());
  if (place == lengths.end() || *place != text.size()) lengths.insert(place, text.size());
  tokens_.emplace(std::move(text), token);
}

const SpecialToken* AddedTokens::Finder::longest_at(std::string_view text, size_t at,
                                                    size_t& length) const {
  for (const size_t candidate : lengths_[static_cast<unsigned char>(text[at])]) {
    length = candidate;
    if (length > text.size() - at) continue;
    if (const auto found = tokens_.find(text.substr(at, length)); found != tokens_.end())
      return &found->second;
  }
  return nullptr;
}

void AddedTokens::Finder::split(std::string_view text, const Visit& visit) const {
  size_t done = 0;
  for (size_t at = 0; at < text.size() && !tokens_.empty();) {
    size_t length = 0;
    const SpecialToken* const token = longest_at(text, at, length);
    if (token == nullptr) {
      ++at;
      continue;
    }
    const size_t begin = token->strips_left ? space_before(text, at, std::min(done, at)) : at;
    at += length;
    const size_t end = token->strips_right ? space_after(text, at) : at;
    if (done < begin) visit(text.substr(done, begin - done), -1);
    visit(text.substr(begin, end - begin), token->id);
    done = end;
    at = std::max(at, done);
  }
  if (done < text.size()) visit(text.substr(done), -1);
}

void AddedTokens::split(std::string_view text, const Visit& visit) const {
  std::string buffer;
  first_.split(text, [&](std::string_view piece, int32_t id) {
    if (id >= 0) return visit(piece, id);
    normalized_.split(composes_ ? composed_text(piece, buffer) : piece, visit);
  });
}

}  // namespace fullbore
