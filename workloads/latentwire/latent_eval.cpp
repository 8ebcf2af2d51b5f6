#include "workloads/latentwire/latent_eval.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>

#include "fullbore/app/json_text.h"
#include "fullbore/app/measured_job.h"
#include "fullbore/app/output.h"
#include "fullbore/base/error.h"
#include "fullbore/monitor/console.h"
#include "fullbore/train/run_checkpoints.h"
#include "workloads/latentwire/attribute_corpus.h"
#include "workloads/latentwire/latent_keys.h"
#include "workloads/latentwire/latent_prompts.h"
#include "workloads/latentwire/latent_report.h"
#include "workloads/latentwire/prompt_batches.h"
#include "workloads/latentwire/wire_codec.h"

namespace fullbore::latentwire {
namespace {

constexpr int64_t kPrompts = 1000;
constexpr double kMostCacheLoss = 1e-3;  // nats of a token
using Cache = TrainedLatentOptions::Cache;

struct Arguments {
  int64_t prompts = 0;
  std::vector<std::string> budgets = {}, bits = {}, systems = {};
  int64_t group = 32;
  int64_t rows = 64;
  Writing writing = {};
  int64_t most_tokens = 0;
  std::string cache = "on", picture, output;
};

std::vector<System> systems_of(const Arguments& arguments) {
  if (arguments.systems.empty()) return {std::begin(kSystems), std::end(kSystems)};
  std::vector<System> result;
  for (const System each : kSystems)
    if (std::ranges::find(arguments.systems, system_name(each)) != arguments.systems.end())
      result.push_back(each);
  for (const std::string& each : arguments.systems)
    if (std::ranges::find(result, each, system_name) == result.end())
      throw UsageError(fmt::format(
          "eval: --systems {}: text, latent, head, question-first or replay was expected", each));
  return result;
}

// Whole numbers from 1 to `most`.
std::vector<int64_t> numbers_of(const std::vector<std::string>& texts, const char* option,
                                int64_t most) {
  std::vector<int64_t> result;
  for (const std::string& each : texts) {
    const bool digits = !each.empty() && each.size() < 9 &&
                        std::ranges::all_of(each, [](char c) { return c >= '0' && c <= '9'; });
    const int64_t number = digits ? std::stoll(each) : 0;
    if (number < 1 || number > most)
      throw UsageError(
          fmt::format("eval: {} {}: a number from 1 to {} was expected", option, each, most));
    result.push_back(number);
  }
  return result;
}

std::vector<int64_t> bits_of(const Arguments& arguments) {
  if (arguments.bits.empty()) return {16, 8, 6, 4};
  std::vector<int64_t> result;
  for (const std::string& each : arguments.bits) {
    const bool digits =
        each.size() < 3 && std::ranges::all_of(each, [](char c) { return c >= '0' && c <= '9'; });
    const int64_t bits = digits && !each.empty() ? std::stoll(each) : 0;
    if (const Status status = check_wire_form({1, 1, bits, arguments.group}); !status)
      throw UsageError(fmt::format("eval: --bits {}: {}", each, status.error()));
    result.push_back(bits);
  }
  return result;
}

void compare_replay(LatentReport::OfReceiver& receiver) {
  const SystemScores* const text = receiver.find(System::text);
  const SystemScores* const replay = receiver.find(System::replay);
  if (text == nullptr || replay == nullptr) return;
  for (size_t i = 0; i < text->answers.size(); ++i) {
    receiver.replay_differs += text->answers[i] == replay->answers[i] ? 0 : 1;
    receiver.replay_nats = std::max(receiver.replay_nats, std::abs(text->likelihoods[i].nats() -
                                                                   replay->likelihoods[i].nats()));
  }
}

LatentReport::OfReceiver measure_receiver(TrainedLatent& model, const LatentReport& report,
                                          const std::vector<float>& wires, size_t receiver,
                                          const Arguments& arguments, Console& console) {
  LatentReport::OfReceiver result;
  const Receiver& reader = model.receivers()[receiver];
  result.name = reader.name;
  result.log_vocabulary = std::log(static_cast<double>(reader.decoder.vocabulary));
  const MeasuredPrompts measured{report.prompts, wires};
  for (const System system : systems_of(arguments)) {
    const bool is_cut = system == System::head || system == System::question_first;
    for (const int64_t budget : is_cut ? report.budgets : std::vector<int64_t>{0}) {
      console.live(fmt::format("evaluating {}: {}", result.name, system_name(system)));
      result.systems.push_back(
          measure_system(model, measured, system, receiver, budget, arguments.writing));
    }
  }
  compare_replay(result);
  const auto count = static_cast<double>(report.prompts.size());
  for (const Prompt& each : report.prompts) {
    result.source_tokens += static_cast<double>(reader.ids(each.source()).size()) / count;
    result.text_places += static_cast<double>(prompt_ids(reader, each.source()).size()) / count;
  }
  result.latent_places = static_cast<double>(reader.layout.place(model.prefix_length()) + 1);
  const SystemScores* const latent = result.find(System::latent);
  if (latent == nullptr) return result;
  for (const SystemScores& other : result.systems) {
    result.f1_differences.push_back(paired_interval(latent->f1, other.f1));
    result.match_tests.push_back(mcnemar(latent->exact_match, other.exact_match));
  }
  for (const int64_t bits : bits_of(arguments)) {
    console.live(fmt::format("evaluating {}: {} bits", result.name, bits));
    const std::vector<float> stored = through_bits(model, wires, bits, arguments.group);
    const SystemScores scores = measure_system(model, {report.prompts, stored}, System::latent,
                                               receiver, 0, arguments.writing);
    const WireForm form{model.slots(), model.width(), bits, arguments.group};
    result.bits.push_back({bits, form.bytes(), scores.mean_exact_match(), scores.mean_f1()});
  }
  return result;
}

TrainedLatentOptions options_of(const Arguments& arguments, const std::vector<Prompt>& prompts) {
  const bool reads = std::ranges::any_of(systems_of(arguments),
                                         [](System each) { return each != System::latent; });
  return {.rows = arguments.rows,
          .cache = arguments.cache == "off"     ? Cache::off
                   : arguments.cache == "check" ? Cache::check
                                                : Cache::on,
          .answer_tokens = arguments.most_tokens,
          .longest_text = [&prompts, reads](const Receiver& receiver) {
            return reads ? longest_prompt(receiver, prompts) : 0;
          }};
}

void check(const Arguments& arguments) {
  for (const std::string& path : {arguments.picture, arguments.output})
    if (!path.empty()) check_output_file(path);
  bits_of(arguments);
  systems_of(arguments);
  numbers_of(arguments.budgets, "--budget", int64_t{1} << 20);
  const bool draws = arguments.writing.first_temperature > 0;
  if (arguments.cache != "on" && (draws || arguments.writing.least_tokens > 0))
    throw UsageError(
        "eval: --first-temperature and --min-new-tokens are for answers over a cache (--cache on)");
  if (!draws && arguments.writing.first_top_p < 1)
    throw UsageError("eval: --first-top-p needs a --first-temperature above 0");
}

// A cache that says something else than whole passes turns itself off, aloud.
void tell_cache(const TrainedLatent& model, LatentReport& report) {
  const CacheCheck& check = model.cache_check();
  report.cache_checks.push_back(check);
  if (check.largest_loss <= kMostCacheLoss) return;
  report.cache = "off";
  print_message(
      "eval: --cache check: over caches a token's loss is another by {:.2g}, at most {:.0e} was "
      "expected; what is told is of whole passes\n",
      check.largest_loss, kMostCacheLoss);
}

ExitCode evaluate(const EvalRequest& request, const Arguments& arguments) {
  check(arguments);
  Console console;
  LatentReport report;
  int64_t count = arguments.prompts > 0 ? arguments.prompts : kPrompts;
  const auto open = [&](const Config& config) {
    if (request.batches > 0) count = std::min(count, request.batches * config.train.batch_size);
    const auto source = measured_prompts(config, request.data, count);
    for (int64_t i = 0; i < source->size(); ++i) report.prompts.push_back(source->prompt(i));
    report.prompts_about = source->about();
  };
  TrainedLatentOptions options = options_of(arguments, report.prompts);
  options.opened = open;
  options.frozen_from = request.frozen_from;
  TrainedLatent model(request.subject, options);
  report.checkpoint = model.path();
  report.step = model.step();
  report.cache = arguments.cache;
  report.budgets = numbers_of(arguments.budgets, "--budget", int64_t{1} << 20);
  if (report.budgets.empty()) report.budgets = {model.prefix_length()};
  report.prefix = model.prefix_length();
  report.slots = model.slots();
  report.width = model.width();
  report.group = arguments.group;
  report.rows = model.rows();
  for (const Prompt& each : report.prompts)
    report.prompt_bytes +=
        static_cast<double>(each.source().size()) / static_cast<double>(report.prompts.size());
  const std::vector<float> wires = encode_all(model, report.prompts, &report.cut);
  report.encode_seconds = model.encode_seconds();
  std::vector<SystemScores> latents;
  for (size_t i = 0; i < model.receivers().size(); ++i) {
    report.receivers.push_back(measure_receiver(model, report, wires, i, arguments, console));
    if (const SystemScores* const latent = report.receivers.back().find(System::latent))
      latents.push_back(*latent);
  }
  if (latents.size() > 1) report.joint.push_back(rescore(model, {report.prompts, wires}, latents));
  console.clear();
  if (arguments.cache == "check") tell_cache(model, report);
  const std::string json = json_text(report_json(report));
  if (request.json)
    write_output(json);
  else
    print_output("{}", report_text(report));
  if (!arguments.output.empty()) write_output_file(arguments.output, json);
  if (!arguments.picture.empty()) write_output_file(arguments.picture, report_svg(report));
  return ExitCode::kOk;
}

}  // namespace

EvalKind add_latent_eval(Command eval) {
  auto arguments = std::make_shared<Arguments>();
  eval.add_option("--prompts", arguments->prompts,
                  "Of latentwire: so many prompts; by default 1000 of the corpus")
      .between(int64_t{1}, int64_t{1} << 30);
  eval.add_option("--systems", arguments->systems,
                  "Of latentwire: text, latent, head, question-first, replay; by default all");
  eval.add_option(
      "--budget", arguments->budgets,
      "Of latentwire: tokens of texts that are cut; by default the vectors of a prompt");
  eval.add_option("--bits", arguments->bits,
                  "Of latentwire: bits of a wire's numbers; by default 16 8 6 4");
  eval.add_option("--group", arguments->group, "Of latentwire: numbers that share a scale")
      .between(int64_t{1}, int64_t{65536})
      .shows_default();
  eval.add_option("--chunk", arguments->rows, "Of latentwire: prompts that are answered at once")
      .between(int64_t{1}, int64_t{4096})
      .shows_default();
  eval.add_option("--max-new-tokens", arguments->most_tokens,
                  "Of latentwire: tokens of an answer; by default receivers.max_answer_tokens")
      .between(int64_t{1}, int64_t{4096});
  eval.add_option("--min-new-tokens", arguments->writing.least_tokens,
                  "Of latentwire: no answer ends before as many tokens")
      .between(int64_t{0}, int64_t{4096});
  eval.add_option("--first-temperature", arguments->writing.first_temperature,
                  "Of latentwire: the first token is drawn; 0: the likeliest, as all others are")
      .between(0.0, 100.0);
  eval.add_option("--first-top-p", arguments->writing.first_top_p,
                  "Of latentwire: of the likeliest with so much probability together")
      .between(0.0, 1.0);
  eval.add_option(
          "--cache", arguments->cache,
          "Of latentwire: off, each token by a pass over the whole row; check compares both")
      .one_of({"off", "on", "check"})
      .shows_default();
  eval.add_option("--picture", arguments->picture,
                  "Of latentwire: an SVG of F1 by bytes of the wire");
  eval.add_option("--report", arguments->output, "Of latentwire: a file for the report as JSON");
  EvalKind kind;
  kind.models = {kLatentModel};
  kind.takes_frozen = true;
  kind.refuse = [arguments] {
    if (arguments->prompts > 0 || !arguments->budgets.empty() || !arguments->bits.empty() ||
        !arguments->systems.empty() || !arguments->picture.empty() || !arguments->output.empty() ||
        arguments->most_tokens > 0)
      throw UsageError(
          "eval: --prompts, --systems, --budget, --bits, --max-new-tokens, --picture and --report "
          "are "
          "for latentwire");
  };
  kind.run = [arguments](const EvalRequest& request) { return evaluate(request, *arguments); };
  kind.examples = {"eval runs/latentwire-ci-1 --prompts 200 --bits 8 4 --picture f1.svg"};
  return kind;
}

}  // namespace fullbore::latentwire
