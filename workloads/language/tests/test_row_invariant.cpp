// engine.row_invariant: a token's logits and log-probabilities are the same bits in a batch of whole rows, in a row packed of
// several documents, and continued over a paged cache with any number of rows beside it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>

#include "fullbore/autodiff/backward.h"
#include "fullbore/base/philox.h"
#include "fullbore/nn/key_value_cache.h"
#include "fullbore/ops/ops.h"
#include "fullbore/runtime/program.h"
#include "fullbore/train/rollout.h"
#include "tests/support/device.h"
#include "workloads/language/models.h"

namespace fullbore {
namespace {

using testing_support::cpu_device;
using Text = std::vector<int32_t>;

struct Shape {
  int64_t width, heads, layers, context, vocabulary;
};
void PrintTo(const Shape& shape, std::ostream* out) { *out << "width " << shape.width; }

LanguageModelConfig config_of(const Shape& shape) {
  return {.vocabulary = shape.vocabulary,
          .layers = shape.layers,
          .heads = shape.heads,
          .width = shape.width,
          .context = shape.context,
          .tanh_gelu = true};
}

/// Logits of every place of a text, and the log-probability of its next token.
struct Scores {
  std::vector<std::vector<float>> logits;
  std::vector<float> next;
};

/// One batch input's values, where programs want them.
class Field {
 public:
  template <class T>
  explicit Field(const std::vector<T>& values) : blocks_(values.size() * sizeof(T) / 64 + 1) {
    if (!values.empty()) std::memcpy(blocks_.data(), values.data(), values.size() * sizeof(T));
  }
  const void* data() const { return blocks_.data(); }

 private:
  struct alignas(64) Block {
    std::byte bytes[64];
  };
  std::vector<Block> blocks_;
};

void run(Program& program, const std::map<std::string, Field>& fields) {
  std::vector<const void*> batch;
  for (const Graph::Input& input : program.plan().graph.inputs())
    if (!is_kept(input.role)) batch.push_back(fields.at(input.name).data());
  program.run(batch);
}

class RowInvariant : public testing::TestWithParam<Shape> {
 protected:
  static constexpr int64_t kMostRows = 19;
  static constexpr int64_t kChunk = 7;

  RowInvariant() {
    options_.row_invariant = true;
    Trace trace("parameters", false);
    const Tensor tokens = trace.batch("tokens", {DType::i32, {1, 1}});
    trace.result("logits", gpt(trace, tokens, config_));
    // The pools that decoding adds, of the most rows.
    std::vector<StateEntry> entries = state_entries(trace.finish());
    for (const StateEntry& entry : state_entries(decoding(kMostRows, 1)))
      if (entry.role == Role::recurrent) entries.push_back(entry);
    state_ = State(entries, cpu_device(1));
    for (size_t i = 0; i < entries.size(); ++i) {
      if (entries[i].role != Role::parameter) continue;
      PhiloxStream draws(17, i);
      testing_support::Edited<float> values(state_, entries[i].name);
      for (float& x : values) x += static_cast<float>(0.15 * draws.normal());
    }
  }

  Text text(int64_t length, uint64_t seed) const {
    Text made;
    PhiloxStream draws(seed, 3);
    while (static_cast<int64_t>(made.size()) < length)
      made.push_back(
          static_cast<int32_t>(draws.uniform() * static_cast<double>(config_.vocabulary)));
    return made;
  }

  static Tensor next_scores(Tensor logits, Tensor targets) {
    return 0.0 - cross_entropy(logits, targets);
  }

  // What keeps the gradient of all parameters in the program.
  static void add_gradient(Trace& trace, Tensor next) {
    std::vector<Tensor> wanted;
    for (const Trace::Parameter& each : trace.parameters()) wanted.push_back(each.tensor);
    const std::vector<Tensor> slopes = gradient(reduce_sum(next, {0, 1}), wanted);
    for (size_t i = 0; i < slopes.size(); ++i)
      trace.result(fmt::format("slope{}", i),
                   reduce_sum(slopes[i] * slopes[i], axes_of(slopes[i])));
  }
  static std::vector<int64_t> axes_of(Tensor x) {
    std::vector<int64_t> axes(static_cast<size_t>(x.rank()));
    std::iota(axes.begin(), axes.end(), int64_t{0});
    return axes;
  }

  // Whole texts as rows of `length` tokens, zeros behind them.
  std::vector<Scores> in_rows(const std::vector<Text>& texts, int64_t length,
                              bool trained = false) {
    const auto rows = static_cast<int64_t>(texts.size());
    Trace trace("rows", trained);
    const Tensor tokens = trace.batch("tokens", {DType::i32, {rows, length}});
    const Tensor targets = trace.batch("targets", {DType::i32, {rows, length}});
    const Tensor logits = gpt(trace, tokens, config_);
    const Tensor next = next_scores(logits, targets);
    trace.result("logits", logits);
    trace.result("next", next);
    if (trained) add_gradient(trace, next);
    Program program = Program::compile(trace.finish(), state_, options_);
    std::vector<int32_t> in(static_cast<size_t>(rows * length), 0), out(in.size(), -1);
    for (size_t row = 0; row < texts.size(); ++row) {
      std::ranges::copy(texts[row], in.begin() + static_cast<int64_t>(row) * length);
      std::copy(texts[row].begin() + 1, texts[row].end(),
                out.begin() + static_cast<int64_t>(row) * length);
    }
    run(program, {{"tokens", Field(in)}, {"targets", Field(out)}});
    std::vector<Scores> scores;
    for (size_t row = 0; row < texts.size(); ++row)
      scores.push_back(read(program, static_cast<int64_t>(row) * length, texts[row].size()));
    return scores;
  }

  Scores read(const Program& program, int64_t first, size_t count) const {
    const auto logits = program.read_result<float>(program.output("logits"));
    const auto next = program.read_result<float>(program.output("next"));
    Scores scores;
    for (size_t i = 0; i < count; ++i) {
      const auto at = logits.begin() + (first + static_cast<int64_t>(i)) * config_.vocabulary;
      scores.logits.emplace_back(at, at + config_.vocabulary);
      scores.next.push_back(next[static_cast<size_t>(first) + i]);
    }
    return scores;
  }

  // All texts one behind the other in one row, none of which sees another.
  std::vector<Scores> packed(const std::vector<Text>& texts) {
    Text tokens, targets, segments, positions;
    for (size_t i = 0; i < texts.size(); ++i)
      for (size_t t = 0; t < texts[i].size(); ++t) {
        tokens.push_back(texts[i][t]);
        targets.push_back(t + 1 < texts[i].size() ? texts[i][t + 1] : -1);
        segments.push_back(static_cast<int32_t>(i));
        positions.push_back(static_cast<int32_t>(t));
      }
    const TensorType type{DType::i32, {1, static_cast<int64_t>(tokens.size())}};
    Trace trace("packed", false);
    const PackedTokens inputs{trace.batch("tokens", type), trace.batch("segments", type),
                              trace.batch("positions", type)};
    const Tensor out = trace.batch("targets", type);
    const Tensor logits = gpt_packed(trace, inputs, config_);
    trace.result("logits", logits);
    trace.result("next", next_scores(logits, out));
    Program program = Program::compile(trace.finish(), state_, options_);
    run(program, {{"tokens", Field(tokens)},
                  {"targets", Field(targets)},
                  {"segments", Field(segments)},
                  {"positions", Field(positions)}});
    std::vector<Scores> scores;
    int64_t first = 0;
    for (const Text& text : texts) {
      scores.push_back(read(program, first, text.size()));
      first += static_cast<int64_t>(text.size());
    }
    return scores;
  }

  int64_t pages() const { return (config_.context + nn::kPageTokens - 1) / nn::kPageTokens; }

  Graph decoding(int64_t rows, int64_t length) const {
    Trace trace("decode", false);
    const PagedInputs inputs{trace.batch("tokens", {DType::i32, {rows, length}}),
                             trace.batch("position", {DType::i64, {rows}}),
                             trace.batch("counts", {DType::i64, {rows}}),
                             trace.batch("pages", {DType::i32, {rows, pages()}}),
                             trace.batch("copies", {DType::i32, {rows, 2}}),
                             kMostRows * pages()};
    const Tensor targets = trace.batch("targets", {DType::i32, {rows}});
    const Tensor logits = gpt_paged_decode(trace, inputs, config_);
    trace.result("logits", logits);
    trace.result("next", next_scores(logits, targets));
    return trace.finish();
  }

  // The texts side by side over the cache: `length` tokens of each at a time. Scores of what each call's last token says.
  std::vector<std::map<size_t, Scores>> continued(const std::vector<Text>& texts, int64_t length) {
    const auto rows = static_cast<int64_t>(texts.size());
    Program program = Program::compile(decoding(rows, length), state_, options_);
    std::vector<int32_t> table, copies(static_cast<size_t>(2 * rows), -1);
    for (int64_t page = 0; page < rows * pages(); ++page)  // in no order
      table.push_back(static_cast<int32_t>((page * 7 + 3) % (rows * pages())));
    if ((rows * pages()) % 7 == 0) std::ranges::reverse(table);
    std::vector<std::map<size_t, Scores>> found(texts.size());
    size_t longest = 0;
    for (const Text& text : texts) longest = std::max(longest, text.size());
    for (size_t at = 0; at < longest; at += static_cast<size_t>(length)) {
      std::vector<int32_t> tokens(static_cast<size_t>(rows * length), 1), targets;
      std::vector<int64_t> position, counts;
      for (size_t row = 0; row < texts.size(); ++row) {
        const Text& text = texts[row];
        const size_t end = std::min(text.size(), at + static_cast<size_t>(length));
        position.push_back(static_cast<int64_t>(std::min(at, text.size())));
        counts.push_back(at < end ? static_cast<int64_t>(end - at) : 0);
        for (size_t t = at; t < end; ++t)
          tokens[row * static_cast<size_t>(length) + t - at] = text[t];
        targets.push_back(end < text.size() ? text[end] : -1);
      }
      run(program, {{"tokens", Field(tokens)},
                    {"position", Field(position)},
                    {"counts", Field(counts)},
                    {"pages", Field(table)},
                    {"copies", Field(copies)},
                    {"targets", Field(targets)}});
      for (size_t row = 0; row < texts.size(); ++row)
        if (counts[row] > 0)
          found[row][at + static_cast<size_t>(counts[row]) - 1] =
              read(program, static_cast<int64_t>(row), 1);
    }
    return found;
  }

  const LanguageModelConfig config_ = config_of(GetParam());
  CompileOptions options_;
  State state_;
};

// How many elements differ, and by how much at most: "" if none does.
std::string difference(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return "sizes differ";
  size_t count = 0;
  double most = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::bit_cast<uint32_t>(a[i]) == std::bit_cast<uint32_t>(b[i])) continue;
    ++count;
    most = std::max(most, static_cast<double>(std::abs(a[i] - b[i])));
  }
  if (count == 0) return "";
  return fmt::format("{} of {} differ, by {} at most", count, a.size(), most);
}

void expect_same(const Scores& one, const Scores& other, const std::string& where) {
  ASSERT_EQ(one.logits.size(), other.logits.size());
  for (size_t t = 0; t < one.logits.size(); ++t)
    ASSERT_EQ(difference(one.logits[t], other.logits[t]), "") << where << ", place " << t;
  ASSERT_EQ(difference(one.next, other.next), "") << where;
}

void expect_same(const Scores& whole, const std::map<size_t, Scores>& some,
                 const std::string& where) {
  ASSERT_FALSE(some.empty());
  for (const auto& [place, scores] : some) {
    ASSERT_EQ(difference(whole.logits[place], scores.logits[0]), "")
        << where << ", place " << place;
    ASSERT_EQ(difference({whole.next[place]}, scores.next), "") << where << ", place " << place;
  }
}

TEST_P(RowInvariant, WholeRowsOfAnyBatchAndLength) {
  const int64_t context = config_.context;
  const std::vector<Text> texts = {text(context - 3, 1), text(5, 2), text(context / 2, 3)};
  const std::vector<Scores> beside = in_rows(texts, context);
  for (size_t i = 0; i < texts.size(); ++i) {
    const auto length = static_cast<int64_t>(texts[i].size());
    expect_same(in_rows({texts[i]}, length)[0], beside[i], fmt::format("text {} alone", i));
  }
}

TEST_P(RowInvariant, WithAGradientBehindIt) {
  const std::vector<Text> texts = {text(config_.context - 3, 1), text(5, 2)};
  const std::vector<Scores> trained = in_rows(texts, config_.context, true);
  expect_same(in_rows({texts[0]}, config_.context)[0], trained[0], "text 0");
  expect_same(in_rows({texts[1]}, 5)[0], trained[1], "text 1");
}

TEST_P(RowInvariant, DocumentsPackedIntoOneRow) {
  // The last one lies across the end of a tile of keys.
  const std::vector<Text> texts = {text(5, 2), text(config_.context / 2, 3),
                                   text(config_.context / 2 - 7, 4)};
  const std::vector<Scores> beside = packed(texts);
  for (size_t i = 0; i < texts.size(); ++i)
    expect_same(in_rows({texts[i]}, config_.context)[0], beside[i], fmt::format("text {}", i));
}

TEST_P(RowInvariant, ContinuedOverAPagedCache) {
  for (const int64_t rows : {int64_t{1}, kMostRows})
    for (const int64_t length : {int64_t{1}, kChunk}) {
      if (rows > 1 && length == kChunk) continue;  // nothing new
      std::vector<Text> texts;
      for (int64_t row = 0; row < rows; ++row)
        texts.push_back(text(config_.context - 2 - 5 * (row % 4), static_cast<uint64_t>(row)));
      const std::vector<Scores> whole = in_rows(texts, config_.context);
      const std::vector<std::map<size_t, Scores>> found = continued(texts, length);
      for (size_t row = 0; row < texts.size(); ++row)
        expect_same(whole[row], found[row],
                    fmt::format("{} rows, {} tokens at a time, row {}", rows, length, row));
    }
}

// What a rollout says of the tokens that it draws is what training says of them.
TEST_P(RowInvariant, RolloutsSayWhatTrainingWill) {
  const auto decode = [this](Trace& trace, const PagedInputs& inputs) {
    return gpt_paged_decode(trace, inputs, config_);
  };
  const RolloutSizes sizes{.slots = 5,
                           .context = config_.context,
                           .vocabulary = config_.vocabulary,
                           .chunk = kChunk,
                           .prefilled = 2,
                           .tokens_per_launch = 3};
  State state(state_entries(Rollout::trace(decode, sizes)), cpu_device(1));
  for (const StateEntry& entry : state.entries())
    if (entry.role == Role::parameter) state.write(entry.name, state_.read<float>(entry.name));
  std::vector<RolloutPrompt> prompts;
  for (const int64_t length : {3, 20})
    prompts.push_back({.tokens = text(length, 7), .samples = 4, .max_new_tokens = 23});
  std::vector<RolloutRow> rows;
  Rollout(decode, sizes, state, options_)
      .run(prompts, {.sampling = {.temperature = 1.5}, .key = 5},
           [&](RolloutRow&& row) { rows.push_back(std::move(row)); });
  std::vector<Text> texts;
  for (const RolloutRow& row : rows) {
    texts.push_back(prompts[row.prompt].tokens);
    texts.back().insert(texts.back().end(), row.tokens.begin(), row.tokens.end());
  }
  const std::vector<Scores> trained = in_rows(texts, config_.context, true);
  ASSERT_EQ(rows.size(), 8U);
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto first =
        trained[i].next.begin() + static_cast<int64_t>(prompts[rows[i].prompt].tokens.size()) - 1;
    EXPECT_EQ(difference({first, first + static_cast<int64_t>(rows[i].raw.size())}, rows[i].raw),
              "")
        << "row " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Gpt, RowInvariant,
    testing::Values(Shape{.width = 128, .heads = 4, .layers = 2, .context = 80, .vocabulary = 257},
                    Shape{.width = 60, .heads = 3, .layers = 1, .context = 70, .vocabulary = 67}));

}  // namespace
}  // namespace fullbore
