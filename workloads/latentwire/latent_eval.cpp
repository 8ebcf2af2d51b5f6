#include "workloads/latentwire/latent_eval.h"

#include <fmt/format.h>

#include <algorithm>
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

struct Arguments {
  int64_t prompts = 0;
  int64_t budget = 0;
  std::vector<std::string> bits = {};
  int64_t group = 32;
  std::string picture;
};

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

LatentReport::OfReceiver measure_receiver(TrainedLatent& model, const LatentReport& report,
                                          const std::vector<float>& wires, size_t receiver,
                                          const Arguments& arguments, Console& console) {
  LatentReport::OfReceiver result;
  result.name = model.receivers()[receiver].name;
  const auto tell = [&](const std::string& what) {
    console.live(fmt::format("evaluating {}: {}", result.name, what));
  };
  for (const System system : kSystems) {
    tell(system_name(system));
    result.systems.push_back(
        measure_system(model, report.prompts, system, receiver, wires, report.budget));
  }
  const SystemScores& latent = result.systems[static_cast<size_t>(System::latent)];
  for (const SystemScores& other : result.systems) {
    result.f1_differences.push_back(paired_interval(latent.f1, other.f1));
    result.match_tests.push_back(mcnemar(latent.exact_match, other.exact_match));
  }
  for (const int64_t bits : bits_of(arguments)) {
    tell(fmt::format("{} bits", bits));
    const SystemScores scores =
        measure_system(model, report.prompts, System::latent, receiver,
                       through_bits(model, wires, bits, arguments.group), report.budget);
    const WireForm form{model.slots(), model.width(), bits, arguments.group};
    result.bits.push_back({bits, form.bytes(), scores.mean_exact_match(), scores.mean_f1()});
  }
  for (const Prompt& each : report.prompts)
    result.prompt_tokens +=
        static_cast<double>(model.receivers()[receiver].ids(each.source()).size()) /
        static_cast<double>(report.prompts.size());
  return result;
}

ExitCode evaluate(const EvalRequest& request, const Arguments& arguments) {
  if (!arguments.picture.empty()) check_output_file(arguments.picture);
  bits_of(arguments);
  TrainedLatent model(request.subject);
  Console console;
  LatentReport report;
  int64_t count = arguments.prompts > 0 ? arguments.prompts : kPrompts;
  if (request.batches > 0)
    count = std::min(count, request.batches * model.config().train.batch_size);
  const auto source = measured_prompts(model.config(), request.data, count);
  count = source->size();
  for (int64_t i = 0; i < count; ++i) report.prompts.push_back(source->prompt(i));
  report.checkpoint = model.path();
  report.step = model.step();
  report.prompts_about = source->about();
  report.budget = arguments.budget > 0 ? arguments.budget : model.prefix_length();
  report.slots = model.slots();
  report.width = model.width();
  report.group = arguments.group;
  for (const Prompt& each : report.prompts)
    report.prompt_bytes += static_cast<double>(each.source().size()) / static_cast<double>(count);
  const std::vector<float> wires = encode_all(model, report.prompts, &report.cut);
  std::vector<SystemScores> latents;
  for (size_t i = 0; i < model.receivers().size(); ++i) {
    report.receivers.push_back(measure_receiver(model, report, wires, i, arguments, console));
    latents.push_back(report.receivers.back().systems[static_cast<size_t>(System::latent)]);
  }
  if (latents.size() > 1) report.joint.push_back(rescore(model, report.prompts, latents, wires));
  console.clear();
  if (request.json)
    write_output(json_text(report_json(report)));
  else
    write_output(report_text(report));
  if (!arguments.picture.empty()) write_output_file(arguments.picture, report_svg(report));
  return ExitCode::kOk;
}

}  // namespace

EvalKind add_latent_eval(Command eval) {
  auto arguments = std::make_shared<Arguments>();
  eval.add_option("--prompts", arguments->prompts,
                  "Of latentwire: so many prompts; by default 1000 of the corpus")
      .between(int64_t{1}, int64_t{1} << 30);
  eval.add_option("--budget", arguments->budget,
                  "Of latentwire: tokens of texts that are cut; by default the vectors of a prompt")
      .between(int64_t{1}, int64_t{1} << 20);
  eval.add_option("--bits", arguments->bits,
                  "Of latentwire: bits of a wire's numbers; by default 16 8 6 4");
  eval.add_option("--group", arguments->group, "Of latentwire: numbers that share a scale")
      .between(int64_t{1}, int64_t{65536})
      .shows_default();
  eval.add_option("--picture", arguments->picture,
                  "Of latentwire: an SVG of F1 by bytes of the wire");
  EvalKind kind;
  kind.models = {kLatentModel};
  kind.refuse = [arguments] {
    if (arguments->prompts > 0 || arguments->budget > 0 || !arguments->bits.empty() ||
        !arguments->picture.empty())
      throw UsageError("eval: --prompts, --budget, --bits and --picture are for latentwire");
  };
  kind.run = [arguments](const EvalRequest& request) { return evaluate(request, *arguments); };
  kind.examples = {"eval runs/latentwire-ci-1 --prompts 200 --bits 8 4 --picture f1.svg"};
  return kind;
}

}  // namespace fullbore::latentwire
