#include "workloads/latentwire/evaluate_systems.h"

#include <algorithm>
#include <numbers>
#include <numeric>

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
  }
  return "";
}

std::vector<int32_t> cut_prompt(const Receiver& receiver, const Prompt& prompt, System system,
                                int64_t budget) {
  if (system == System::text) return prompt_ids(receiver, prompt.source());
  std::vector<int32_t> kept;
  if (system == System::head) {
    kept = first(receiver.ids(prompt.source()), budget);
  } else {
    kept = first(receiver.ids(prompt.question), budget);
    const std::vector<int32_t> context =
        first(receiver.ids(prompt.context), budget - std::ssize(kept));
    kept.insert(kept.end(), context.begin(), context.end());
  }
  if (receiver.begin >= 0) kept.insert(kept.begin(), receiver.begin);
  kept.insert(kept.end(), receiver.anchor_ids.begin(), receiver.anchor_ids.end());
  return kept;
}

double SystemScores::mean_exact_match() const { return mean(exact_match); }
double SystemScores::mean_f1() const { return mean(f1); }
double SystemScores::nats_per_token() const { return sum(nats) / std::max(1.0, sum(tokens)); }
double SystemScores::first_accuracy() const { return mean(first_right); }
double SystemScores::bits_per_byte(std::span<const Prompt> prompts) const {
  size_t bytes = 0;
  for (const Prompt& each : prompts) bytes += each.answers.front().size() + 1;
  return sum(nats) / std::numbers::ln2 / static_cast<double>(std::max<size_t>(1, bytes));
}

SystemScores measure_system(TrainedLatent& model, std::span<const Prompt> prompts, System system,
                            size_t receiver, std::span<const float> wires, int64_t budget) {
  const Receiver& reader = model.receivers()[receiver];
  std::vector<std::vector<int32_t>> texts, gold;
  for (const Prompt& each : prompts) {
    if (system != System::latent) texts.push_back(cut_prompt(reader, each, system, budget));
    gold.push_back(cut_answer(reader, each, model.answer_tokens()));
  }
  const TrainedLatent::Given given{system == System::latent ? wires : std::span<const float>(),
                                   texts};
  SystemScores scores;
  for (const std::vector<int32_t>& ids : model.write(given, receiver))
    scores.answers.push_back(reader.answer_text(ids));
  for (size_t i = 0; i < prompts.size(); ++i) {
    const AnswerScore score = answer_score(scores.answers[i], prompts[i].answers);
    scores.exact_match.push_back(score.exact_match);
    scores.f1.push_back(score.f1);
    scores.tokens.push_back(static_cast<double>(gold[i].size()));
  }
  for (const TrainedLatent::Likelihood& each : model.read(given, gold, receiver)) {
    scores.nats.push_back(each.nats);
    scores.first_right.push_back(each.first_right ? 1 : 0);
  }
  return scores;
}

std::vector<float> encode_all(TrainedLatent& model, std::span<const Prompt> prompts, int64_t* cut) {
  const LatentKeys::Wire& keys = latent_keys(model.config()).wire;
  std::vector<std::string> texts;
  for (const Prompt& each : prompts) {
    EncoderText text = encoder_text(each, keys.question_first, keys.max_bytes);
    if (cut != nullptr && text.cut) ++*cut;
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

JointScores rescore(TrainedLatent& model, std::span<const Prompt> prompts,
                    std::span<const SystemScores> latents, std::span<const float> wires) {
  const size_t receivers = model.receivers().size(), rows = prompts.size();
  FB_CHECK(latents.size() == receivers, "{} systems", latents.size());
  // Of candidate c: the sum over receivers of its log-likelihood.
  std::vector<std::vector<double>> likelihoods(receivers, std::vector<double>(rows));
  for (size_t candidate = 0; candidate < receivers; ++candidate)
    for (size_t receiver = 0; receiver < receivers; ++receiver) {
      const Receiver& reader = model.receivers()[receiver];
      std::vector<std::vector<int32_t>> answers;
      for (size_t row = 0; row < rows; ++row)
        answers.push_back(first(reader.answer_ids(latents[candidate].answers[row], prompts[row].id),
                                model.answer_tokens()));
      const auto found = model.read({.wires = wires}, answers, receiver);
      for (size_t row = 0; row < rows; ++row) likelihoods[candidate][row] -= found[row].nats;
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
