#include "fullbore/data/bpe_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "fullbore/data/bpe_files.h"
#include "fullbore/data/byte_characters.h"
#include "fullbore/data/composed_text.h"

namespace fullbore {
namespace {

/// A token as messages show it: "'Ġthe'".
std::string shown(std::string_view bytes) {
  return fmt::format("'{}'", to_byte_characters(bytes.substr(0, 80)));
}

Status check_tokens(const BpeVocabulary& vocabulary, const TokenTable& ids) {
  for (size_t id = 0; id < vocabulary.tokens.size(); ++id) {
    const std::string& token = vocabulary.tokens[id];
    if (token.empty()) return Failure{fmt::format("no token has the id {}", id)};
    if (const int32_t first = ids.find(token); static_cast<size_t>(first) != id)
      return Failure{
          fmt::format("the ids {} and {} have the same token {}", first, id, shown(token))};
  }
  return success();
}

Status check_merges(const BpeVocabulary& vocabulary) {
  const auto known = [&](int32_t id) {
    return id >= 0 && static_cast<size_t>(id) < vocabulary.tokens.size();
  };
  const auto token = [&](int32_t id) -> const std::string& {
    return vocabulary.tokens[static_cast<size_t>(id)];
  };
  std::vector<std::pair<int32_t, int32_t>> pairs;
  pairs.reserve(vocabulary.merges.size());
  for (size_t i = 0; i < vocabulary.merges.size(); ++i) {
    const BpeMerge& merge = vocabulary.merges[i];
    if (!known(merge.left) || !known(merge.right) || !known(merge.merged))
      return Failure{fmt::format("merge {} names an id outside the vocabulary", i)};
    const std::string& merged = token(merge.merged);
    if (merged.size() != token(merge.left).size() + token(merge.right).size() ||
        !merged.starts_with(token(merge.left)) || !merged.ends_with(token(merge.right)))
      return Failure{fmt::format("merge {} of {} and {} is said to make {}", i,
                                 shown(token(merge.left)), shown(token(merge.right)),
                                 shown(merged))};
    pairs.emplace_back(merge.left, merge.right);
  }
  std::ranges::sort(pairs);
  if (const auto twice = std::ranges::adjacent_find(pairs); twice != pairs.end())
    return Failure{fmt::format("the merge of {} and {} stands twice", shown(token(twice->first)),
                               shown(token(twice->second)))};
  return success();
}

Status check_special_tokens(const BpeVocabulary& vocabulary) {
  std::set<std::string_view> texts;
  for (const SpecialToken& special : vocabulary.special_tokens) {
    const bool known =
        special.id >= 0 && static_cast<size_t>(special.id) < vocabulary.tokens.size();
    if (!known || vocabulary.tokens[static_cast<size_t>(special.id)] != special.text)
      return Failure{fmt::format("the special token '{}' has not the id {} in the vocabulary",
                                 special.text, special.id)};
    if (!texts.insert(special.text).second)
      return Failure{fmt::format("the special token '{}' stands twice", special.text)};
  }
  const int32_t beginning = vocabulary.settings.beginning;
  const auto is_beginning = [&](const SpecialToken& token) { return token.id == beginning; };
  if (beginning != -1 && std::ranges::none_of(vocabulary.special_tokens, is_beginning))
    return Failure{fmt::format("the token {} that begins a text is no special token", beginning)};
  return success();
}

}  // namespace

Result<std::shared_ptr<const BpeTokenizer>> BpeTokenizer::create(BpeVocabulary vocabulary) {
  const TokenTable ids(vocabulary.tokens);
  if (const Status s = check_tokens(vocabulary, ids); !s.ok()) return Failure{s.error()};
  std::array<int32_t, 256> byte_tokens{};
  for (size_t byte = 0; byte < 256; ++byte) {
    const char text = static_cast<char>(byte);
    byte_tokens[byte] = ids.find({&text, 1});
    if (byte_tokens[byte] < 0)
      return Failure{fmt::format("the byte 0x{:02X} has no token {}", byte, shown({&text, 1}))};
  }
  if (const Status s = check_merges(vocabulary); !s.ok()) return Failure{s.error()};
  if (const Status s = check_special_tokens(vocabulary); !s.ok()) return Failure{s.error()};
  return std::shared_ptr<const BpeTokenizer>(new BpeTokenizer(std::move(vocabulary), byte_tokens));
}

BpeTokenizer::BpeTokenizer(BpeVocabulary vocabulary, std::span<const int32_t> byte_tokens)
    : vocabulary_(std::move(vocabulary)),
      merges_(vocabulary_.merges, byte_tokens),
      added_(vocabulary_.special_tokens, vocabulary_.settings.composes) {
  if (!vocabulary_.settings.ignore_merges) return;
  words_ = TokenTable(vocabulary_.tokens);
  is_special_.resize(vocabulary_.tokens.size());
  for (const SpecialToken& special : vocabulary_.special_tokens)
    is_special_[static_cast<size_t>(special.id)] = true;
}

std::unique_ptr<BpeTokenizer::Worker> BpeTokenizer::borrow() const {
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      std::unique_ptr<Worker> worker = std::move(idle_.back());
      idle_.pop_back();
      return worker;
    }
  }
  return std::make_unique<Worker>();
}

void BpeTokenizer::give_back(std::unique_ptr<Worker> worker) const {
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(worker));
}

size_t BpeTokenizer::append_recognised(std::string_view text, std::vector<int32_t>& ids) const {
  added_.split(text, [&](std::string_view piece, int32_t id) {
    if (id >= 0)
      ids.push_back(id);
    else
      append_tokens(piece, ids);
  });
  return text.size();
}

size_t BpeTokenizer::append_tokens(std::string_view given, std::vector<int32_t>& ids) const {
  if (given.empty()) return 0;
  std::unique_ptr<Worker> worker = borrow();
  const std::string_view text =
      vocabulary_.settings.composes ? composed_text(given, worker->composed) : given;
  const size_t before = ids.size();
  // A token has one byte at least; the last word may write all of a slot.
  ids.resize(before + text.size() + BpeWordCache::kShortTokens);
  int32_t* out = ids.data() + before;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at < end) {
    const char* const next = word_end(at, end, vocabulary_.settings.split);
    const auto bytes = static_cast<size_t>(next - at);
    if (bytes <= BpeWordCache::kShortBytes) {
      const BpeWordCache::Slot word = BpeWordCache::pack(at, bytes, static_cast<size_t>(end - at));
      BpeWordCache::Slot& place = worker->cache.place(word);
      if (BpeWordCache::same(place, word)) {
        std::memcpy(out, place.ids, sizeof place.ids);
        out += 1 + (place.ids[1] >= 0) + (place.ids[2] >= 0) + (place.ids[3] >= 0);
      } else {
        append_unknown_word({at, bytes}, &place, word, *worker, out);
      }
    } else {
      append_unknown_word({at, bytes}, nullptr, {}, *worker, out);
    }
    at = next;
  }
  ids.resize(static_cast<size_t>(out - ids.data()));
  give_back(std::move(worker));
  return given.size();
}

void BpeTokenizer::append_unknown_word(std::string_view word, BpeWordCache::Slot* place,
                                       BpeWordCache::Slot packed, Worker& worker,
                                       int32_t*& out) const {
  if (const std::vector<int32_t>* known = worker.cache.find(word); known != nullptr) {
    out = std::copy(known->begin(), known->end(), out);
    return;
  }
  worker.ids.clear();
  const int32_t whole = words_.find(word);
  if (whole >= 0 && !is_special_[static_cast<size_t>(whole)])
    worker.ids.push_back(whole);
  else
    merges_.append_tokens(word, worker.ids, worker.scratch);
  out = std::copy(worker.ids.begin(), worker.ids.end(), out);
  if (place != nullptr && worker.ids.size() <= BpeWordCache::kShortTokens) {
    std::fill(std::begin(packed.ids), std::end(packed.ids), -1);
    std::copy(worker.ids.begin(), worker.ids.end(), packed.ids);
    *place = packed;
  } else {
    worker.cache.add(word, worker.ids.data(), worker.ids.size());
  }
}

void BpeTokenizer::append_bytes(int32_t id, std::string& bytes) const {
  bytes += vocabulary_.tokens[static_cast<size_t>(id)];
}

size_t BpeTokenizer::last_cut(std::string_view text) const {
  return last_word_boundary(text, vocabulary_.settings.split);
}

std::string BpeTokenizer::to_json() const { return tokenizer_json(vocabulary_); }

}  // namespace fullbore
