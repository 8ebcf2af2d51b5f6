#include "fullbore/train/rollout.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "fullbore/base/check.h"
#include "fullbore/base/error.h"
#include "fullbore/train/rollout_rows.h"

namespace fullbore {
namespace {

class Stopwatch {
 public:
  explicit Stopwatch(double& seconds) : seconds_(seconds) {}
  ~Stopwatch() {
    seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  double& seconds_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

RolloutSizes checked(RolloutSizes sizes) {
  FB_CHECK(sizes.slots > 0 && sizes.context > 0 && sizes.vocabulary > 0 && sizes.chunk > 0 &&
               sizes.prefilled > 0 && sizes.tokens_per_launch > 0,
           "{} slots, context {}, vocabulary {}", sizes.slots, sizes.context, sizes.vocabulary);
  sizes.chunk = std::min(sizes.chunk, sizes.context);
  sizes.prefilled = std::min(sizes.prefilled, sizes.slots);
  // Rows that grow, prompts that were read for those that come next, and what all prompts begin with.
  if (sizes.pool_rows == 0) sizes.pool_rows = sizes.slots + sizes.prefilled + 1;
  return sizes;
}

int64_t row_pages(const RolloutSizes& sizes) {
  return (sizes.context + kCachePageTokens - 1) / kCachePageTokens;
}

int64_t pool_pages(const RolloutSizes& sizes) { return sizes.pool_rows * row_pages(sizes); }

PoolShape pool_shape(const RolloutSizes& sizes) {
  return {.pages = pool_pages(sizes), .dtype = sizes.pool_dtype};
}

size_t common_prefix(std::span<const int32_t> a, std::span<const int32_t> b) {
  return static_cast<size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

}  // namespace

/// What of a rollout outlives its runs.
struct Rollout::Implementation {
  Implementation(PagedDecodeFunction decode, const RolloutSizes& given, State& state,
                 const CompileOptions& options)
      : sizes(checked(given)),
        pool(static_cast<int32_t>(pool_pages(sizes))),
        programs(std::move(decode), pool_shape(sizes), sizes.vocabulary, state, options) {}

  RolloutSizes sizes;
  PagePool pool;
  PagedPrograms programs;
};

namespace {

/// A prompt that has been read but for its last token, whose samples are yet to begin.
struct Group {
  size_t prompt = 0;
  uint32_t next = 0;  ///< sample
  PagedRow pages;
};

/// One run.
class Run {
 public:
  Run(const RolloutSizes& sizes, PagePool& pool, PagedPrograms& programs,
      std::span<const RolloutPrompt> prompts, const RolloutOptions& options)
      : sizes_(sizes),
        pool_(pool),
        steps_(sizes, row_pages(sizes), programs, options),
        prompts_(prompts),
        options_(options),
        shared_(pool, kCachePageTokens) {}

  void check() const;
  RolloutCounts run(const std::function<void(RolloutRow&& row)>& finished);

 private:
  std::span<const int32_t> seen_prompt(size_t prompt) const;
  void read_shared();
  void read_prompts();
  void begin_rows();
  void slide();
  void prefill(std::span<const Prefilling> rows);
  void begin_row(Group& group);

  const RolloutSizes& sizes_;
  PagePool& pool_;
  RolloutSteps steps_;
  std::span<const RolloutPrompt> prompts_;
  const RolloutOptions& options_;
  RolloutCounts counts_;
  PagedRow shared_;  ///< what all prompts begin with
  size_t next_prompt_ = 0;
  std::vector<Group> groups_;  ///< those read, in order
  std::vector<GrowingRow> rows_;
};

void Run::check() const {
  for (size_t i = 0; i < prompts_.size(); ++i) {
    const RolloutPrompt& prompt = prompts_[i];
    const auto require = [&](bool fits, const std::string& what) {
      if (!fits) throw UsageError(fmt::format("rollout: prompt {} {}", i, what));
    };
    require(!prompt.tokens.empty(), "has no tokens: there is nothing to continue");
    require(options_.slides || static_cast<int64_t>(prompt.tokens.size()) <= sizes_.context,
            fmt::format("has {} tokens, the context has {} places", prompt.tokens.size(),
                        sizes_.context));
    require(prompt.samples >= 1,
            fmt::format("asks for {} samples; at least 1 was expected", prompt.samples));
    require(prompt.max_new_tokens >= 1,
            fmt::format("asks for {} new tokens; at least 1 was expected", prompt.max_new_tokens));
    for (const int32_t token : prompt.tokens)
      require(token >= 0 && token < sizes_.vocabulary,
              fmt::format("has token {} in a vocabulary of {}", token, sizes_.vocabulary));
  }
}

// All of it, or the last that has places.
std::span<const int32_t> Run::seen_prompt(size_t prompt) const {
  const std::span<const int32_t> tokens = prompts_[prompt].tokens;
  return tokens.last(std::min(tokens.size(), static_cast<size_t>(sizes_.context)));
}

void Run::prefill(std::span<const Prefilling> rows) {
  const Stopwatch watch(counts_.prefill_seconds);
  const auto most = static_cast<size_t>(sizes_.prefilled);
  for (size_t first = 0; first < rows.size(); first += most) {
    const auto some = rows.subspan(first, std::min(most, rows.size() - first));
    for (const Prefilling& row : some)
      counts_.prefilled_tokens += static_cast<int64_t>(row.tokens.size());
    counts_.prefill_launches += steps_.prefill(some);
  }
}

// Of what all prompts begin with, whole pages are worth sharing; each keeps its last token for itself.
void Run::read_shared() {
  if (prompts_.size() < 2) return;
  const std::span<const int32_t> first = seen_prompt(0);
  size_t shared = first.size() - 1;
  for (size_t i = 1; i < prompts_.size(); ++i)
    shared = std::min({shared, common_prefix(first, seen_prompt(i)), seen_prompt(i).size() - 1});
  if (shared < static_cast<size_t>(kCachePageTokens)) return;
  const Prefilling one{&shared_, first.first(shared)};
  prefill({&one, 1});
}

void Run::read_prompts() {
  std::vector<Prefilling> read;
  while (next_prompt_ < prompts_.size() && groups_.size() < static_cast<size_t>(sizes_.prefilled))
    groups_.push_back({next_prompt_++, 0, PagedRow(pool_, kCachePageTokens)});
  for (Group& group : groups_) {
    if (shared_.length() > 0) group.pages.fork(shared_, shared_.length());
    const std::span<const int32_t> tokens = seen_prompt(group.prompt);
    const auto begin = static_cast<size_t>(shared_.length());
    read.push_back({&group.pages, tokens.subspan(begin, tokens.size() - 1 - begin)});
  }
  prefill(read);
}

void Run::begin_row(Group& group) {
  const RolloutPrompt& prompt = prompts_[group.prompt];
  GrowingRow row{.pages = PagedRow(pool_, kCachePageTokens), .last = prompt.tokens.back()};
  row.index = prompt.index;
  row.row.prompt = group.prompt;
  row.row.sample = group.next++;
  const auto seen = static_cast<int64_t>(seen_prompt(group.prompt).size());
  row.limit = options_.slides ? prompt.max_new_tokens
                              : std::min(prompt.max_new_tokens, sizes_.context + 1 - seen);
  row.pages.fork(group.pages, group.pages.length());
  if (options_.sampling.repetition_penalty != 1) {
    row.seen.assign(static_cast<size_t>(sizes_.vocabulary), false);
    for (const int32_t token : prompt.tokens) row.seen[static_cast<size_t>(token)] = true;
  }
  rows_.push_back(std::move(row));
}

void Run::begin_rows() {
  while (rows_.size() < static_cast<size_t>(sizes_.slots)) {
    if (groups_.empty()) read_prompts();
    if (groups_.empty()) return;
    Group& group = groups_.front();
    begin_row(group);
    if (group.next == prompts_[group.prompt].samples) groups_.erase(groups_.begin());
  }
}

// Rows whose places are all taken take the newest half anew, from place 0: positions may be learned ones.
void Run::slide() {
  std::vector<std::vector<int32_t>> texts;
  std::vector<Prefilling> read;
  texts.reserve(rows_.size());
  for (GrowingRow& row : rows_) {
    if (row.pages.length() < sizes_.context) continue;
    std::vector<int32_t> text = prompts_[row.row.prompt].tokens;
    text.insert(text.end(), row.row.tokens.begin(), row.row.tokens.end());
    const int64_t half = std::max<int64_t>(1, sizes_.context / 2);
    text.erase(text.begin(), text.end() - half);
    text.pop_back();
    row.pages.clear();
    texts.push_back(std::move(text));
    read.push_back({&row.pages, texts.back()});
  }
  prefill(read);
}

RolloutCounts Run::run(const std::function<void(RolloutRow&& row)>& finished) {
  if (prompts_.empty()) return counts_;
  read_shared();
  while (true) {
    begin_rows();
    if (rows_.empty()) return counts_;
    if (options_.slides) slide();
    {
      const Stopwatch watch(counts_.decode_seconds);
      counts_.generated_tokens += steps_.decode(rows_);
      ++counts_.decode_launches;
    }
    // Pages are free again before rewards are computed.
    const auto ended = std::stable_partition(rows_.begin(), rows_.end(),
                                             [](const GrowingRow& row) { return !row.ended; });
    std::vector<RolloutRow> done;
    for (auto row = ended; row != rows_.end(); ++row) done.push_back(std::move(row->row));
    rows_.erase(ended, rows_.end());
    counts_.rows += static_cast<int64_t>(done.size());
    for (RolloutRow& row : done) finished(std::move(row));
  }
}

}  // namespace

DType pool_dtype(const CompileOptions& options) {
  const bool lowers =
      options.fp32_scopes.empty() && !options.passes.disabled.contains("lower_precision");
  return lowers ? options.precision : DType::f32;
}

Rollout::Rollout(PagedDecodeFunction decode, const RolloutSizes& sizes, State& state,
                 const CompileOptions& options)
    : implementation_(std::make_unique<Implementation>(std::move(decode), sizes, state, options)) {}
Rollout::Rollout(Rollout&&) noexcept = default;
Rollout& Rollout::operator=(Rollout&&) noexcept = default;
Rollout::~Rollout() = default;

Graph Rollout::trace(const PagedDecodeFunction& decode, const RolloutSizes& sizes) {
  const RolloutSizes all = checked(sizes);
  return PagedPrograms::trace_decode(decode, pool_shape(all), all.vocabulary,
                                     {.rows = all.slots, .pages = row_pages(all), .draws = false});
}

RolloutCounts Rollout::run(std::span<const RolloutPrompt> prompts, const RolloutOptions& options,
                           const std::function<void(RolloutRow&& row)>& finished) {
  Run run(implementation_->sizes, implementation_->pool, implementation_->programs, prompts,
          options);
  run.check();
  return run.run(finished);
}

int32_t Rollout::used_pages() const {
  return implementation_->pool.pages() - implementation_->pool.free_pages();
}

}  // namespace fullbore
