#include "fullbore/train/rollout_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "fullbore/base/error.h"

namespace fullbore {
namespace {

SamplingKind kind_of(const SamplingOptions& options) {
  if (options.temperature == 0) return SamplingKind::greedy;
  return options.top_k > 0 || options.top_p < 1 ? SamplingKind::kept : SamplingKind::full;
}

}  // namespace

RolloutSteps::RolloutSteps(const RolloutSizes& sizes, int64_t row_pages, PagedPrograms& programs,
                           const RolloutOptions& options)
    : sizes_(sizes), row_pages_(row_pages), programs_(programs), options_(options) {
  // What a text has said before, and what it may say next, is known to the host.
  shape_.draws = options.sampling.repetition_penalty == 1 && !options.allow;
  shape_.kind = shape_.draws ? kind_of(options.sampling) : SamplingKind::full;
  shape_.tokens = shape_.draws ? sizes.tokens_per_launch : 1;
  shape_.stops = shape_.tokens > 1 ? static_cast<int64_t>(options.stop_tokens.size()) : 0;
}

// Tables of few sizes, so that few programs are compiled: attention pays for the pages that a table has room for.
int64_t RolloutSteps::pages_for(int64_t most) const {
  int64_t pages = std::max<int64_t>(4, (row_pages_ + 7) / 8);
  while (pages < most) pages *= 2;
  return std::min(pages, row_pages_);
}

int64_t RolloutSteps::rows_for(size_t count) const {
  int64_t rows = sizes_.slots;
  while (rows >= 8 && (rows + 1) / 2 >= static_cast<int64_t>(count)) rows = (rows + 1) / 2;
  return rows;
}

void RolloutSteps::extend(PagedRow& row, int64_t tokens) {
  if (const PagedRow::Copy copy = row.extend(tokens); copy.from >= 0) copies_.push_back(copy);
}

void RolloutSteps::put_pages(BoundProgram& program, size_t row, const PagedRow& pages) const {
  const std::span<int32_t> table = program.input<int32_t>("pages");
  const size_t width = table.size() / program.input<int64_t>("position").size();
  std::ranges::copy(pages.pages(), table.begin() + static_cast<std::ptrdiff_t>(row * width));
}

int64_t RolloutSteps::prefill(std::span<const Prefilling> rows) {
  size_t longest = 0;
  int64_t places = 0;
  for (const Prefilling& row : rows) {
    longest = std::max(longest, row.tokens.size());
    places = std::max(places, row.row->length() + static_cast<int64_t>(row.tokens.size()));
  }
  if (longest == 0) return 0;
  const auto chunk = static_cast<size_t>(sizes_.chunk);
  const int64_t pages = pages_for((places + kCachePageTokens - 1) / kCachePageTokens);
  BoundProgram& program = programs_.prefill(sizes_.prefilled, sizes_.chunk, pages);
  const std::span<int32_t> tokens = program.input<int32_t>("tokens");
  const std::span<int64_t> position = program.input<int64_t>("position");
  const std::span<int64_t> counts = program.input<int64_t>("counts");
  int64_t launches = 0;
  for (size_t begin = 0; begin < longest; begin += chunk, ++launches) {
    std::ranges::fill(counts, 0);
    std::ranges::fill(position, 0);
    std::ranges::fill(program.input<int32_t>("pages"), -1);
    for (size_t i = 0; i < rows.size(); ++i) {
      if (rows[i].tokens.size() <= begin) continue;
      const auto some =
          rows[i].tokens.subspan(begin, std::min(chunk, rows[i].tokens.size() - begin));
      position[i] = rows[i].row->length();
      counts[i] = static_cast<int64_t>(some.size());
      extend(*rows[i].row, counts[i]);
      std::ranges::copy(some, tokens.begin() + static_cast<std::ptrdiff_t>(i * chunk));
      put_pages(program, i, *rows[i].row);
    }
    programs_.copy(copies_);
    copies_.clear();
    program.run();
  }
  return launches;
}

int64_t RolloutSteps::decode(std::span<GrowingRow> rows) {
  // Room for all that a launch may make of a row: those that end sooner give it back.
  std::vector<int64_t> places, most;
  size_t pages = 0;
  for (GrowingRow& row : rows) {
    places.push_back(row.pages.length());
    const int64_t left = std::min(row.limit - static_cast<int64_t>(row.row.tokens.size()),
                                  sizes_.context - row.pages.length());
    most.push_back(std::min(left, shape_.tokens));
    extend(row.pages, most.back());
    pages = std::max(pages, row.pages.pages().size());
  }
  programs_.copy(copies_);
  copies_.clear();
  DecodeShape shape = shape_;
  shape.rows = rows_for(rows.size());
  shape.pages = pages_for(static_cast<int64_t>(pages));
  BoundProgram& program = programs_.decode(shape);
  const std::span<int32_t> tokens = program.input<int32_t>("tokens");
  const std::span<int64_t> position = program.input<int64_t>("position");
  const std::span<int64_t> live = program.input<int64_t>("live");
  std::ranges::fill(live, 0);
  std::ranges::fill(position, 0);
  std::ranges::fill(program.input<int32_t>("pages"), -1);
  for (size_t i = 0; i < rows.size(); ++i) {
    tokens[i] = rows[i].last;
    position[i] = places[i];
    live[i] = 1;
    put_pages(program, i, rows[i].pages);
  }
  if (shape_.draws) put_draws(program, rows, most);
  program.run();
  return shape_.draws ? append_drawn(program, rows, most) : append_by_logits(program, rows);
}

void RolloutSteps::put_draws(BoundProgram& program, std::span<const GrowingRow> rows,
                             std::span<const int64_t> most) const {
  const std::span<int64_t> made = program.input<int64_t>("made");
  const std::span<int64_t> limit = program.input<int64_t>("limit");
  const std::span<int64_t> counter = program.input<int64_t>("counter");
  const std::span<int64_t> sample = program.input<int64_t>("sample");
  for (size_t i = 0; i < rows.size(); ++i) {
    made[i] = static_cast<int64_t>(rows[i].row.tokens.size());
    limit[i] = made[i] + most[i];
    counter[i] = std::bit_cast<int64_t>(options_.step | (uint64_t{rows[i].index} << 32));
    sample[i] = rows[i].row.sample;
  }
  program.input<int64_t>("key")[0] = std::bit_cast<int64_t>(options_.key);
  if (shape_.kind != SamplingKind::greedy)
    program.input<float>("temperature")[0] = static_cast<float>(options_.sampling.temperature);
  if (shape_.kind == SamplingKind::kept) {
    program.input<int64_t>("top_k")[0] = options_.sampling.top_k;
    program.input<float>("top_p")[0] = static_cast<float>(options_.sampling.top_p);
  }
  if (shape_.stops > 0)
    std::ranges::copy(options_.stop_tokens, program.input<int32_t>("stops").begin());
}

void RolloutSteps::append(GrowingRow& row, const SampledToken& token) const {
  row.row.tokens.push_back(token.token);
  row.row.raw.push_back(token.raw);
  row.row.sampled.push_back(token.sampled);
  row.last = token.token;
  if (!row.seen.empty()) row.seen[static_cast<size_t>(token.token)] = true;
  const bool stops =
      std::ranges::find(options_.stop_tokens, token.token) != options_.stop_tokens.end() ||
      (options_.goes_on && !options_.goes_on(row.row));
  row.ended = stops || static_cast<int64_t>(row.row.tokens.size()) >= row.limit;
  row.row.reason = stops ? FinishReason::stopped : FinishReason::length;
  if (row.ended) row.pages.clear();
}

int64_t RolloutSteps::append_drawn(const BoundProgram& program, std::span<GrowingRow> rows,
                                   std::span<const int64_t> most) const {
  const auto tokens = program.result<int32_t>("tokens");
  const auto raw = program.result<float>("raw");
  const auto sampled = program.result<float>("sampled");
  const size_t width = tokens.size() / static_cast<size_t>(shape_.tokens);
  int64_t made = 0;
  for (size_t i = 0; i < rows.size(); ++i)
    for (size_t t = 0; t < static_cast<size_t>(most[i]) && !rows[i].ended; ++t, ++made) {
      const size_t at = t * width + i;
      const RolloutRow& row = rows[i].row;
      if (!std::isfinite(raw[at]))
        throw NumericalError(
            fmt::format("the model's logits are not finite: prompt {}, sample {}, token {}",
                        row.prompt, row.sample, row.tokens.size()));
      append(rows[i], {tokens[at], raw[at], sampled[at]});
    }
  return made;
}

int64_t RolloutSteps::append_by_logits(const BoundProgram& program,
                                       std::span<GrowingRow> rows) const {
  const auto logits = program.result<float>("logits");
  const auto vocabulary = static_cast<size_t>(sizes_.vocabulary);
  std::vector<bool> allowed;
  for (size_t i = 0; i < rows.size(); ++i) {
    GrowingRow& row = rows[i];
    const float uniform = draw_uniform(options_.key, options_.step, row.index, row.row.sample,
                                       static_cast<uint32_t>(row.row.tokens.size()));
    if (options_.allow) {
      allowed.assign(vocabulary, true);
      options_.allow(row.row, allowed);
    }
    append(row, sample_token(std::span(logits).subspan(i * vocabulary, vocabulary),
                             options_.sampling, uniform, row.seen, allowed));
  }
  return static_cast<int64_t>(rows.size());
}

}  // namespace fullbore
