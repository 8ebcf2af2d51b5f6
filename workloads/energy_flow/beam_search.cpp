#include "workloads/energy_flow/beam_search.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "fullbore/base/check.h"

namespace fullbore::energy_flow {
namespace {

constexpr double kNothing = -std::numeric_limits<double>::infinity();

}  // namespace

BeamSearch::BeamSearch(BeamOptions options) : options_(std::move(options)) {
  const auto texts = static_cast<size_t>(options_.texts), count = static_cast<size_t>(rows());
  writes_.assign(static_cast<size_t>(options_.vocabulary), true);
  for (const int32_t token : options_.never) writes_[static_cast<size_t>(token)] = false;
  written_.assign(count, {{}, kNothing});
  for (int64_t text = 0; text < options_.texts; ++text) written_[row(text, 0)].score = 0;
  ended_.assign(texts, {{}, kNothing});
  done_.assign(texts, false);
  tokens_.assign(count, options_.begin);
  parents_.resize(count);
  std::iota(parents_.begin(), parents_.end(), 0);
}

bool BeamSearch::is_done() const {
  return length_ == options_.length || std::ranges::all_of(done_, [](bool done) { return done; });
}

void BeamSearch::take(std::span<const float> log_probabilities) {
  FB_CHECK(std::ssize(log_probabilities) == rows() * options_.vocabulary, "{} log-probabilities",
           log_probabilities.size());
  ++length_;
  for (int64_t text = 0; text < options_.texts; ++text)
    if (!done_[static_cast<size_t>(text)]) advance(text, log_probabilities);
}

// In falling order, one more of each beam than there are beams, for one of them may end the text.
std::vector<BeamSearch::Continuation> BeamSearch::best_continuations(
    int64_t text, std::span<const float> log_probabilities) const {
  const auto better = [](const Continuation& a, const Continuation& b) {
    if (a.score != b.score) return a.score > b.score;
    return a.beam != b.beam ? a.beam < b.beam : a.token < b.token;
  };
  const auto wanted = static_cast<size_t>(options_.beams + 1);
  std::vector<Continuation> best, of_beam;
  for (int64_t beam = 0; beam < options_.beams; ++beam) {
    const double score = written_[row(text, beam)].score;
    if (score == kNothing) continue;
    const float* const logs =
        log_probabilities.data() + row(text, beam) * static_cast<size_t>(options_.vocabulary);
    of_beam.clear();
    for (int32_t token = 0; token < options_.vocabulary; ++token) {
      if (!writes_[static_cast<size_t>(token)]) continue;
      const Continuation next{score + logs[token], beam, token};
      if (of_beam.size() == wanted && !better(next, of_beam.back())) continue;
      of_beam.insert(std::ranges::upper_bound(of_beam, next, better), next);
      if (of_beam.size() > wanted) of_beam.pop_back();
    }
    best.insert(best.end(), of_beam.begin(), of_beam.end());
  }
  std::ranges::sort(best, better);
  return best;
}

void BeamSearch::advance(int64_t text, std::span<const float> log_probabilities) {
  const auto beams = static_cast<size_t>(options_.beams);
  WrittenText& ended = ended_[static_cast<size_t>(text)];
  std::vector<WrittenText> followed;
  size_t place = 0;
  for (const Continuation& next : best_continuations(text, log_probabilities)) {
    const WrittenText& before = written_[row(text, next.beam)];
    if (next.token == options_.end) {
      if (place < beams && next.score > ended.score) ended = {before.tokens, next.score};
    } else if (followed.size() < beams) {
      const size_t at = row(text, std::ssize(followed));
      tokens_[at] = next.token;
      parents_[at] = static_cast<int32_t>(row(text, next.beam));
      followed.push_back({before.tokens, next.score});
      followed.back().tokens.push_back(next.token);
    }
    ++place;
  }
  followed.resize(beams, {{}, kNothing});
  for (size_t beam = 0; beam < beams; ++beam)
    written_[row(text, static_cast<int64_t>(beam))] = std::move(followed[beam]);
  done_[static_cast<size_t>(text)] = ended.score >= written_[row(text, 0)].score;
}

WrittenText BeamSearch::best(int64_t text) const {
  const WrittenText& ended = ended_[static_cast<size_t>(text)];
  return ended.score == kNothing ? written_[row(text, 0)] : ended;
}

}  // namespace fullbore::energy_flow
