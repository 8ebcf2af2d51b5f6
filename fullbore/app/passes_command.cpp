#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string_view>

#include "fullbore/app/commands.h"
#include "fullbore/app/json_text.h"
#include "fullbore/app/output.h"
#include "fullbore/passes/pass.h"

namespace fullbore {
namespace {

void print_json() {
  auto list = nlohmann::ordered_json::array();
  for (const Pass& pass : pipeline())
    list.push_back({{"name", pass.name},
                    {"summary", pass.summary},
                    {"because", pass.because},
                    {"optional", pass.optional},
                    {"compile", compile_effort_name(pass.effort)}});
  write_output(json_text(list));
}

void print_list() {
  print_output("In order of application:\n");
  int number = 0;
  for (const Pass& pass : pipeline()) {
    const std::string_view when = !pass.optional                      ? "  (always runs)"
                                  : pass.effort == CompileEffort::off ? "  (engine.compile=off too)"
                                  : pass.effort == CompileEffort::full ? "  (engine.compile=full)"
                                                                       : "";
    print_output("\n{:>3}. {}{}\n", ++number, pass.name, when);
    print_output("     {}\n     here because {}\n", pass.summary, pass.because);
  }
}

}  // namespace

void add_passes_command(Command root) {
  Command command = root.add_subcommand("passes", "List the compiler's passes in order, with why");
  auto json = std::make_shared<bool>(false);
  command.add_flag("--json", *json, "Print JSON");
  command.footer(
      "\nAn optional pass is switched off by name:\n"
      "  fullbore train CONFIG engine.disable_passes=[NAME]\n"
      "\nExample:\n  fullbore passes");
  command.runs([json] {
    *json ? print_json() : print_list();
    return ExitCode::kOk;
  });
}

}  // namespace fullbore
