#include <algorithm>
#include <map>

#include "fullbore/train/bound_program.h"
#include "workloads/latentwire/answer_graphs.h"
#include "workloads/latentwire/answer_rows.h"

namespace fullbore::latentwire {
namespace {

using Answers = std::vector<std::vector<int32_t>>;

class WholeAnswerRows : public AnswerRows {
 public:
  WholeAnswerRows(const AnswerSizes& sizes, State& state)
      : sizes_(sizes), state_(state), length_(static_cast<size_t>(sizes.answer_tokens)) {}

  void begin(const Given& given, std::span<const size_t> chosen) override {
    given_ = given;
    chosen_.assign(chosen.begin(), chosen.end());
    places_ = 0;
    if (!given.is_text()) return;
    for (const size_t row : chosen) places_ = std::max(places_, std::ssize(given.prompts[row]));
    places_ = rounded_places(places_ + static_cast<int64_t>(length_));
  }

  Answers write(const Writing& writing) override;
  std::vector<Likelihood> judge(std::span<const std::vector<int32_t>> answers) override {
    BoundProgram& program = run(answers, times_.judge);
    const auto losses = program.result<float>("losses");
    const auto ranks = program.result<int32_t>("ranks");
    std::vector<Likelihood> found;
    for (size_t row = 0; row < answers.size(); ++row) {
      const auto at = static_cast<std::ptrdiff_t>(row * length_);
      const auto end = at + std::ssize(answers[row]);
      found.push_back(
          {{losses.begin() + at, losses.begin() + end}, {ranks.begin() + at, ranks.begin() + end}});
    }
    return found;
  }

 private:
  BoundProgram& run(std::span<const std::vector<int32_t>> answers, double& seconds);

  AnswerSizes sizes_;
  State& state_;
  size_t length_;
  Given given_;
  std::vector<size_t> chosen_;
  int64_t places_ = 0;
  std::map<int64_t, BoundProgram> programs_;
};

BoundProgram& WholeAnswerRows::run(std::span<const std::vector<int32_t>> answers, double& seconds) {
  auto found = programs_.find(places_);
  if (found == programs_.end())
    found = programs_
                .try_emplace(places_, trace_whole(sizes_, places_), state_,
                             trained_options(sizes_.config))
                .first;
  const Seconds taken(seconds);
  BoundProgram& program = found->second;
  const std::span<int32_t> known = program.input<int32_t>("answer");
  std::ranges::fill(known, -1);
  for (size_t row = 0; row < answers.size(); ++row)
    std::ranges::copy(answers[row], known.begin() + static_cast<std::ptrdiff_t>(row * length_));
  const auto numbers = static_cast<size_t>(wire_numbers(sizes_));
  for (size_t row = 0; row < chosen_.size(); ++row) {
    if (!given_.is_text()) {
      std::ranges::copy(given_.wires.subspan(chosen_[row] * numbers, numbers),
                        program.input<float>("wire").subspan(row * numbers).begin());
      continue;
    }
    std::vector<int32_t> ids = given_.prompts[chosen_[row]];
    program.input<int32_t>("lengths")[row] = static_cast<int32_t>(ids.size());
    ids.insert(ids.end(), answers[row].begin(), answers[row].end());
    const auto places = static_cast<size_t>(places_);
    ids.resize(places);
    std::ranges::copy(ids, program.input<int32_t>("prompt").subspan(row * places).begin());
  }
  program.run();
  return program;
}

Answers WholeAnswerRows::write(const Writing& /*writing*/) {
  const Receiver& reader = sizes_.receivers[sizes_.number];
  Answers answers(chosen_.size());
  std::vector<bool> done(chosen_.size());
  for (size_t t = 0; t < length_ && std::ranges::find(done, false) != done.end(); ++t) {
    const auto choices = run(answers, times_.decode).result<int32_t>("choices");
    for (size_t row = 0; row < answers.size(); ++row) {
      if (done[row]) continue;
      answers[row].push_back(choices[row * length_ + t]);
      done[row] = reader.ends(answers[row]);
      ++times_.decoded;
    }
  }
  return answers;
}

}  // namespace

std::unique_ptr<AnswerRows> whole_answer_rows(const AnswerSizes& sizes, State& state) {
  return std::make_unique<WholeAnswerRows>(sizes, state);
}

Graph whole_answer_graph(const AnswerSizes& sizes) { return trace_whole(sizes, 0); }

}  // namespace fullbore::latentwire
