#include "workloads/latentwire/latent_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace fullbore::latentwire {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kPredictions = 10;

Json interval_json(const Interval& interval) {
  return {{"mean", interval.mean}, {"low", interval.low}, {"high", interval.high}};
}

// Bytes of a prediction may be a part of a character.
std::string shown(const std::string& text) {
  std::string result;
  for (const char c : text)
    result += c >= ' ' && c <= '~' ? std::string(1, c)
                                   : fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  return result;
}

Json system_json(const LatentReport& report, const SystemScores& scores) {
  Json predictions = Json::array();
  for (size_t i = 0; i < std::min(kPredictions, scores.predictions.size()); ++i)
    predictions.push_back(
        {{"token", shown(scores.predictions[i].text)}, {"count", scores.predictions[i].count}});
  Json one = {{"exact_match", scores.mean_exact_match()},
              {"f1", scores.mean_f1()},
              {"nats_per_token", scores.nats_per_token()},
              {"bits_per_byte", scores.bits_per_byte(report.prompts)},
              {"first_accuracy", scores.first_accuracy()},
              {"first_top5", scores.first_accuracy(5)},
              {"accuracy_by_place", scores.accuracy_by_place()},
              {"distinct_answers", scores.distinct_answers()},
              {"distinct_first_tokens", scores.predictions.size()},
              {"first_tokens", std::move(predictions)},
              {"seconds",
               {{"prefill", scores.times.prefill},
                {"decode", scores.times.decode},
                {"judge", scores.times.judge}}},
              {"places",
               {{"prefilled", scores.times.prefilled},
                {"shared", scores.times.shared},
                {"decoded", scores.times.decoded}}}};
  if (scores.budget > 0) one["budget"] = scores.budget;
  return one;
}

double token_ratio(const LatentReport& report, const LatentReport::OfReceiver& receiver) {
  return receiver.source_tokens / static_cast<double>(report.prefix);
}

Json receiver_json(const LatentReport& report, const LatentReport::OfReceiver& receiver) {
  Json systems, bits = Json::array();
  for (size_t i = 0; i < receiver.systems.size(); ++i) {
    const SystemScores& scores = receiver.systems[i];
    Json one = system_json(report, scores);
    if (scores.system != System::latent && !receiver.f1_differences.empty()) {
      one["latent_minus_f1"] = interval_json(receiver.f1_differences[i]);
      one["mcnemar"] = {{"latent_alone", receiver.match_tests[i].only_first},
                        {"this_alone", receiver.match_tests[i].only_second},
                        {"p", receiver.match_tests[i].p}};
    }
    systems[scores.name(report.budgets.front())] = std::move(one);
  }
  const SystemScores* const latent = receiver.find(System::latent);
  for (const BitsResult& each : receiver.bits)
    bits.push_back({{"bits", each.bits},
                    {"bytes", each.bytes},
                    {"byte_ratio", report.prompt_bytes / static_cast<double>(each.bytes)},
                    {"copies_ratio", report.copies_bytes() / static_cast<double>(each.bytes)},
                    {"exact_match", each.exact_match},
                    {"f1", each.f1},
                    {"f1_lost", latent->mean_f1() - each.f1}});
  Json result = {{"name", receiver.name},
                 {"prompt_tokens", receiver.source_tokens},
                 {"token_ratio", token_ratio(report, receiver)},
                 {"places_ratio", receiver.text_places / receiver.latent_places},
                 {"log_vocabulary", receiver.log_vocabulary},
                 {"systems", std::move(systems)},
                 {"bits", std::move(bits)}};
  if (receiver.find(System::text) != nullptr && receiver.find(System::replay) != nullptr)
    result["replay"] = {{"other_answers", receiver.replay_differs},
                        {"largest_nats", receiver.replay_nats}};
  return result;
}

std::string systems_text(const LatentReport& report, const LatentReport::OfReceiver& receiver) {
  std::string text = fmt::format("\n{:<18}{:>7} {:>7} {:>9} {:>9} {:>7} {:>7} {:>9}  {}\n",
                                 receiver.name, "EM", "F1", "nats/tok", "bits/byte", "first",
                                 "of 5", "distinct", "latent's F1 less this, 95 %; EM by McNemar");
  for (size_t i = 0; i < receiver.systems.size(); ++i) {
    const SystemScores& scores = receiver.systems[i];
    text +=
        fmt::format("{:<18}{:>7.3f} {:>7.3f} {:>9.3f} {:>9.3f} {:>7.3f} {:>7.3f} {:>9}",
                    scores.name(report.budgets.front()), scores.mean_exact_match(),
                    scores.mean_f1(), scores.nats_per_token(), scores.bits_per_byte(report.prompts),
                    scores.first_accuracy(), scores.first_accuracy(5), scores.distinct_answers());
    if (scores.system != System::latent && !receiver.f1_differences.empty()) {
      const Interval& difference = receiver.f1_differences[i];
      text += fmt::format("  {:+.3f} [{:+.3f}, {:+.3f}]  p = {:.2g}", difference.mean,
                          difference.low, difference.high, receiver.match_tests[i].p);
    }
    text += "\n";
  }
  const SystemScores* const whole = receiver.find(System::text);
  if (whole != nullptr && whole->nats_per_token() > receiver.log_vocabulary)
    text += fmt::format(
        "{:<18}the text's {:.2f} a token are more than ln V = {:.2f}: the receiver knows nothing "
        "of "
        "such texts, or the measure is broken\n",
        "nats", whole->nats_per_token(), receiver.log_vocabulary);
  if (whole != nullptr && receiver.find(System::replay) != nullptr)
    text += fmt::format(
        "{:<18}{} of {} prompts are answered otherwise than the text; nats differ by at most "
        "{:.2g}\n",
        "replay", receiver.replay_differs, report.prompts.size(), receiver.replay_nats);
  return text;
}

std::string times_text(const LatentReport& report, const LatentReport::OfReceiver& receiver) {
  std::string text;
  for (const SystemScores& scores : receiver.systems)
    text += fmt::format(
        "{:<18}{} {:.2f} s for {} places, decode {:.2f} s for {} tokens, judge {:.2f} s\n",
        scores.name(report.budgets.front()),
        scores.system == System::latent
            ? fmt::format("encode {:.2f} s, prefill", report.encode_seconds)
            : "prefill",
        scores.times.prefill, scores.times.prefilled, scores.times.decode, scores.times.decoded,
        scores.times.judge);
  return text;
}

}  // namespace

const SystemScores* LatentReport::OfReceiver::find(System system) const {
  const auto found = std::ranges::find(systems, system, &SystemScores::system);
  return found == systems.end() ? nullptr : &*found;
}

std::string report_text(const LatentReport& report) {
  std::string text = fmt::format("{:<18}{} (step {})\n{:<18}{}\n", "checkpoint", report.checkpoint,
                                 report.step, "prompts", report.prompts_about);
  if (report.cut > 0)
    text += fmt::format("{:<18}{} prompts were cut for the encoder\n", "cut", report.cut);
  text += fmt::format("{:<18}{} tokens of texts that are cut\n", "budget",
                      fmt::join(report.budgets, ", "));
  for (const CacheCheck& each : report.cache_checks)
    text += fmt::format(
        "{:<18}{} of {} rows are answered otherwise over it; losses differ by at most {:.2g}\n",
        "cache", each.other_answers, each.rows, each.largest_loss);
  for (const LatentReport::OfReceiver& receiver : report.receivers) {
    text += systems_text(report, receiver);
    text += fmt::format(
        "{:<18}{:.1f} tokens of text are {} vectors: {:.2f} times fewer; {:.1f} places before an "
        "answer are {:.0f}: {:.2f} times fewer\n",
        "prefix", receiver.source_tokens, report.prefix, token_ratio(report, receiver),
        receiver.text_places, receiver.latent_places,
        receiver.text_places / receiver.latent_places);
    for (const BitsResult& each : receiver.bits)
      text += fmt::format(
          "{:<18}{:>7.3f} {:>7.3f}   {} bytes, {:.1f} of text: ratio {:.3f}, of a copy for each of "
          "{}: {:.3f}\n",
          fmt::format("{} bits", each.bits), each.exact_match, each.f1, each.bytes,
          report.prompt_bytes, report.prompt_bytes / static_cast<double>(each.bytes),
          report.receivers.size(), report.copies_bytes() / static_cast<double>(each.bytes));
    text += times_text(report, receiver);
  }
  for (const JointScores& joint : report.joint)
    text += fmt::format(
        "\n{:<18}{:>7.3f} {:>7.3f}   {:.1f} % agree; the better answer of each: {:.3f} {:.3f}\n",
        "joint", joint.exact_match, joint.f1, 100 * joint.agreement, joint.oracle_exact_match,
        joint.oracle_f1);
  return text;
}

Json report_json(const LatentReport& report) {
  Json receivers = Json::array(), joint, checked;
  for (const LatentReport::OfReceiver& each : report.receivers)
    receivers.push_back(receiver_json(report, each));
  for (const JointScores& each : report.joint)
    joint = {{"exact_match", each.exact_match},
             {"f1", each.f1},
             {"agreement", each.agreement},
             {"oracle_exact_match", each.oracle_exact_match},
             {"oracle_f1", each.oracle_f1}};
  for (const CacheCheck& each : report.cache_checks)
    checked = {{"rows", each.rows},
               {"other_answers", each.other_answers},
               {"largest_loss", each.largest_loss}};
  return {{"checkpoint", report.checkpoint},
          {"step", report.step},
          {"prompts", report.prompts.size()},
          {"cut", report.cut},
          {"budget", report.budgets.front()},
          {"budgets", report.budgets},
          {"prefix", report.prefix},
          {"slots", report.slots},
          {"width", report.width},
          {"group", report.group},
          {"rows", report.rows},
          {"cache", report.cache},
          {"cache_check", std::move(checked)},
          {"prompt_bytes", report.prompt_bytes},
          {"encode_seconds", report.encode_seconds},
          {"receivers", std::move(receivers)},
          {"joint", std::move(joint)}};
}

}  // namespace fullbore::latentwire
