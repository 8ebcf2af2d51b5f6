#include <fmt/format.h>

#include <memory>
#include <optional>

#include "apps/long_context.h"
#include "apps/measured_job.h"
#include "apps/output.h"
#include "fullbore/base/json.h"
#include "fullbore/data/text_file.h"

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

std::optional<Gate> gate_of(const nlohmann::json& json, const char* field) {
  const std::string name = json.value(field, "");
  for (const Gate gate : {Gate::not_measured, Gate::failed, Gate::passed})
    if (gate_name(gate) == name) return gate;
  return {};
}

/// What is known of the three phases of one model.
class Phases {
 public:
  void add(const std::string& path) {
    const std::string text = read_text(path).take_or_throw();
    const Result<nlohmann::json> parsed = parse_json(text);
    const auto refuse = [&](const std::string& reason) {
      throw DataError(
          fmt::format("{}: {}; what a command of `fullbore longcontext` wrote by --json "
                      "was expected",
                      path, reason));
    };
    if (!parsed.ok()) refuse(parsed.error());
    const nlohmann::json& json = parsed.value();
    if (!json.is_object()) refuse("not a JSON object");
    for (const char* field : {"kind", "model"})
      if (!json.contains(field) || !json[field].is_string())
        refuse(fmt::format("there is no text '{}'", field));
    const std::string model = json["model"];
    if (!model_.empty() && model != model_)
      throw UsageError(
          fmt::format("phases: {} is of {}, the files before of {}", path, model, model_));
    model_ = model;
    const std::string kind = json["kind"];
    try {
      if (kind == "niah" && json.contains("gate_16k")) return add_gate(0, json, "gate_16k", refuse);
      if (kind == "longbench") return add_gate(1, json, "gate_100k", refuse);
      if (kind == "infinitebench") {
        phases_[2].gate = Gate::passed;
        phases_[2].figure = percent_text(json.at("score").get<double>());
        return;
      }
    } catch (const nlohmann::json::exception& error) {
      refuse(error.what());
    }
    refuse(fmt::format("of kind '{}', which no phase has (needles: --task single, no --control)",
                       kind));
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
  template <class Refuse>
  void add_gate(size_t phase, const nlohmann::json& json, const char* field, const Refuse& refuse) {
    const std::optional<Gate> gate = gate_of(json, field);
    if (!gate) refuse(fmt::format("'{}' is no state of a gate", field));
    phases_[phase].gate = *gate;
  }

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
