#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "fullbore/app/measured_job.h"
#include "fullbore/app/output.h"
#include "workloads/long_context/longcontext_command.h"
#include "workloads/long_context/measurements.h"

namespace fullbore {
namespace {

using long_context::Gate;

struct PhasesArguments {
  std::vector<std::string> files;
  bool json = false;
};

struct Phase {
  std::string what;
  std::string asks;  ///< of its gate
  std::string command;
  Gate gate = Gate::not_measured;
  std::string figure;
};

/// What is known of the three phases of one model.
class Phases {
 public:
  void add(const std::string& path) {
    const long_context::PhaseMeasurement measured =
        long_context::read_phase_measurement(path).take_or_throw();
    if (!model_.empty() && measured.model != model_)
      throw UsageError(
          fmt::format("phases: {} is of {}, the files before of {}", path, measured.model, model_));
    model_ = measured.model;
    Phase& phase = phases_[measured.phase];
    phase.gate = measured.gate;
    if (measured.score) phase.figure = percent_text(*measured.score);
  }

  void print() const {
    print_output("{}\n", model_);
    bool open = true;
    for (size_t i = 0; i < phases_.size(); ++i) {
      const Phase& phase = phases_[i];
      const bool last = i + 1 == phases_.size();
      std::string state = !open                              ? "closed"
                          : phase.gate == Gate::not_measured ? "open"
                          : last                             ? "measured"
                                                             : std::string(gate_name(phase.gate));
      if (!phase.figure.empty()) state += ", " + phase.figure;
      print_output("phase {}  {:<34}{}\n", i + 1, phase.what, state);
      if (open && phase.gate == Gate::not_measured)
        print_output("         {}next: {}\n", phase.asks.empty() ? "" : phase.asks + "; ",
                     phase.command);
      open = open && phase.gate == Gate::passed;
    }
  }

  nlohmann::ordered_json json() const {
    nlohmann::ordered_json json = {{"kind", "phases"}, {"model", model_}};
    bool open = true;
    for (size_t i = 0; i < phases_.size(); ++i) {
      json["phases"].push_back(
          {{"phase", i + 1}, {"open", open}, {"gate", gate_name(phases_[i].gate)}});
      open = open && phases_[i].gate == Gate::passed;
    }
    return json;
  }

 private:
  std::string model_;
  std::vector<Phase> phases_ = {
      {"needles, 1K to 16K", "above 80 % at 16K",
       "fullbore longcontext niah MODEL --json niah.json", Gate::not_measured, ""},
      {"LongBench, 50K to 100K", "an F1 above 0.6 from 90K to 110K",
       "fullbore longcontext longbench MODEL FILE... --json longbench.json", Gate::not_measured,
       ""},
      {"InfiniteBench, 100K to 200K", "",
       "fullbore longcontext infinitebench MODEL FILE... --json infinitebench.json",
       Gate::not_measured, ""}};
};

}  // namespace

void add_phases_command(Command group) {
  Command command =
      group.add_subcommand("phases", "What was passed, and what there is cause to measure next");
  auto arguments = std::make_shared<PhasesArguments>();
  command
      .add_option("FILE", arguments->files,
                  "What niah, longbench and infinitebench wrote of one model, by --json")
      .required();
  command.add_flag("--json", arguments->json, "Print JSON");
  command.footer(R"(
A phase is open where the gate before it is passed: measuring a model at 100K that loses single
needles at 16K tells nothing.

Example:
  fullbore longcontext phases niah.json
  fullbore longcontext phases niah.json longbench.json)");
  command.runs([arguments] {
    Phases phases;
    for (const std::string& file : arguments->files) phases.add(file);
    if (arguments->json)
      write_json("-", phases.json());
    else
      phases.print();
    return ExitCode::kOk;
  });
}

}  // namespace fullbore
