#include <memory>

#include "fullbore/app/trained_state.h"
#include "fullbore/text/generate_text.h"
#include "fullbore/text/text_commands.h"

namespace fullbore {

void add_generate_command(Command root) {
  Command command = root.add_subcommand("generate", "Let a trained model continue a text");
  struct Arguments {
    std::string model;
    GenerateOptions options;
  };
  auto arguments = std::make_shared<Arguments>();
  GenerateOptions& options = arguments->options;
  command
      .add_option(
          "RUN_OR_CHECKPOINT", arguments->model,
          "Run directory (its best checkpoint), a checkpoint, or a folder as `export` writes it")
      .required();
  command.add_option("key=value", options.overrides,
                     "Settings of section engine that override the run's: engine.precision=bf16");
  command
      .add_option("--prompt", options.prompts,
                  "Text to continue; several, of any lengths, are continued together")
      .one_value_each_time();
  command
      .add_option("--characters,--tokens", options.characters, "How many tokens to write at most")
      .between(int64_t{0}, int64_t{1} << 40)
      .shows_default();
  command
      .add_option("--temperature", options.sampling.temperature,
                  "Below 1 more likely, above 1 more surprising; 0: always the likeliest")
      .between(0.0, 1e6)
      .shows_default();
  command.add_option("--top-k", options.sampling.top_k, "Only the K likeliest tokens; 0: all")
      .between(int64_t{0}, int64_t{1} << 40)
      .shows_default();
  command
      .add_option("--top-p", options.sampling.top_p,
                  "Only the fewest tokens whose probabilities sum to P; 1: all")
      .between(0.0, 1.0)
      .shows_default();
  command
      .add_option("--repetition-penalty", options.sampling.repetition_penalty,
                  "Above 1, what was said before becomes less likely; 1: no matter")
      .between(1e-3, 1e3)
      .shows_default();
  command
      .add_option("--stop", options.stops,
                  "End a text before this string; may be given several times")
      .one_value_each_time();
  command.add_option("--samples", options.samples, "How many texts, made at once")
      .between(int64_t{1}, int64_t{4096})
      .shows_default();
  command.add_option("--state-in", options.state_in,
                     "Go on from what a recurrent model remembered: a file of --state-out");
  command.add_option("--state-out", options.state_out,
                     "Keep what a recurrent model remembers in the end, of constant size");
  add_frozen_option(command, options.frozen_from);
  command.add_option("--seed", options.seed, "Of the draws: the same seed, the same text")
      .shows_default();
  command.footer(
      "\nThe text is shown as it is made. What lies further back than the model's context is\n"
      "forgotten half a context at a time. What a recurrent model remembers can be kept: the text\n"
      "that goes on from it is that which would have come without the break. The same seed gives\n"
      "the same text.\n"
      "\nExample:\n"
      "  fullbore generate runs/default-1 --prompt \"ROMEO:\" --characters 300\n"
      "  fullbore generate runs/default-1/checkpoints/last --temperature 0.5\n"
      "  fullbore generate runs/mine-1 --prompt \"ROMEO:\" --state-out romeo.state\n"
      "  fullbore generate runs/mine-1 --state-in romeo.state --prompt \"JULIET:\"\n"
      "  fullbore generate runs/default-1 --prompt \"ROMEO:\" --samples 3 --top-p 0.9 "
      "--stop \"JULIET:\"\n"
      "  fullbore generate runs/default-1 engine.precision=bf16 --samples 64\n"
      "  fullbore generate runs/default-1 --prompt \"ROMEO:\" --prompt \"JULIET:\"");
  command.runs([arguments] {
    if (arguments->options.prompts.size() == 1) {
      arguments->options.prompt = arguments->options.prompts.front();
      arguments->options.prompts.clear();
    }
    generate_text(arguments->model, arguments->options);
    return ExitCode::kOk;
  });
}

}  // namespace fullbore
