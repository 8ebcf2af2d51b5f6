// Rows of different lengths in one key-value cache: the logits are those of each row alone, without a cache.
#include "fullbore/train/page_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>

#include "fullbore/base/error.h"
#include "fullbore/base/philox.h"
#include "fullbore/nn/decoder_model.h"
#include "fullbore/runtime/program.h"
#include "fullbore/train/generator.h"
#include "fullbore/train/rollout.h"
#include "tests/support/device.h"

namespace fullbore {
namespace {

using ::testing::HasSubstr;

// --- the pool -------------------------------------------------------------------------------------

/// Rows and what their tokens are, by a pool in which pages hold numbers.
class PagedTexts {
 public:
  PagedTexts(int rows, int32_t pages) : pool(pages), memory(static_cast<size_t>(pages) * 16, -1) {
    for (int i = 0; i < rows; ++i) paged.emplace_back(pool, 16);
    texts.resize(static_cast<size_t>(rows));
  }

  bool extend(size_t row, int64_t tokens, int first) {
    const int64_t begin = paged[row].length();
    PagedRow::Copy copy;
    try {
      copy = paged[row].extend(tokens);
    } catch (const MemoryError&) {
      EXPECT_EQ(paged[row].length(), begin);
      return false;
    }
    if (copy.from >= 0)
      for (int i = 0; i < 16; ++i) place(copy.to, i) = place(copy.from, i);
    for (int64_t i = begin; i < begin + tokens; ++i) {
      const int32_t page = paged[row].pages()[static_cast<size_t>(i / 16)];
      EXPECT_EQ(pool.references(page), 1) << "a shared page is written";
      place(page, static_cast<int>(i % 16)) = first;
      texts[row].push_back(first++);
    }
    return true;
  }
  void fork(size_t row, size_t from, int64_t length) {
    paged[row].fork(paged[from], length);
    texts[row].assign(texts[from].begin(), texts[from].begin() + length);
  }
  void check() {
    int64_t held = 0;
    std::map<int32_t, int32_t> references;
    for (size_t row = 0; row < paged.size(); ++row) {
      ASSERT_EQ(paged[row].length(), static_cast<int64_t>(texts[row].size()));
      ASSERT_EQ(paged[row].pages().size(), (texts[row].size() + 15) / 16);
      for (size_t i = 0; i < texts[row].size(); ++i)
        ASSERT_EQ(place(paged[row].pages()[i / 16], static_cast<int>(i % 16)), texts[row][i]);
      for (const int32_t page : paged[row].pages()) ++references[page];
    }
    for (const auto& [page, count] : references) {
      ASSERT_EQ(pool.references(page), count) << page;
      ++held;
    }
    ASSERT_EQ(pool.free_pages() + held, pool.pages()) << "pages are lost";
  }

  PagePool pool;
  std::vector<PagedRow> paged;

 private:
  int& place(int32_t page, int i) { return memory[static_cast<size_t>(page * 16 + i)]; }
  std::vector<int> memory;
  std::vector<std::vector<int>> texts;
};

TEST(PagePool, RowsHoldWhatTheyWouldAloneAndNoPageIsLost) {
  PhiloxStream draws(7);
  PagedTexts texts(5, 24);
  int next = 0, refused = 0;
  const auto row = [&] { return static_cast<size_t>(draws.below(5)); };
  for (int step = 0; step < 3000; ++step) {
    switch (draws.below(5)) {
      case 0:
        texts.fork(
            1, 0,
            static_cast<int64_t>(draws.below(static_cast<uint64_t>(texts.paged[0].length() + 1))));
        break;
      case 1: texts.fork(row() / 2 + 2, 1, texts.paged[1].length()); break;
      case 2:
        if (draws.below(4) == 0) texts.fork(4, 3, 0);
        break;
      default: refused += texts.extend(row(), static_cast<int64_t>(draws.below(23)), next) ? 0 : 1;
    }
    next += 100;
    if (refused > 3) {
      refused = 0;
      texts.fork(0, 4, 0), texts.fork(2, 4, 0), texts.fork(3, 4, 0);
    }
    ASSERT_NO_FATAL_FAILURE(texts.check()) << "step " << step;
  }
  for (PagedRow& each : texts.paged) each.clear();
  EXPECT_EQ(texts.pool.free_pages(), 24);
}

TEST(PagePool, RowsThatGrowSideBySideHaveTheirPagesSideBySide) {
  PagePool pool(12);
  const auto grown = [&] {
    std::vector<PagedRow> rows;
    for (int i = 0; i < 3; ++i) rows.emplace_back(pool, 16);
    for (int page = 0; page < 4; ++page)
      for (PagedRow& row : rows) row.extend(16);
    std::vector<int32_t> pages;
    for (const PagedRow& row : rows)
      pages.insert(pages.end(), row.pages().begin(), row.pages().end());
    return pages;
  };
  const std::vector<int32_t> wanted = {0, 3, 6, 9, 1, 4, 7, 10, 2, 5, 8, 11};
  EXPECT_EQ(grown(), wanted);
  EXPECT_EQ(grown(), wanted) << "where other rows had been";
}

// --- the cache ------------------------------------------------------------------------------------

constexpr int64_t kBatch = 3;
constexpr int64_t kVocabulary = 30;
constexpr int64_t kRowPages = 3;
constexpr int64_t kPool = 10;

nn::DecoderConfig model(nn::DecoderConfig::Style style) {
  return {.style = style,
          .vocabulary = kVocabulary,
          .layers = 2,
          .heads = 4,
          .width = 32,
          .context = 48,
          .groups = style == nn::DecoderConfig::Style::llama ? 2 : 0};
}

struct Traced {
  Graph graph;
  std::map<std::string, Initializer> initializers;
};

/// Logits [B,T,V] of `length` tokens of each row, over the pool or without a cache.
Traced traced(const nn::DecoderConfig& config, int64_t batch, int64_t length, bool paged,
              std::optional<DType> pool_dtype = {}) {
  Trace trace("decode", false);
  nn::DecoderInputs inputs;
  const Tensor tokens = trace.batch("tokens", {DType::i32, {batch, length}});
  inputs.embeddings = nn::decoder_embeddings(trace, tokens, config);
  if (paged)
    inputs.cache = {.position = trace.batch("position", {DType::i64, {batch}}),
                    .capacity = kRowPages * nn::kPageTokens,
                    .pages = trace.batch("pages", {DType::i32, {batch, kRowPages}}),
                    .counts = trace.batch("counts", {DType::i64, {batch}}),
                    .pool_pages = kPool,
                    .pool_dtype = pool_dtype,
                    .copies = trace.batch("copies", {DType::i32, {batch, 2}})};
  const Tensor hidden = nn::decoder_states(trace, inputs, config).last;
  trace.result("logits", language_model_logits(trace, nn::decoder_head(trace, hidden, config)));
  std::map<std::string, Initializer> initializers = trace.initializers();
  return {trace.finish(), std::move(initializers)};
}

class PagedCache : public ::testing::TestWithParam<nn::DecoderConfig::Style> {
 protected:
  PagedCache() : config_(model(GetParam())), pool_(kPool), device_(testing_support::cpu_device(2)) {
    const Traced step = traced(config_, kBatch, 1, true);
    state_ = State(state_entries(step.graph), device_);
    for (size_t i = 0; i < state_.entries().size(); ++i) {
      const StateEntry& entry = state_.entries()[i];
      std::vector<std::byte> values(static_cast<size_t>(entry.type.bytes()));
      initialize(step.initializers.at(entry.name), entry.type, 5, entry.name, values.data());
      if (entry.role == Role::parameter) state_.write(static_cast<int>(i), values);
    }
    for (int64_t row = 0; row < kBatch; ++row) rows_.emplace_back(pool_, nn::kPageTokens);
    texts_.resize(kBatch);
  }

  Program& program(int64_t batch, int64_t length, bool paged) {
    const auto key = std::tuple(batch, length, paged);
    const auto known = programs_.find(key);
    if (known != programs_.end()) return known->second;
    return programs_
        .emplace(key, Program::compile(traced(config_, batch, length, paged).graph, state_))
        .first->second;
  }

  /// Takes up to `length` tokens of each row, and compares the logits of each with those of the row alone.
  void take(int64_t length, const std::vector<std::vector<int32_t>>& tokens) {
    struct alignas(64) Block {
      std::array<int32_t, 64> tokens{};
    } block;
    alignas(64) int64_t position[kBatch] = {}, counts[kBatch] = {};
    alignas(64) int32_t pages[kBatch * kRowPages], copies[kBatch * 2];
    std::fill_n(pages, kBatch * kRowPages, -1);
    for (size_t row = 0; row < kBatch; ++row) {
      position[row] = rows_[row].length();
      counts[row] = static_cast<int64_t>(tokens[row].size());
      const PagedRow::Copy copy = rows_[row].extend(counts[row]);
      copies[2 * row] = copy.from;
      copies[2 * row + 1] = copy.to;
      std::ranges::copy(rows_[row].pages(), pages + row * kRowPages);
      std::ranges::copy(tokens[row], block.tokens.begin() + static_cast<int64_t>(row) * length);
      texts_[row].insert(texts_[row].end(), tokens[row].begin(), tokens[row].end());
    }
    Program& paged = program(kBatch, length, true);
    std::vector<const void*> batch;
    for (const Graph::Input& input : paged.plan().graph.inputs()) {
      if (input.name == "tokens") batch.push_back(block.tokens.data());
      if (input.name == "position") batch.push_back(position);
      if (input.name == "pages") batch.push_back(pages);
      if (input.name == "counts") batch.push_back(counts);
      if (input.name == "copies") batch.push_back(copies);
    }
    paged.run(batch);
    std::vector<float> logits(static_cast<size_t>(kBatch * length * kVocabulary));
    paged.read_result(paged.output("logits"), std::as_writable_bytes(std::span(logits)));
    for (size_t row = 0; row < kBatch; ++row) {
      if (tokens[row].empty()) continue;
      const std::vector<float> alone = logits_alone(texts_[row]);
      const size_t begin = texts_[row].size() - tokens[row].size();
      for (size_t i = 0; i < tokens[row].size() * kVocabulary; ++i)
        ASSERT_NEAR(logits[row * static_cast<size_t>(length * kVocabulary) + i],
                    alone[begin * kVocabulary + i], 1e-5)
            << "row " << row << ", token " << begin + i / kVocabulary;
    }
  }

  /// Of one length, whatever the text's: what follows a token changes nothing before it.
  std::vector<float> logits_alone(const std::vector<int32_t>& text) {
    std::vector<int32_t> padded(static_cast<size_t>(config_.context) + 16, 3);
    auto* const aligned =
        reinterpret_cast<int32_t*>((reinterpret_cast<uintptr_t>(padded.data()) + 63) / 64 * 64);
    std::ranges::copy(text, aligned);
    Program& whole = program(1, config_.context, false);
    const void* const batch[] = {aligned};
    whole.run(batch);
    std::vector<float> logits(static_cast<size_t>(config_.context * kVocabulary));
    whole.read_result(whole.output("logits"), std::as_writable_bytes(std::span(logits)));
    return logits;
  }

  std::vector<int32_t> draw(int64_t count) {
    std::vector<int32_t> tokens;
    for (int64_t i = 0; i < count; ++i)
      tokens.push_back(static_cast<int32_t>(draws_.below(kVocabulary)));
    return tokens;
  }

  nn::DecoderConfig config_;
  PagePool pool_;
  std::shared_ptr<Device> device_;
  State state_;
  std::vector<PagedRow> rows_;
  std::vector<std::vector<int32_t>> texts_;
  std::map<std::tuple<int64_t, int64_t, bool>, Program> programs_;
  PhiloxStream draws_{3};
};

TEST_P(PagedCache, RowsOfAllLengthsHaveTheirOwnLogits) {
  // Chunks of 16, with padding where a row has fewer; then single tokens, some rows resting.
  ASSERT_NO_FATAL_FAILURE(take(16, {draw(5), draw(16), draw(16)}));
  ASSERT_NO_FATAL_FAILURE(take(16, {{}, draw(3), draw(16)}));
  ASSERT_NO_FATAL_FAILURE(take(16, {{}, {}, draw(1)}));
  for (int step = 0; step < 12; ++step)
    ASSERT_NO_FATAL_FAILURE(take(1, {draw(1), draw(step % 2), draw(1)}));
}

TEST_P(PagedCache, RowsThatGoOnFromTheSameTokensShareTheirPages) {
  ASSERT_NO_FATAL_FAILURE(take(16, {draw(16), {}, {}}));
  ASSERT_NO_FATAL_FAILURE(take(16, {draw(5), {}, {}}));
  // All from 21 tokens, and one of them from 18, within a page that others go on to write.
  for (const auto& [row, length] : {std::pair{1, 21}, std::pair{2, 18}}) {
    const auto to = static_cast<size_t>(row);
    rows_[to].fork(rows_[0], length);
    texts_[to].assign(texts_[0].begin(), texts_[0].begin() + length);
  }
  EXPECT_EQ(kPool - pool_.free_pages(), 2);
  ASSERT_NO_FATAL_FAILURE(take(16, {draw(2), {}, draw(7)}));
  EXPECT_EQ(pool_.references(rows_[0].pages()[0]), 3) << "the first page stays shared";
  EXPECT_EQ(pool_.references(rows_[0].pages()[1]), 1) << "the second was copied";
  for (int step = 0; step < 6; ++step)
    ASSERT_NO_FATAL_FAILURE(take(1, {draw(1), draw(1), draw(1)}));
  for (PagedRow& row : rows_) row.clear();
  EXPECT_EQ(pool_.free_pages(), kPool);
}

// Of the first layer, which nothing that was rounded has reached: chunks, single tokens and pages that are copied.
TEST_P(PagedCache, KeysAndValuesAreRoundedOnceAsTheyAreWritten) {
  const auto pools = [&](std::optional<DType> dtype) {
    const Graph step = traced(config_, kBatch, 1, true, dtype).graph;
    State state(state_entries(step), device_);
    for (const StateEntry& entry : state.entries())
      if (entry.role == Role::parameter)
        state.write<float>(entry.name, state_.read<float>(entry.name));
    for (const int64_t length : {16, 1}) {
      Program program = Program::compile(traced(config_, kBatch, length, true, dtype).graph, state);
      alignas(64) std::array<int32_t, 64> tokens{};
      for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<int32_t>(i * 7 % 30);
      alignas(64) int64_t position[kBatch] = {}, counts[kBatch] = {length, length, 1};
      alignas(64) int32_t pages[kBatch * kRowPages] = {4, 0, 9, 1, 2, 3, 5, 6, 7};
      alignas(64) int32_t copies[kBatch * 2] = {-1, -1, -1, -1, -1, -1};
      if (length == 1) {
        std::fill_n(position, kBatch, 15);
        copies[0] = 1, copies[1] = 4;  // what the second row has, but for its last token
      }
      const std::map<std::string, const void*> given = {{"tokens", tokens.data()},
                                                        {"position", position},
                                                        {"pages", pages},
                                                        {"counts", counts},
                                                        {"copies", copies}};
      std::vector<const void*> batch;
      for (const Graph::Input& input : program.plan().graph.inputs())
        if (!is_kept(input.role)) batch.push_back(given.at(input.name));
      program.run(batch);
    }
    return state;
  };
  const State wide = pools({}), narrow = pools(DType::bf16);
  int compared = 0;
  for (const StateEntry& entry : wide.entries()) {
    if (entry.role != Role::recurrent || entry.name.find(".0.") == std::string::npos) continue;
    const std::vector<float> values = wide.read<float>(entry.name);
    const std::vector<uint16_t> bits = narrow.read<uint16_t>(entry.name);
    ASSERT_EQ(bits.size(), values.size());
    for (size_t i = 0; i < bits.size(); ++i)
      ASSERT_EQ(bits[i], f32_to_bf16(values[i])) << entry.name << ", " << i;
    EXPECT_GT(std::ranges::count_if(values, [](float x) { return x != 0; }), 500);
    ++compared;
  }
  EXPECT_EQ(compared, 2);
}

// Texts that go beyond the context too, and that begin alike.
TEST_P(PagedCache, SeveralPromptsAreContinuedAsEachAlone) {
  const auto logits_of = [&](Trace& trace, Tensor hidden) {
    return squeeze(language_model_logits(trace, nn::decoder_head(trace, hidden, config_)), 1);
  };
  const DecodeFunction decode = [&](Trace& trace, Tensor tokens, Tensor position, Tensor row,
                                    int64_t capacity) {
    const Tensor x = nn::decoder_embeddings(trace, tokens, config_);
    const nn::DecoderInputs inputs{.embeddings = x,
                                   .cache = {.position = position, .capacity = capacity}};
    return logits_of(trace,
                     dynamic_slice(nn::decoder_states(trace, inputs, config_).last, row, 1, 1));
  };
  const PagedDecodeFunction paged = [&](Trace& trace, const PagedInputs& given) {
    const Tensor x = nn::decoder_embeddings(trace, given.tokens, config_);
    const nn::DecoderInputs inputs{.embeddings = x,
                                   .cache = {.position = given.position,
                                             .capacity = given.pages.dim(1) * nn::kPageTokens,
                                             .pages = given.pages,
                                             .counts = given.counts,
                                             .pool_pages = given.pool_pages,
                                             .pool_dtype = given.pool_dtype,
                                             .copies = given.copies}};
    const Tensor last = nn::decoder_states(trace, inputs, config_).last;
    const int64_t length = last.dim(1);
    const Tensor first =
        iota(trace.builder(), {DType::i64, {last.dim(0)}}, 0) * static_cast<double>(length);
    const Tensor rows = reshape(last, {last.dim(0) * length, last.dim(2)});
    return logits_of(trace, expand_dims(gather(rows, first + given.counts - 1.0), 1));
  };
  const RolloutSizes sizes{
      .slots = kBatch, .context = config_.context, .vocabulary = kVocabulary, .chunk = 16};
  const auto filled = [&](const Graph& graph) {
    State state(state_entries(graph), device_);
    for (size_t i = 0; i < state.entries().size(); ++i)
      if (const StateEntry& entry = state.entries()[i]; entry.role == Role::parameter)
        state.write<float>(entry.name, state_.read<float>(entry.name));
    return state;
  };
  const std::vector<int32_t> start = draw(21);
  std::vector<std::vector<int32_t>> prompts(kBatch, start);
  prompts[0].resize(18), prompts[1].push_back(3);
  for (const int32_t token : draw(20)) prompts[2].push_back(token);
  std::vector<std::vector<int32_t>> made(kBatch);
  State pool = filled(Rollout::trace(paged, sizes));
  Rollout together(paged, sizes, pool, {});
  const SamplingOptions options{.temperature = 0};
  std::vector<RolloutPrompt> asked;
  for (const std::vector<int32_t>& prompt : prompts)
    asked.push_back({.tokens = prompt, .max_new_tokens = 50});
  asked[0].max_new_tokens = 10;
  together.run(asked, {.sampling = options, .slides = true}, [&](RolloutRow&& row) {
    made[row.prompt] = std::move(row.tokens);
    if (row.prompt == 0) {
      EXPECT_GE(together.used_pages(), 2 + 1) << "the others go on";
    }
  });
  EXPECT_EQ(together.used_pages(), 0);
  const GeneratorSizes one{
      .samples = 1, .context = config_.context, .vocabulary = kVocabulary, .chunk = 16};
  State own = filled(Generator::trace(decode, one, 1));
  Generator alone(decode, one, own, {});
  for (size_t row = 0; row < kBatch; ++row) {
    std::vector<int32_t> expected;
    alone.generate(prompts[row], row == 0 ? 10 : 50, options, 9, [&](int64_t, int32_t token) {
      expected.push_back(token);
      return true;
    });
    EXPECT_EQ(made[row], expected) << "prompt " << row;
  }
}

INSTANTIATE_TEST_SUITE_P(Models, PagedCache,
                         ::testing::Values(nn::DecoderConfig::Style::gpt2,
                                           nn::DecoderConfig::Style::llama),
                         [](const auto& style) {
                           return style.param == nn::DecoderConfig::Style::gpt2 ? "gpt2" : "llama";
                         });

}  // namespace
}  // namespace fullbore
