#include <fmt/format.h>

#include <cstring>
#include <memory>
#include <new>

#include "fullbore/app/commands.h"
#include "fullbore/app/output.h"
#include "fullbore/base/printable.h"
#include "fullbore/base/threads.h"
#include "fullbore/device/registry.h"
#include "fullbore/monitor/console.h"
#include "fullbore/runtime/compare_nodes.h"
#include "fullbore/train/bad_step.h"

namespace fullbore {
namespace {

struct ReplayArguments {
  std::string path;
  int threads = 0;
  bool fast = false;
};

/// State and batch in the memory that a program wants them in.
class StepMemory {
 public:
  StepMemory(const LoadedStep& loaded, std::shared_ptr<Device> device)
      : state_(state_entries(loaded.step.graph), std::move(device)) {
    const auto& inputs = loaded.step.graph.inputs();
    for (size_t i = 0; i < inputs.size(); ++i) {
      const std::vector<char> bytes = loaded.inputs[i].bytes();
      if (is_state(inputs[i].role)) {
        state_.write(state_.find(inputs[i].name), std::as_bytes(std::span(bytes)));
        continue;
      }
      memory_.emplace_back(std::aligned_alloc(64, (bytes.size() + 64) / 64 * 64), std::free);
      void* const place = memory_.back().get();
      if (place == nullptr) throw std::bad_alloc();
      if (!bytes.empty()) std::memcpy(place, bytes.data(), bytes.size());
      batch_.push_back(place);
    }
  }
  State& state() { return state_; }
  std::span<const void* const> batch() const { return batch_; }

 private:
  State state_;
  std::vector<std::unique_ptr<void, void (*)(void*)>> memory_;
  std::vector<const void*> batch_;
};

ExitCode run_replay(const ReplayArguments& arguments) {
  const LoadedStep loaded = load_bad_step(arguments.path);
  const BadStep& step = loaded.step;
  const std::shared_ptr<Device> device = open_device(step.device, arguments.threads);
  Console console;
  print_output("step {} of {} nodes, device {}\n", step.step, step.graph.nodes().size(),
               printable_name(step.device));
  for (const auto& [name, value] : step.results)
    print_output("recorded   {} {:g}\n", printable_name(name), value);
  StepMemory memory(loaded, device);
  const std::string origin =
      first_non_finite(step.graph, memory.state(), memory.batch(), step.compile);
  print_output("origin     {}\n", origin.empty() ? "every value is finite on the device" : origin);
  if (arguments.fast) return ExitCode::kOk;
  Progress progress;
  const std::string parting = first_difference(
      step.graph, loaded.inputs, device, step.compile, [&](size_t done, size_t nodes) {
        progress.phase = fmt::format("interpreting node {}/{}", done, nodes);
        console.live(progress);
      });
  console.clear();
  if (parting.empty()) {
    print_output("agreement  device and interpreter agree on every node: {}\n",
                 origin.empty() ? "this step is finite" : "the numbers are the model's own");
    return ExitCode::kOk;
  }
  print_output("parting    {}\n", parting);
  return ExitCode::kNumerical;
}

}  // namespace

void add_replay_step_command(Command root) {
  Command command =
      root.add_subcommand("replay-step", "Make a step again that was not finite, node by node");
  auto arguments = std::make_shared<ReplayArguments>();
  command.add_option("DIRECTORY", arguments->path, "A run's bad_steps/step-N").required();
  command.add_option("--threads", arguments->threads, "0: all processors there are")
      .between(0, 1024);
  command.add_flag("--fast", arguments->fast,
                   "Only find the origin, on the device: the interpreter is slow");
  command.footer(
      "\nTraining keeps the first steps whose loss or gradients were not finite, with batch and\n"
      "State. This names the first value that was not finite, and then evaluates every node in\n"
      "double precision on what the device gave it: where the two part by more than rounding, "
      "the\n"
      "device is wrong, and otherwise the numbers are the model's own.\n"
      "\nExample:\n"
      "  fullbore replay-step runs/default-1/bad_steps/step-00000025\n"
      "\nExit codes: 0 they agree, 3 the folder is damaged, 4 they part.");
  command.runs([arguments] { return run_replay(*arguments); });
}

}  // namespace fullbore
