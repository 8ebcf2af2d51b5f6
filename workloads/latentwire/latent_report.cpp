#include "workloads/latentwire/latent_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace fullbore::latentwire {
namespace {

using Json = nlohmann::ordered_json;

Json interval_json(const Interval& interval) {
  return {{"mean", interval.mean}, {"low", interval.low}, {"high", interval.high}};
}

Json receiver_json(const LatentReport& report, const LatentReport::OfReceiver& receiver) {
  Json systems, bits = Json::array();
  for (size_t i = 0; i < receiver.systems.size(); ++i) {
    const SystemScores& scores = receiver.systems[i];
    Json one = {{"exact_match", scores.mean_exact_match()},
                {"f1", scores.mean_f1()},
                {"nats_per_token", scores.nats_per_token()},
                {"bits_per_byte", scores.bits_per_byte(report.prompts)},
                {"first_accuracy", scores.first_accuracy()}};
    if (kSystems[i] != System::latent) {
      one["latent_minus_f1"] = interval_json(receiver.f1_differences[i]);
      one["mcnemar"] = {{"latent_alone", receiver.match_tests[i].only_first},
                        {"this_alone", receiver.match_tests[i].only_second},
                        {"p", receiver.match_tests[i].p}};
    }
    systems[system_name(kSystems[i])] = std::move(one);
  }
  for (const BitsResult& each : receiver.bits)
    bits.push_back({{"bits", each.bits},
                    {"bytes", each.bytes},
                    {"byte_ratio", report.prompt_bytes / static_cast<double>(each.bytes)},
                    {"exact_match", each.exact_match},
                    {"f1", each.f1}});
  return {{"name", receiver.name},
          {"prompt_tokens", receiver.prompt_tokens},
          {"token_ratio", receiver.prompt_tokens / static_cast<double>(report.budget)},
          {"systems", std::move(systems)},
          {"bits", std::move(bits)}};
}

}  // namespace

std::string report_text(const LatentReport& report) {
  std::string text = fmt::format("{:<16}{} (step {})\n{:<16}{}\n", "checkpoint", report.checkpoint,
                                 report.step, "prompts", report.prompts_about);
  if (report.cut > 0)
    text += fmt::format("{:<16}{} prompts were cut for the encoder\n", "cut", report.cut);
  for (const LatentReport::OfReceiver& receiver : report.receivers) {
    text +=
        fmt::format("\n{:<16}{:>7} {:>7} {:>9} {:>9} {:>7}  {}\n", receiver.name, "EM", "F1",
                    "nats/tok", "bits/byte", "first", "latent's F1 less this, 95 %; EM by McNemar");
    for (size_t i = 0; i < receiver.systems.size(); ++i) {
      const SystemScores& scores = receiver.systems[i];
      text += fmt::format("{:<16}{:>7.3f} {:>7.3f} {:>9.3f} {:>9.3f} {:>7.3f}",
                          system_name(kSystems[i]), scores.mean_exact_match(), scores.mean_f1(),
                          scores.nats_per_token(), scores.bits_per_byte(report.prompts),
                          scores.first_accuracy());
      if (kSystems[i] != System::latent) {
        const Interval& difference = receiver.f1_differences[i];
        text += fmt::format("  {:+.3f} [{:+.3f}, {:+.3f}]  p = {:.2g}", difference.mean,
                            difference.low, difference.high, receiver.match_tests[i].p);
      }
      text += "\n";
    }
    text += fmt::format("{:<16}{:.1f} tokens of text are {} vectors: {:.2f} times fewer\n",
                        "prefix", receiver.prompt_tokens, report.budget,
                        receiver.prompt_tokens / static_cast<double>(report.budget));
    for (const BitsResult& each : receiver.bits)
      text +=
          fmt::format("{:<16}{:>7.3f} {:>7.3f}   {} bytes, {:.1f} of text: ratio {:.3f}\n",
                      fmt::format("{} bits", each.bits), each.exact_match, each.f1, each.bytes,
                      report.prompt_bytes, report.prompt_bytes / static_cast<double>(each.bytes));
  }
  for (const JointScores& joint : report.joint)
    text += fmt::format(
        "\n{:<16}{:>7.3f} {:>7.3f}   {:.1f} % agree; the better answer of each: {:.3f} {:.3f}\n",
        "joint", joint.exact_match, joint.f1, 100 * joint.agreement, joint.oracle_exact_match,
        joint.oracle_f1);
  return text;
}

Json report_json(const LatentReport& report) {
  Json receivers = Json::array(), joint;
  for (const LatentReport::OfReceiver& each : report.receivers)
    receivers.push_back(receiver_json(report, each));
  for (const JointScores& each : report.joint)
    joint = {{"exact_match", each.exact_match},
             {"f1", each.f1},
             {"agreement", each.agreement},
             {"oracle_exact_match", each.oracle_exact_match},
             {"oracle_f1", each.oracle_f1}};
  return {{"checkpoint", report.checkpoint},
          {"step", report.step},
          {"prompts", report.prompts.size()},
          {"cut", report.cut},
          {"budget", report.budget},
          {"slots", report.slots},
          {"width", report.width},
          {"group", report.group},
          {"prompt_bytes", report.prompt_bytes},
          {"receivers", std::move(receivers)},
          {"joint", std::move(joint)}};
}

}  // namespace fullbore::latentwire
