#include "fullbore/train/paged_generator.h"

#include <algorithm>
#include <utility>

#include "fullbore/base/check.h"
#include "fullbore/base/philox.h"

namespace fullbore {
namespace {

size_t common_prefix(std::span<const int32_t> a, std::span<const int32_t> b) {
  return static_cast<size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

}  // namespace

int64_t PagedGenerator::row_pages(const PagedSizes& sizes) {
  return (sizes.context + kPageTokens - 1) / kPageTokens;
}

Graph PagedGenerator::trace(const PagedDecodeFunction& decode, const PagedSizes& sizes,
                            int64_t length) {
  Trace trace("generate", false);
  PagedInputs inputs;
  inputs.tokens = trace.batch("tokens", {DType::i32, {sizes.rows, length}});
  inputs.position = trace.batch("position", {DType::i64, {sizes.rows}});
  inputs.counts = trace.batch("counts", {DType::i64, {sizes.rows}});
  inputs.pages = trace.batch("pages", {DType::i32, {sizes.rows, row_pages(sizes)}});
  inputs.copies = trace.batch("copies", {DType::i32, {sizes.rows, 2}});
  inputs.pool_pages = sizes.rows * row_pages(sizes);
  const Tensor logits = decode(trace, inputs);
  FB_CHECK(logits.rank() == 2 && logits.dim(0) == sizes.rows, "logits {}", logits.type().text());
  trace.result("logits", cast(logits, DType::f32));
  return trace.finish();
}

PagedGenerator::PagedGenerator(PagedDecodeFunction decode, const PagedSizes& sizes, State& state,
                               const CompileOptions& options)
    : decode_(std::move(decode)),
      sizes_(sizes),
      state_(state),
      options_(options),
      pool_(static_cast<int32_t>(sizes.rows * row_pages(sizes))) {
  FB_CHECK(sizes.rows > 0 && sizes.context > 0 && sizes.chunk > 0, "{} rows, context {}",
           sizes.rows, sizes.context);
  sizes_.chunk = std::min(sizes.chunk, sizes.context);
  for (int64_t row = 0; row < sizes.rows; ++row)
    rows_.push_back({PagedRow(pool_, kPageTokens), {}, 0, {}});
}

Program& PagedGenerator::program(int64_t length) {
  const auto known = programs_.find(length);
  if (known != programs_.end()) return known->second;
  return programs_
      .emplace(length, Program::compile(trace(decode_, sizes_, length), state_, options_))
      .first->second;
}

void PagedGenerator::run(int64_t length, size_t rows) {
  const auto count = static_cast<size_t>(sizes_.rows);
  const auto width = static_cast<size_t>(row_pages(sizes_));
  Field<int32_t> tokens(sizes_.rows * length), pages(sizes_.rows * row_pages(sizes_)),
      copies(2 * sizes_.rows);
  Field<int64_t> position(sizes_.rows), counts(sizes_.rows);
  std::fill_n(pages.data(), count * width, -1);
  std::fill_n(copies.data(), 2 * count, -1);
  for (size_t i = 0; i < count; ++i) {
    Row& row = rows_[i];
    position.data()[i] = row.pages.length();
    const size_t pending = i < rows ? row.text.size() - row.taken : 0;
    const size_t used = std::min(pending, static_cast<size_t>(length));
    const PagedRow::Copy copy = row.pages.extend(static_cast<int64_t>(used));
    counts.data()[i] = static_cast<int64_t>(used);
    copies.data()[2 * i] = copy.from;
    copies.data()[2 * i + 1] = copy.to;
    std::copy_n(row.text.data() + row.taken, used, tokens.data() + i * static_cast<size_t>(length));
    std::ranges::copy(row.pages.pages(), pages.data() + i * width);
    row.taken += used;
  }
  Program& step = program(length);
  std::vector<const void*> batch;
  for (const Graph::Input& input : step.plan().graph.inputs()) {
    if (is_kept(input.role)) continue;
    batch.push_back(input.name == "tokens"     ? static_cast<const void*>(tokens.data())
                    : input.name == "position" ? position.data()
                    : input.name == "counts"   ? static_cast<const void*>(counts.data())
                    : input.name == "pages"    ? static_cast<const void*>(pages.data())
                                               : copies.data());
  }
  step.run(batch);
  const int output = step.output("logits");
  const int64_t extent = step.result_type(output).shape[1];
  for (size_t i = 0; i < count; ++i) {
    if (counts.data()[i] == 0) continue;
    Row& row = rows_[i];
    row.logits.resize(static_cast<size_t>(extent));
    step.read_result(output, std::as_writable_bytes(std::span(row.logits)),
                     static_cast<int64_t>(i) * extent * static_cast<int64_t>(sizeof(float)));
  }
}

void PagedGenerator::take_pending(size_t rows) {
  while (true) {
    size_t most = 0;
    for (size_t i = 0; i < rows; ++i) most = std::max(most, rows_[i].text.size() - rows_[i].taken);
    if (most == 0) return;
    run(most == 1 ? 1 : sizes_.chunk, rows);
  }
}

void PagedGenerator::begin(std::span<const std::vector<int32_t>> prompts) {
  FB_CHECK(static_cast<int64_t>(prompts.size()) == sizes_.rows, "{} prompts", prompts.size());
  const auto context = static_cast<size_t>(sizes_.context);
  for (size_t i = 0; i < rows_.size(); ++i) {
    FB_CHECK(!prompts[i].empty(), "nothing to continue");
    rows_[i].pages.clear();
    rows_[i].text.assign(
        prompts[i].end() - static_cast<int64_t>(std::min(prompts[i].size(), context)),
        prompts[i].end());
    rows_[i].taken = 0;
  }
  // What all begin with, but for a last token of each, whose logits are wanted, is taken once.
  size_t shared = rows_[0].text.size() - 1;
  for (const Row& row : rows_)
    shared = std::min({shared, common_prefix(rows_[0].text, row.text), row.text.size() - 1});
  if (rows_.size() > 1 && shared >= static_cast<size_t>(kPageTokens)) {
    const std::vector<int32_t> whole = rows_[0].text;
    rows_[0].text.resize(shared);
    take_pending(1);
    rows_[0].text = whole;
    for (size_t i = 1; i < rows_.size(); ++i) {
      rows_[i].pages.fork(rows_[0].pages, static_cast<int64_t>(shared));
      rows_[i].taken = shared;
    }
  }
  take_pending(rows_.size());
}

void PagedGenerator::generate(std::span<const std::vector<int32_t>> prompts, int64_t count,
                              const SamplingOptions& options, uint64_t seed,
                              const std::function<bool(int64_t row, int32_t token)>& emit) {
  if (count <= 0) return;
  begin(prompts);
  const auto vocabulary = static_cast<size_t>(sizes_.vocabulary);
  std::vector<std::vector<bool>> seen(rows_.size(), std::vector<bool>(vocabulary, false));
  for (size_t i = 0; i < rows_.size(); ++i)
    for (const int32_t token : prompts[i])
      if (token >= 0 && static_cast<size_t>(token) < vocabulary)
        seen[i][static_cast<size_t>(token)] = true;
  std::vector<bool> live(rows_.size(), true);
  for (int64_t made = 0; made < count; ++made) {
    bool any = false;
    for (size_t i = 0; i < rows_.size(); ++i) {
      if (!live[i]) continue;
      Row& row = rows_[i];
      PhiloxStream draws(seed, 0);
      draws.skip(static_cast<uint64_t>(made));
      const int32_t token =
          sample_token(std::span(row.logits).first(vocabulary), options, draws, seen[i]);
      seen[i][static_cast<size_t>(token)] = true;
      live[i] = emit(static_cast<int64_t>(i), token);
      any = any || live[i];
      if (!live[i]) {
        row.pages.clear();
        continue;
      }
      row.text.push_back(token);
      if (row.pages.length() < sizes_.context) continue;
      row.pages.clear();
      row.text.erase(row.text.begin(), row.text.end() - std::max<int64_t>(1, sizes_.context / 2));
      row.taken = 0;
    }
    if (!any || made + 1 == count) return;
    take_pending(rows_.size());
  }
}

}  // namespace fullbore
