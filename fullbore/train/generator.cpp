#include "fullbore/train/generator.h"

#include <algorithm>
#include <utility>

#include "fullbore/base/check.h"

namespace fullbore {
namespace {

// Chunks start at multiples of their length: the caches hold a whole number of them.
int64_t capacity_of(const GeneratorSizes& sizes) {
  return (sizes.context + sizes.chunk - 1) / sizes.chunk * sizes.chunk;
}

GeneratorSizes checked(GeneratorSizes sizes) {
  FB_CHECK(sizes.samples > 0 && sizes.context > 0 && sizes.chunk > 0, "{} samples, context {}",
           sizes.samples, sizes.context);
  sizes.chunk = std::min(sizes.chunk, sizes.context);
  return sizes;
}

}  // namespace

Graph Generator::trace(const DecodeFunction& decode, const GeneratorSizes& sizes, int64_t length) {
  Trace trace("generate", false);
  const Tensor tokens = trace.batch("tokens", {DType::i32, {sizes.samples, length}});
  const Tensor position = trace.batch("position", {DType::i64, {}});
  const Tensor row = trace.batch("row", {DType::i64, {}});
  const Tensor logits = decode(trace, tokens, position, row, capacity_of(checked(sizes)));
  FB_CHECK(logits.rank() == 2 && logits.dim(0) == sizes.samples, "logits {}", logits.type().text());
  trace.result("logits", cast(logits, DType::f32));
  return trace.finish();
}

Generator::Generator(DecodeFunction decode, const GeneratorSizes& sizes, State& state, Team& team,
                     const CompileOptions& options)
    : decode_(std::move(decode)),
      sizes_(checked(sizes)),
      state_(state),
      team_(team),
      options_(options),
      step_(compile(1)),
      texts_(static_cast<size_t>(sizes.samples)),
      tokens_(static_cast<size_t>((sizes_.samples * sizes_.chunk + 15) / 16)) {
  const Graph& graph = step_.program.plan().graph;
  const auto output = static_cast<size_t>(step_.logits);
  logits_extent_ = graph.type(graph.outputs()[output].value).shape[1];
  if (sizes_.vocabulary == 0) sizes_.vocabulary = logits_extent_;
  FB_CHECK(sizes_.vocabulary <= logits_extent_, "{} tokens, {} logits", sizes_.vocabulary,
           logits_extent_);
}

Generator::Step Generator::compile(int64_t length) {
  Program program = Program::compile(trace(decode_, sizes_, length), state_, team_, options_);
  const int logits = program.output("logits");
  return {std::move(program), length, logits};
}

// Compiled when a text of several tokens is taken for the first time.
Generator::Step& Generator::prefill() {
  if (!prefill_) prefill_.emplace(compile(sizes_.chunk));
  return *prefill_;
}

void Generator::run(Step& step, size_t first, size_t used) {
  auto* rows = reinterpret_cast<int32_t*>(tokens_.data());
  const auto length = static_cast<size_t>(step.length);
  for (const std::vector<int32_t>& text : texts_) {
    std::copy_n(text.begin() + static_cast<std::ptrdiff_t>(first), used, rows);
    std::fill(rows + used, rows + length, 0);
    rows += length;
  }
  place_.value = position_;
  row_.value = static_cast<int64_t>(used) - 1;
  const void* const batch[] = {tokens_.data(), &place_, &row_};
  step.program.run(batch);
  last_logits_ = static_cast<const float*>(step.program.result(step.logits));
  position_ += static_cast<int64_t>(used);
}

void Generator::take(size_t first, size_t length) {
  while (length > 0) {
    Step& step = length == 1 ? step_ : prefill();
    const size_t used = std::min(length, static_cast<size_t>(step.length));
    run(step, first, used);
    first += used;
    length -= used;
  }
}

void Generator::begin(std::span<const int32_t> prompt) {
  FB_CHECK(!prompt.empty(), "nothing to continue");
  for (std::vector<int32_t>& text : texts_) text.assign(prompt.begin(), prompt.end());
  position_ = 0;
  const size_t used = std::min(prompt.size(), static_cast<size_t>(sizes_.context));
  take(prompt.size() - used, used);
}

void Generator::append(std::span<const int32_t> tokens) {
  FB_CHECK(tokens.size() == texts_.size() && position_ > 0, "{} tokens for {} texts", tokens.size(),
           texts_.size());
  for (size_t i = 0; i < texts_.size(); ++i) texts_[i].push_back(tokens[i]);
  const size_t size = texts_.front().size();
  if (position_ < sizes_.context) return take(size - 1, 1);
  const auto kept = static_cast<size_t>(std::max<int64_t>(1, sizes_.context / 2));
  position_ = 0;
  take(size - kept, kept);
}

std::span<const float> Generator::logits(int64_t sample) const {
  return {last_logits_ + sample * logits_extent_, static_cast<size_t>(sizes_.vocabulary)};
}

void Generator::generate(std::span<const int32_t> prompt, int64_t count,
                         const SamplingOptions& options, uint64_t seed,
                         const std::function<bool(int64_t sample, int32_t token)>& emit) {
  if (count <= 0) return;
  std::vector<PhiloxStream> draws;
  for (int64_t sample = 0; sample < sizes_.samples; ++sample)
    draws.emplace_back(seed, static_cast<uint64_t>(sample));
  std::vector<bool> goes_on(texts_.size(), true);
  std::vector<int32_t> next(texts_.size(), 0);
  begin(prompt);
  for (int64_t made = 0;; ++made) {
    bool any = false;
    for (size_t i = 0; i < texts_.size(); ++i) {
      if (!goes_on[i]) continue;  // a text that has ended is carried on with its last token
      const auto sample = static_cast<int64_t>(i);
      next[i] = sample_token(logits(sample), options, draws[i], texts_[i]);
      goes_on[i] = emit(sample, next[i]);
      any = any || goes_on[i];
    }
    if (!any || made + 1 == count) return;
    append(next);
  }
}

}  // namespace fullbore
