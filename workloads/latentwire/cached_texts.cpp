#include <algorithm>

#include "fullbore/base/check.h"
#include "workloads/latentwire/cached_answer_rows.h"

namespace fullbore::latentwire {
namespace {

size_t common_tokens(std::span<const std::vector<int32_t>> texts) {
  size_t shared = texts.empty() ? 0 : texts[0].size();
  for (const std::vector<int32_t>& each : texts)
    shared = std::min(
        shared, static_cast<size_t>(std::ranges::mismatch(texts[0], each).in1 - texts[0].begin()));
  return shared;
}

}  // namespace

BoundProgram& CachedAnswerRows::embedding(int64_t length) {
  auto found = embeddings_.find(length);
  if (found == embeddings_.end())
    found = embeddings_
                .try_emplace(length, trace_embeddings(sizes_, length), state_,
                             trained_options(sizes_.config))
                .first;
  return found->second;
}

// In pages of their own, once for as long as texts begin so.
void CachedAnswerRows::read_shared(const std::vector<int32_t>& tokens) {
  if (tokens == shared_tokens_) return;
  shared_.clear();
  shared_tokens_ = tokens;
  if (tokens.empty()) return;
  const auto count = std::ssize(tokens);
  CachedStep step = step_of(count, false);
  step.rows = 1;
  step.pages = count / nn::kPageTokens;
  BoundProgram& read = program(step);
  const Seconds seconds(times_.prefill);
  shared_.extend(count);
  read.input<int64_t>("position")[0] = 0;
  read.input<int64_t>("counts")[0] = count;
  std::ranges::copy(shared_.pages(), read.input<int32_t>("pages").begin());
  std::ranges::copy(tokens, read.input<int32_t>("tokens").begin());
  read.run();
  times_.prefilled += count;
}

void CachedAnswerRows::begin_texts() {
  size_t longest = 1;
  for (const size_t row : chosen_) longest = std::max(longest, given_.prompts[row].size());
  const int64_t most = rounded_places(static_cast<int64_t>(longest));
  pages_ = row_pages(sizes_, most);
  // Of whole pages: a row writes to none that others read. The last token of each is its own, for its logits.
  int64_t shared = 0;
  if (rows_.size() > 1 && !given_.as_embeddings) {
    size_t shortest = longest;
    for (const std::vector<int32_t>& each : given_.prompts)
      shortest = std::min(shortest, each.size());
    const size_t common =
        std::min(common_tokens(given_.prompts), std::max<size_t>(1, shortest) - 1);
    shared = static_cast<int64_t>(common) / nn::kPageTokens * nn::kPageTokens;
  }
  if (shared > 0) {
    const std::vector<int32_t>& first = given_.prompts[0];
    read_shared({first.begin(), first.begin() + shared});
  }
  CachedStep step = step_of(rounded_places(static_cast<int64_t>(longest) - shared), false);
  const auto length = static_cast<size_t>(step.length);
  std::vector<int32_t> tokens(rows_.size() * length);
  std::vector<int64_t> counts;
  for (size_t row = 0; row < chosen_.size(); ++row) {
    const std::vector<int32_t>& ids = given_.prompts[chosen_[row]];
    FB_CHECK(!ids.empty(), "a text of no tokens");
    counts.push_back(std::ssize(ids) - shared);
    std::copy(ids.begin() + shared, ids.end(),
              tokens.begin() + static_cast<std::ptrdiff_t>(row * length));
    if (shared > 0) rows_[row].fork(shared_, shared);
    rows_[row].extend(counts.back() + sizes_.answer_tokens);
    places_.push_back(std::ssize(ids));
  }
  if (given_.as_embeddings) step.reads = CachedStep::Reads::embeddings;
  BoundProgram* const embed = given_.as_embeddings ? &embedding(step.length) : nullptr;
  BoundProgram& read = program(step);
  const Seconds seconds(times_.prefill);
  for (size_t row = 0; row < chosen_.size(); ++row) places_[row] = shared;
  put_places(read, 0, counts);
  for (size_t row = 0; row < chosen_.size(); ++row) places_[row] += counts[row];
  if (embed != nullptr) {
    std::ranges::copy(tokens, embed->input<int32_t>("tokens").begin());
    embed->run();
    std::ranges::copy(embed->result<float>("embeddings"), read.input<float>("embeddings").begin());
  } else {
    std::ranges::copy(tokens, read.input<int32_t>("tokens").begin());
  }
  read.run();
  logits_ = read.result<float>("logits");
  times_.prefilled += sizes_.rows * step.length;
  times_.shared += std::ssize(chosen_) * shared;
}

}  // namespace fullbore::latentwire
