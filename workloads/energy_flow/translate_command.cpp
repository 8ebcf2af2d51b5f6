#include "workloads/energy_flow/translate_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "fullbore/app/output.h"
#include "fullbore/base/error.h"
#include "fullbore/data/text_lines.h"
#include "fullbore/monitor/console.h"
#include "workloads/energy_flow/trained_bridge.h"

namespace fullbore::energy_flow {
namespace {

struct TranslateArguments {
  std::string model;
  std::vector<std::string> texts;
  std::string input;
  TrainedBridge::Sizes sizes;
  WritingOptions writing;
  bool json = false;
};

void tell_cut(const TextForm& form, int64_t cut) {
  if (cut > 0)
    print_message(
        "note: {} texts have more than {} tokens (bridge.tokens): the rest was not read\n", cut,
        form.length());
}

/// How many of them are longer than the bridge reads.
int64_t count_cut(const TextForm& form, const std::vector<std::string>& texts) {
  std::vector<int32_t> row(static_cast<size_t>(form.length()));
  return std::ranges::count_if(texts, [&](const std::string& text) {
    const Result<bool> cut = form.fill(text, row);
    return cut.ok() && cut.value();
  });
}

void translate(TrainedBridge& bridge, const TranslateArguments& arguments,
               const std::vector<std::string>& texts) {
  std::vector<float> surfaces = bridge.encode(texts);
  if (bridge.has_lattice()) surfaces = bridge.flow(surfaces);
  const std::vector<std::string> written = bridge.write(surfaces, arguments.writing);
  for (size_t i = 0; i < texts.size(); ++i) {
    if (arguments.json)
      write_output(nlohmann::ordered_json{{"text", texts[i]}, {"written", written[i]}}.dump() +
                   "\n");
    else
      write_text(written[i] + "\n");
  }
}

ExitCode run_translate(const TranslateArguments& arguments) {
  if (arguments.texts.empty() == arguments.input.empty())
    throw UsageError("energy translate: texts, or a file of them by --input, were expected");
  TrainedBridge bridge(arguments.model, arguments.sizes);
  if (arguments.input.empty()) {
    translate(bridge, arguments, arguments.texts);
    tell_cut(bridge.form(), count_cut(bridge.form(), arguments.texts));
    return ExitCode::kOk;
  }
  Console console;
  TextLines lines(InputBytes::open(arguments.input).take_or_throw());
  std::vector<std::string> some;
  int64_t cut = 0;
  while (lines.next().take_or_throw()) {
    some.emplace_back(lines.line());
    if (std::ssize(some) < arguments.sizes.batch) continue;
    translate(bridge, arguments, some);
    cut += count_cut(bridge.form(), some);
    some.clear();
    if (console.live_due()) console.live(fmt::format("{} texts", lines.number()));
  }
  if (!some.empty()) translate(bridge, arguments, some);
  cut += count_cut(bridge.form(), some);
  console.clear();
  tell_cut(bridge.form(), cut);
  print_message("{} texts, {} of {} known already\n", lines.number(), bridge.encoded().hits(),
                bridge.encoded().hits() + bridge.encoded().misses());
  return ExitCode::kOk;
}

}  // namespace

void add_translate_command(Command energy) {
  Command command = energy.add_subcommand("translate", "Write the texts that follow from texts");
  auto arguments = std::make_shared<TranslateArguments>();
  TrainedBridge::Sizes& sizes = arguments->sizes;
  WritingOptions& writing = arguments->writing;
  command
      .add_option("RUN_OR_CHECKPOINT", arguments->model,
                  "Run directory (its best checkpoint) or a checkpoint with a text bridge")
      .required();
  command.add_option("TEXT", arguments->texts, "Texts to begin with");
  command.add_option("--input", arguments->input, "A file with a text a line, gzipped or not");
  command.add_option("--batch", sizes.batch, "Texts at a time")
      .between(int64_t{1}, int64_t{4096})
      .shows_default();
  command.add_option("--beams", sizes.beams, "Texts followed side by side; 1: greedy")
      .between(int64_t{1}, int64_t{64})
      .shows_default();
  command.add_option("--length", sizes.length, "Tokens written of a text, at most")
      .between(int64_t{1}, kTextPlaces)
      .shows_default();
  command.add_option("--temperature", writing.temperature, "Divides the logits")
      .between(0.01, 100.0)
      .shows_default();
  command
      .add_option(
          "--correction-steps", writing.correction_steps,
          "Texts are drawn anew so many times; of all, the one is kept whose surface is the "
          "nearest")
      .between(int64_t{0}, int64_t{1000})
      .shows_default();
  command.add_option("--seed", writing.seed, "Of these draws").shows_default();
  command.add_option("--cache", sizes.cached, "Texts that are remembered; 0: none")
      .between(int64_t{0}, int64_t{1} << 30)
      .shows_default();
  command.add_flag("--json", arguments->json, "Print a line of JSON a text");
  command.footer(R"(
A text becomes a surface, flows go from it through the lattice, and the surface that comes out is written
as a text. A run of model.name=energy_bridge has no lattice: it writes what it reads.

Exit codes: 2 another model, or one without a bridge; 3 damaged, or a file that cannot be read.

Example:
  fullbore energy translate runs/energy-bridge-1 "a red cat sings above the river"
  fullbore energy translate runs/energy-1 --input premises.txt --beams 4 --json)");
  command.runs([arguments] { return run_translate(*arguments); });
}

}  // namespace fullbore::energy_flow
