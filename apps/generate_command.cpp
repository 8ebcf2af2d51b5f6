#include "apps/commands.h"
#include "apps/generate_text.h"

namespace fullbore {

void add_generate_command(CLI::App& app, ChosenCommand& chosen) {
  CLI::App* command = app.add_subcommand("generate", "Let a trained model continue a text");
  struct Arguments {
    std::string model;
    GenerateOptions options;
  };
  auto arguments = std::make_shared<Arguments>();
  GenerateOptions& options = arguments->options;
  command
      ->add_option("RUN_OR_CHECKPOINT", arguments->model,
                   "Run directory (its best checkpoint) or .safetensors file")
      ->required();
  command->add_option("--prompt", options.prompt, "Text to continue");
  command->add_option("--characters", options.characters, "How many to write")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 40))
      ->capture_default_str();
  command
      ->add_option("--temperature", options.temperature,
                   "Below 1 more likely, above 1 more surprising; 0: always the likeliest")
      ->check(CLI::Range(0.0, 1e6))
      ->capture_default_str();
  command->add_option("--top-k", options.top_k, "Only the K likeliest characters; 0: all")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 40))
      ->capture_default_str();
  command->add_option("--seed", options.seed, "Of the draws: the same seed, the same text")
      ->capture_default_str();
  command->footer(
      "\nExample:\n"
      "  fullbore generate runs/default-1 --prompt \"ROMEO:\" --characters 300\n"
      "  fullbore generate runs/default-1/checkpoints/last.safetensors --temperature 0.5");
  command->callback([&chosen, arguments] {
    chosen = [arguments] {
      generate_text(arguments->model, arguments->options);
      return ExitCode::kOk;
    };
  });
}

}  // namespace fullbore
