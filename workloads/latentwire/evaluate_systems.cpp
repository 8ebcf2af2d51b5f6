#include "workloads/latentwire/evaluate_systems.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numbers>
#include <numeric>
#include <set>

#include "fullbore/base/check.h"
#include "fullbore/base/error.h"
#include "workloads/latentwire/answer_metrics.h"
#include "workloads/latentwire/latent_keys.h"
#include "workloads/latentwire/prompt_batches.h"
#include "workloads/latentwire/wire_codec.h"

namespace fullbore::latentwire {
namespace {

double sum(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}
double mean(const std::vector<double>& values) {
  return values.empty() ? 0 : sum(values) / static_cast<double>(values.size());
}

std::vector<int32_t> first(std::vector<int32_t> ids, int64_t count) {
  if (std::ssize(ids) > count) ids.resize(static_cast<size_t>(std::max<int64_t>(0, count)));
  return ids;
}

}  // namespace

const char* system_name(System system) {
  switch (system) {
    case System::text: return "text";
    case System::latent: return "latent";
    case System::head: return "head";
    case System::question_first: return "question-first";
    case System::replay: return "replay";
  }
  return "";
}

std::vector<int32_t> cut_prompt(const Receiver& receiver, const Prompt& prompt, System system,
                                int64_t budget) {
  if (system == System::text || system == System::replay)
    return prompt_ids(receiver, prompt.source());
  std::vector<int32_t> kept;
  if (system == System::head) {
    kept = first(receiver.ids(prompt.source()), budget);
  } else {
    kept = first(receiver.ids(prompt.question), budget);
    const std::vector<int32_t> context =
        first(receiver.ids(prompt.context), budget - std::ssize(kept));
    kept.insert(kept.end(), context.begin(), context.end());
  }
  return receiver.prompt_of(kept);
}

int64_t longest_prompt(const Receiver& receiver, std::span<const Prompt> prompts) {
  int64_t most = 0;
  for (const Prompt& each : prompts)
    most = std::max(most, std::ssize(prompt_ids(receiver, each.source())));
  return most;
}

std::string SystemScores::name(int64_t usual_budget) const {
  return budget > 0 && budget != usual_budget ? fmt::format("{} {}", system_name(system), budget)
                                              : system_name(system);
}

double SystemScores::mean_exact_match() const { return mean(exact_match); }
double SystemScores::mean_f1() const { return mean(f1); }

namespace {

double all_nats(const SystemScores& scores) {
  double nats = 0;
  for (const Likelihood& each : scores.likelihoods) nats += each.nats();
  return nats;
}

}  // namespace

double SystemScores::nats_per_token() const {
  size_t tokens = 0;
  for (const Likelihood& each : likelihoods) tokens += each.losses.size();
  return all_nats(*this) / static_cast<double>(std::max<size_t>(1, tokens));
}

double SystemScores::bits_per_byte(std::span<const Prompt> prompts) const {
  size_t bytes = 0;
  for (const Prompt& each : prompts) bytes += each.answers.front().size() + 1;
  return all_nats(*this) / std::numbers::ln2 / static_cast<double>(std::max<size_t>(1, bytes));
}

double SystemScores::first_accuracy(int32_t most) const {
  std::vector<double> right;
  for (size_t i = 0; i < likelihoods.size(); ++i) {
    const auto place = static_cast<size_t>(first_content[i]);
    const std::vector<int32_t>& ranks = likelihoods[i].ranks;
    right.push_back(place < ranks.size() && ranks[place] < most ? 1 : 0);
  }
  return mean(right);
}

std::vector<double> SystemScores::accuracy_by_place() const {
  std::vector<double> right, all;
  for (const Likelihood& each : likelihoods)
    for (size_t place = 0; place < each.ranks.size(); ++place) {
      if (place == all.size()) {
        all.push_back(0);
        right.push_back(0);
      }
      all[place] += 1;
      right[place] += each.ranks[place] == 0 ? 1 : 0;
    }
  for (size_t place = 0; place < all.size(); ++place) right[place] /= all[place];
  return right;
}

int64_t SystemScores::distinct_answers() const {
  std::set<std::string> found;
  for (const std::string& each : answers) found.insert(normalised_answer(each));
  return std::ssize(found);
}

namespace {

// What was written first, the most frequent first; ties by text.
std::vector<Prediction> first_predictions(const Receiver& reader,
                                          const TrainedLatent::Answers& written) {
  std::map<int32_t, int64_t> counts;
  for (const std::vector<int32_t>& each : written)
    if (!each.empty()) ++counts[each.front()];
  std::vector<Prediction> found;
  for (const auto& [id, count] : counts) {
    std::string text;
    if (id < reader.tokenizer->vocabulary_size()) reader.tokenizer->append_bytes(id, text);
    found.push_back({std::move(text), count});
  }
  std::ranges::sort(found, [](const Prediction& a, const Prediction& b) {
    return a.count != b.count ? a.count > b.count : a.text < b.text;
  });
  return found;
}

}  // namespace

SystemScores measure_system(TrainedLatent& model, const MeasuredPrompts& measured, System system,
                            size_t receiver, int64_t budget, const Writing& writing) {
  const Receiver& reader = model.receivers()[receiver];
  TrainedLatent::Answers texts, gold;
  for (const Prompt& each : measured.prompts) {
    if (system != System::latent) texts.push_back(cut_prompt(reader, each, system, budget));
    gold.push_back(cut_answer(reader, each, model.answer_tokens()));
  }
  const Given given{system == System::latent ? measured.wires : std::span<const float>(), texts,
                    system == System::replay};
  TrainedLatent::Answered answered =
      model.answer(given, receiver, {.writes = true, .writing = writing, .judged = {&gold, 1}});
  SystemScores scores{.system = system, .budget = budget, .times = answered.times};
  for (size_t i = 0; i < measured.prompts.size(); ++i) {
    scores.answers.push_back(reader.answer_text(answered.written[i]));
    const AnswerScore score = answer_score(scores.answers[i], measured.prompts[i].answers);
    scores.exact_match.push_back(score.exact_match);
    scores.f1.push_back(score.f1);
    scores.first_content.push_back(answer_length(reader, gold[i]).first);
  }
  scores.likelihoods = std::move(answered.read[0]);
  scores.predictions = first_predictions(reader, answered.written);
  return scores;
}

std::vector<float> encode_all(TrainedLatent& model, std::span<const Prompt> prompts, int64_t* cut) {
  const LatentKeys::Wire& keys = latent_keys(model.config()).wire;
  std::vector<std::string> texts;
  for (const Prompt& each : prompts) {
    EncoderText text = encoder_text(each, keys.question_first, keys.max_bytes);
    if (cut != nullptr && (text.cut || !model.reads_whole(text.bytes))) ++*cut;
    texts.push_back(std::move(text.bytes));
  }
  return model.encode(texts);
}

std::vector<float> through_bits(const TrainedLatent& model, std::span<const float> wires,
                                int64_t bits, int64_t group) {
  const WireForm form{model.slots(), model.width(), bits, group};
  const auto numbers = static_cast<size_t>(form.numbers());
  std::vector<float> result;
  for (size_t begin = 0; begin < wires.size(); begin += numbers) {
    const std::vector<float> row =
        through_wire(wires.subspan(begin, numbers), form).take_or_throw();
    result.insert(result.end(), row.begin(), row.end());
  }
  return result;
}

JointScores rescore(TrainedLatent& model, const MeasuredPrompts& measured,
                    std::span<const SystemScores> latents) {
  const std::span<const Prompt> prompts = measured.prompts;
  const size_t receivers = model.receivers().size(), rows = prompts.size();
  FB_CHECK(latents.size() == receivers, "{} systems", latents.size());
  // Of candidate c: the sum over receivers of its log-likelihood.
  std::vector<std::vector<double>> likelihoods(receivers, std::vector<double>(rows));
  for (size_t receiver = 0; receiver < receivers; ++receiver) {
    const Receiver& reader = model.receivers()[receiver];
    std::vector<TrainedLatent::Answers> candidates(receivers);
    for (size_t candidate = 0; candidate < receivers; ++candidate)
      for (size_t row = 0; row < rows; ++row)
        candidates[candidate].push_back(
            first(reader.answer_ids(latents[candidate].answers[row], prompts[row].id),
                  model.answer_tokens()));
    const TrainedLatent::Answered found =
        model.answer({.wires = measured.wires}, receiver, {.judged = candidates});
    for (size_t candidate = 0; candidate < receivers; ++candidate)
      for (size_t row = 0; row < rows; ++row)
        likelihoods[candidate][row] -= found.read[candidate][row].nats();
  }
  JointScores scores;
  const auto count = static_cast<double>(std::max<size_t>(1, rows));
  for (size_t row = 0; row < rows; ++row) {
    size_t best = 0;
    bool agree = true;
    double oracle_f1 = 0, oracle_match = 0;
    for (size_t i = 0; i < receivers; ++i) {
      if (likelihoods[i][row] > likelihoods[best][row]) best = i;
      agree = agree && normalised_answer(latents[i].answers[row]) ==
                           normalised_answer(latents[0].answers[row]);
      oracle_f1 = std::max(oracle_f1, latents[i].f1[row]);
      oracle_match = std::max(oracle_match, latents[i].exact_match[row]);
    }
    scores.exact_match += latents[best].exact_match[row] / count;
    scores.f1 += latents[best].f1[row] / count;
    scores.agreement += (agree ? 1 : 0) / count;
    scores.oracle_f1 += oracle_f1 / count;
    scores.oracle_exact_match += oracle_match / count;
  }
  return scores;
}

}  // namespace fullbore::latentwire
