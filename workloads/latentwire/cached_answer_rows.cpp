#include "workloads/latentwire/cached_answer_rows.h"

#include <algorithm>

#include "fullbore/base/check.h"
#include "fullbore/train/sampling.h"

namespace fullbore::latentwire {

using Answers = std::vector<std::vector<int32_t>>;
using Reads = CachedStep::Reads;

BoundProgram& CachedAnswerRows::program(const CachedStep& step) {
  const auto key =
      std::tuple(step.reads, step.is_behind_wire, step.judges, step.rows, step.length, step.pages);
  auto found = programs_.find(key);
  if (found == programs_.end())
    found =
        programs_
            .try_emplace(key, trace_cached(sizes_, step), state_, trained_options(sizes_.config))
            .first;
  return found->second;
}

void CachedAnswerRows::put_places(BoundProgram& program, int64_t behind,
                                  std::span<const int64_t> counts) {
  const std::span<int64_t> positions = program.input<int64_t>("position");
  const std::span<int64_t> taken = program.input<int64_t>("counts");
  const std::span<int32_t> pages = program.input<int32_t>("pages");
  const size_t width = pages.size() / positions.size();
  std::ranges::fill(taken, 0);
  std::ranges::fill(positions, 0);
  std::ranges::fill(pages, -1);
  for (size_t row = 0; row < counts.size(); ++row) {
    if (counts[row] == 0) continue;
    positions[row] = places_[row] + behind;
    taken[row] = counts[row];
    const std::span<const int32_t> own = rows_[row].pages();
    FB_CHECK(own.size() <= width, "{} pages of {}", own.size(), width);
    std::ranges::copy(own, pages.subspan(row * width).begin());
  }
}

void CachedAnswerRows::put_wires(BoundProgram& program, const CachedStep& step) {
  if (!program.has("wire") || !step.is_behind_wire) return;
  const auto numbers = static_cast<size_t>(wire_numbers(sizes_));
  for (size_t row = 0; row < chosen_.size(); ++row)
    std::ranges::copy(given_.wires.subspan(chosen_[row] * numbers, numbers),
                      program.input<float>("wire").subspan(row * numbers).begin());
}

void CachedAnswerRows::begin(const Given& given, std::span<const size_t> chosen) {
  FB_CHECK(chosen.size() <= rows_.size(), "{} rows", chosen.size());
  given_ = given;
  chosen_.assign(chosen.begin(), chosen.end());
  for (PagedRow& row : rows_) row.clear();
  places_.clear();
  if (given.is_text())
    begin_texts();
  else
    begin_wires();
}

void CachedAnswerRows::begin_wires() {
  const int64_t places = wire_places(sizes_), before = places_before_row(sizes_);
  pages_ = row_pages(sizes_, places);
  CachedStep step = step_of(places - before, false);
  step.reads = Reads::wire;
  BoundProgram& read = program(step);
  const Seconds seconds(times_.prefill);
  for (size_t row = 0; row < chosen_.size(); ++row) {
    rows_[row].extend(places + sizes_.answer_tokens);
    places_.push_back(places);
  }
  put_places(read, -places, std::vector<int64_t>(chosen_.size(), places - before));
  put_wires(read, step);
  read.run();
  logits_ = read.result<float>("logits");
  times_.prefilled += sizes_.rows * places;
}

int32_t CachedAnswerRows::first_token(size_t row, const Writing& writing) const {
  if (writing.first_temperature <= 0)
    return likeliest_token(logits_of(row), receiver(), {}, writing.least_tokens <= 0);
  PhiloxStream draws(writing.seed, chosen_[row]);
  return sample_token(logits_of(row),
                      {.temperature = writing.first_temperature, .top_p = writing.first_top_p},
                      draws);
}

Answers CachedAnswerRows::write(const Writing& writing) {
  Answers answers(chosen_.size());
  std::vector<int64_t> live(chosen_.size(), 1);
  const CachedStep step = step_of(1, false);
  BoundProgram& next = program(step);
  const Seconds seconds(times_.decode);
  put_wires(next, step);
  std::vector<int32_t> choices;
  std::vector<float> logits;
  for (int64_t t = 0; t < sizes_.answer_tokens; ++t) {
    const bool may_end = t >= writing.least_tokens;
    for (size_t row = 0; row < answers.size(); ++row) {
      if (live[row] == 0) continue;
      answers[row].push_back(
          t == 0    ? first_token(row, writing)
          : may_end ? choices[row]
                    : likeliest_token(std::span(logits).subspan(row * vocabulary_, vocabulary_),
                                      receiver(), answers[row], false));
      if (receiver().ends(answers[row])) live[row] = 0;
    }
    if (t + 1 == sizes_.answer_tokens || std::ranges::find(live, 1) == live.end()) break;
    // Rows that have ended are idle: they neither read nor keep anything.
    put_places(next, t, live);
    const std::span<int32_t> tokens = next.input<int32_t>("tokens");
    for (size_t row = 0; row < answers.size(); ++row) {
      tokens[row] = answers[row].back();
      times_.decoded += live[row];
    }
    next.run();
    choices = next.result<int32_t>("choices");
    if (t + 1 < writing.least_tokens) logits = next.result<float>("logits");
  }
  return answers;
}

std::vector<Likelihood> CachedAnswerRows::judge(std::span<const std::vector<int32_t>> answers) {
  std::vector<Likelihood> found(answers.size());
  size_t longest = 0;
  for (const std::vector<int32_t>& each : answers) longest = std::max(longest, each.size());
  const auto length = static_cast<size_t>(sizes_.answer_tokens - 1);
  FB_CHECK(longest <= length + 1, "an answer of {} tokens", longest);
  const CachedStep step = step_of(static_cast<int64_t>(length), true);
  BoundProgram* const rest = longest > 1 ? &program(step) : nullptr;
  const Seconds seconds(times_.judge);
  for (size_t row = 0; row < answers.size(); ++row) {
    if (answers[row].empty()) continue;
    found[row].add(logits_of(row), answers[row][0]);
  }
  if (rest == nullptr) return found;
  std::vector<int64_t> counts;
  const std::span<int32_t> tokens = rest->input<int32_t>("tokens");
  const std::span<int32_t> targets = rest->input<int32_t>("targets");
  std::ranges::fill(targets, -1);
  for (size_t row = 0; row < answers.size(); ++row) {
    const std::vector<int32_t>& answer = answers[row];
    const size_t count = std::max<size_t>(1, answer.size()) - 1;
    counts.push_back(static_cast<int64_t>(count));
    std::copy_n(answer.begin(), count, tokens.subspan(row * length).begin());
    if (count > 0) std::copy_n(answer.begin() + 1, count, targets.subspan(row * length).begin());
  }
  put_wires(*rest, step);
  put_places(*rest, 0, counts);
  rest->run();
  const auto losses = rest->result<float>("losses");
  const auto ranks = rest->result<int32_t>("ranks");
  for (size_t row = 0; row < answers.size(); ++row)
    for (size_t t = 0; t < static_cast<size_t>(counts[row]); ++t) {
      found[row].losses.push_back(losses[row * length + t]);
      found[row].ranks.push_back(ranks[row * length + t]);
    }
  return found;
}

std::unique_ptr<AnswerRows> cached_answer_rows(const AnswerSizes& sizes, State& state) {
  return std::make_unique<CachedAnswerRows>(sizes, state);
}

Graph cached_answer_graph(const AnswerSizes& sizes) {
  return trace_cached(sizes, {.reads = Reads::wire,
                              .is_behind_wire = true,
                              .rows = sizes.rows,
                              .pages = row_pages(sizes, wire_places(sizes))});
}

int64_t cached_row_bytes(const AnswerSizes& sizes) {
  const nn::DecoderConfig& decoder = sizes.receivers[sizes.number].decoder;
  AnswerSizes one = sizes;
  one.rows = 1;
  return pool_pages(one) * nn::kPageTokens * decoder.layers * 2 * decoder.key_heads() *
         decoder.key_width() * static_cast<int64_t>(sizeof(float));
}

}  // namespace fullbore::latentwire
