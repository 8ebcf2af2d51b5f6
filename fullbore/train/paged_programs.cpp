#include "fullbore/train/paged_programs.h"

#include <algorithm>
#include <utility>

#include "fullbore/base/check.h"
#include "fullbore/ops/update_rows.h"

namespace fullbore {
namespace {

/// The pool's tensors among a graph's State.
std::vector<StateEntry> pool_entries(const Graph& graph) {
  std::vector<StateEntry> entries = state_entries(graph);
  std::erase_if(entries, [](const StateEntry& entry) { return entry.role != Role::recurrent; });
  return entries;
}

Tensor checked_logits(Tensor logits, int64_t rows, int64_t vocabulary) {
  FB_CHECK(logits.rank() == 2 && logits.dim(0) == rows && logits.dim(1) >= vocabulary, "logits {}",
           logits.type().text());
  // A table may have rows beyond the tokens that there are.
  return cast(logits.dim(1) > vocabulary ? slice(logits, 1, 0, vocabulary) : logits, DType::f32);
}

/// What a row is between two tokens.
struct RowStates {
  Tensor tokens;    ///< i32 [R], the last of each
  Tensor position;  ///< i64 [R], its place
  Tensor live;      ///< i64 [R]
  Tensor made;      ///< i64 [R]

  std::vector<Tensor> all() const { return {tokens, position, live, made}; }
  static RowStates of(std::span<const Tensor> all) { return {all[0], all[1], all[2], all[3]}; }
};

class DecodeTrace {
 public:
  DecodeTrace(const PagedDecodeFunction& decode, PoolShape pool, int64_t vocabulary,
              const DecodeShape& shape)
      : decode_(decode), pool_(pool), vocabulary_(vocabulary), shape_(shape) {}

  Graph graph() {
    const TensorType of_rows{DType::i64, {shape_.rows}};
    RowStates rows;
    rows.tokens = trace_.batch("tokens", {DType::i32, {shape_.rows}});
    rows.position = trace_.batch("position", of_rows);
    rows.live = trace_.batch("live", of_rows);
    pages_ = trace_.batch("pages", {DType::i32, {shape_.rows, shape_.pages}});
    if (!shape_.draws) {
      trace_.result("logits", logits(rows));
      return trace_.finish();
    }
    rows.made = trace_.batch("made", of_rows);
    limit_ = trace_.batch("limit", of_rows);
    counter_ = trace_.batch("counter", of_rows);
    sample_ = trace_.batch("sample", of_rows);
    key_ = trace_.batch("key", {DType::i64, {}});
    if (shape_.kind != SamplingKind::greedy)
      drawn_.temperature = trace_.batch("temperature", {DType::f32, {}});
    if (shape_.kind == SamplingKind::kept) {
      drawn_.top_k = trace_.batch("top_k", {DType::i64, {}});
      drawn_.top_p = trace_.batch("top_p", {DType::f32, {}});
    }
    if (shape_.stops > 0) stops_ = trace_.batch("stops", {DType::i32, {1, shape_.stops}});
    const std::vector<Tensor> made = shape_.tokens == 1 ? one_token(rows) : loop_of_tokens(rows);
    trace_.result("tokens", made[0]);
    trace_.result("raw", made[1]);
    trace_.result("sampled", made[2]);
    return trace_.finish();
  }

 private:
  Tensor logits(const RowStates& rows) {
    PagedInputs inputs;
    inputs.tokens = expand_dims(rows.tokens, 1);
    inputs.position = rows.position;
    inputs.counts = rows.live;
    inputs.pages = pages_;
    inputs.pool_pages = pool_.pages;
    inputs.pool_dtype = pool_.dtype;
    const Tensor next = decode_(trace_, inputs);
    return checked_logits(next, shape_.rows, vocabulary_);
  }

  SampledRows draw(const RowStates& rows) {
    SampleRowsInputs inputs = drawn_;
    inputs.logits = logits(rows);
    if (shape_.kind != SamplingKind::greedy)
      inputs.uniform = draw_uniforms(key_, counter_, bit_or(sample_, shift_left(rows.made, 32.0)));
    return sample_rows(shape_.kind, inputs);
  }

  // What the row is when that token has been made of it.
  RowStates after(const RowStates& rows, Tensor tokens) const {
    Tensor goes_on = less(rows.made + 1.0, limit_);
    if (stops_.valid()) {
      const Tensor matches = cast(equal(expand_dims(tokens, 1), stops_), DType::i64);
      goes_on = logical_and(goes_on, equal(reduce_sum(matches, {1}), 0.0));
    }
    return {.tokens = tokens,
            .position = rows.position + rows.live,
            .live = rows.live * cast(goes_on, DType::i64),
            .made = rows.made + rows.live};
  }

  std::vector<Tensor> one_token(const RowStates& rows) {
    const SampledRows drawn = draw(rows);
    std::vector<Tensor> made;
    for (const Tensor each : {drawn.tokens, drawn.raw, drawn.sampled})
      made.push_back(expand_dims(each, 0));
    return made;
  }

  std::vector<Tensor> loop_of_tokens(const RowStates& rows) {
    std::vector<Tensor> carried = rows.all();
    const size_t first_pool = carried.size();
    const DecodeShape single{.rows = shape_.rows, .pages = shape_.pages, .draws = false};
    const std::vector<StateEntry> pools =
        pool_entries(PagedPrograms::trace_decode(decode_, pool_, vocabulary_, single));
    for (const StateEntry& pool : pools)
      carried.push_back(trace_.state(pool.name, pool.role, pool.type, Initializer::zeros()));
    const std::vector<Tensor> before(carried.begin() + static_cast<std::ptrdiff_t>(first_pool),
                                     carried.end());
    const LoopResult result = loop(
        trace_.builder(), carried, {}, {.iterations = shape_.tokens}, [&](const LoopBody& body) {
          const IterationScope iteration(trace_, body.index, shape_.tokens);
          std::vector<CarriedState::Entry> entries;
          for (size_t i = 0; i < pools.size(); ++i)
            entries.push_back({pools[i].name, body.carried[first_pool + i]});
          const CarriedState state(trace_, entries);
          const RowStates now = RowStates::of(body.carried);
          const SampledRows drawn = draw(now);
          const RowStates next = after(now, drawn.tokens);
          IterationResults results;
          results.carried = next.all();
          for (const Tensor& pool : state.next()) results.carried.push_back(pool);
          results.stacked = {drawn.tokens, drawn.raw, drawn.sampled};
          results.stop = equal(reduce_sum(next.live, {0}), 0.0);
          return results;
        });
    for (size_t i = 0; i < before.size(); ++i)
      trace_.update(before[i], result.carried[first_pool + i]);
    return result.stacked;
  }

  const PagedDecodeFunction& decode_;
  PoolShape pool_;
  int64_t vocabulary_;
  DecodeShape shape_;
  Trace trace_{"decode", false};
  Tensor pages_, limit_, counter_, sample_, key_, stops_;
  SampleRowsInputs drawn_;  ///< what is the same for all tokens
};

}  // namespace

PagedPrograms::PagedPrograms(PagedDecodeFunction decode, PoolShape pool, int64_t vocabulary,
                             State& state, const CompileOptions& options)
    : decode_(std::move(decode)),
      pool_(pool),
      vocabulary_(vocabulary),
      state_(state),
      options_(options) {}

Graph PagedPrograms::trace_prefill(const PagedDecodeFunction& decode, PoolShape pool, int64_t rows,
                                   int64_t length, int64_t pages) {
  Trace trace("prefill", false);
  PagedInputs inputs;
  inputs.tokens = trace.batch("tokens", {DType::i32, {rows, length}});
  inputs.position = trace.batch("position", {DType::i64, {rows}});
  inputs.counts = trace.batch("counts", {DType::i64, {rows}});
  inputs.pages = trace.batch("pages", {DType::i32, {rows, pages}});
  inputs.pool_pages = pool.pages;
  inputs.pool_dtype = pool.dtype;
  decode(trace, inputs);  // the logits are dead code
  return trace.finish();
}

Graph PagedPrograms::trace_decode(const PagedDecodeFunction& decode, PoolShape pool,
                                  int64_t vocabulary, const DecodeShape& shape) {
  return DecodeTrace(decode, pool, vocabulary, shape).graph();
}

BoundProgram& PagedPrograms::prefill(int64_t rows, int64_t length, int64_t pages) {
  const std::vector<int64_t> key{rows, length, pages};
  const auto known = prefills_.find(key);
  if (known != prefills_.end()) return known->second;
  return prefills_.emplace(key, compile(trace_prefill(decode_, pool_, rows, length, pages)))
      .first->second;
}

BoundProgram& PagedPrograms::decode(const DecodeShape& shape) {
  const auto known = decodes_.find(shape);
  if (known != decodes_.end()) return known->second;
  return decodes_.emplace(shape, compile(trace_decode(decode_, pool_, vocabulary_, shape)))
      .first->second;
}

Graph PagedPrograms::trace_copies() const {
  const Graph step =
      trace_decode(decode_, pool_, vocabulary_, {.rows = 1, .pages = 1, .draws = false});
  Trace trace("copy pages", false);
  const Tensor from = trace.batch("from", {DType::i64, {kCopies, 1}});
  const Tensor to = trace.batch("to", {DType::i64, {kCopies, 1}});
  const auto places = [&](Tensor pages) {
    const Tensor within = iota(trace.builder(), {DType::i64, {kCopies, kCachePageTokens}}, 1);
    return select(less(pages, 0.0), -1.0, pages * static_cast<double>(kCachePageTokens) + within);
  };
  for (const StateEntry& entry : pool_entries(step)) {
    const Tensor pool = trace.state(entry.name, entry.role, entry.type, Initializer::zeros());
    trace.update(pool, update_rows(pool, gather(pool, places(from)), places(to)));
  }
  return trace.finish();
}

void PagedPrograms::copy(std::span<const PagedRow::Copy> copies) {
  if (copies.empty()) return;
  if (copies_.empty()) copies_.emplace(0, compile(trace_copies()));
  BoundProgram& program = copies_.at(0);
  for (size_t first = 0; first < copies.size(); first += static_cast<size_t>(kCopies)) {
    const auto some =
        copies.subspan(first).first(std::min(copies.size() - first, static_cast<size_t>(kCopies)));
    const std::span<int64_t> from = program.input<int64_t>("from");
    const std::span<int64_t> to = program.input<int64_t>("to");
    std::ranges::fill(from, -1);
    std::ranges::fill(to, -1);
    for (size_t i = 0; i < some.size(); ++i) {
      from[i] = some[i].from;
      to[i] = some[i].to;
    }
    program.run();
  }
}

}  // namespace fullbore
