#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>
#include <set>

#include "fullbore/app/command_tree.h"
#include "fullbore/app/commands.h"
#include "fullbore/app/output.h"
#include "fullbore/base/text.h"
#include "fullbore/train/config_schema.h"

namespace fullbore {
namespace {

std::vector<std::string> flags_of(const CommandDescription& command) {
  std::vector<std::string> flags;
  for (const OptionDescription& option : command.options)
    for (const std::string& name : option.long_names) flags.push_back("--" + name);
  return flags;
}

std::vector<std::string> names_of(const std::vector<CommandDescription>& commands) {
  std::vector<std::string> names;
  for (const CommandDescription& command : commands) names.push_back(command.name);
  return names;
}

std::vector<std::string> setting_words() {
  std::vector<std::string> words;
  for (const std::string& key : config_keys()) words.push_back(key + "=");
  return words;
}

// 'a'"'"'b'
std::string single_quoted(const std::string& text) {
  return "'" + replace_all(text, "'", "'\"'\"'") + "'";
}

std::string bash(const std::vector<CommandDescription>& commands) {
  std::string text =
      R"(# bash completion of fullbore; source it, or put it where bash-completion looks:
#   fullbore completion bash > ~/.local/share/bash-completion/completions/fullbore
_fullbore() {
  local current="${COMP_WORDS[COMP_CWORD]}" words=""
  # bash splits words at '=': "train.steps=" is three.
  if [[ "$current" == "=" || "${COMP_WORDS[COMP_CWORD-1]}" == "=" ]]; then
    compopt -o default; COMPREPLY=(); return
  fi
  if (( COMP_CWORD == 1 )); then
)";
  text +=
      fmt::format("    words=\"{} --help --version\"\n  else\n    case \"${{COMP_WORDS[1]}}\" in\n",
                  fmt::join(names_of(commands), " "));
  for (const CommandDescription& command : commands) {
    std::vector<std::string> words = flags_of(command);
    // Which of a command's own subcommands it is decides what follows.
    for (const CommandDescription& inner : command.subcommands)
      text += fmt::format(
          "      {}) [[ $COMP_CWORD -gt 2 && \"${{COMP_WORDS[2]}}\" == {} ]] && "
          "words=\"{}\" ;;&\n",
          command.name, inner.name, fmt::join(flags_of(inner), " "));
    if (!command.subcommands.empty()) {
      text += fmt::format("      {}) (( COMP_CWORD == 2 )) && words=\"{} --help\" ;;\n",
                          command.name, fmt::join(names_of(command.subcommands), " "));
      continue;
    }
    text += fmt::format("      {}) words=\"{}\"{} ;;\n", command.name, fmt::join(words, " "),
                        command.takes_settings() ? "; words=\"$words $(_fullbore_settings)\"" : "");
  }
  text += fmt::format(R"(    esac
  fi
  COMPREPLY=($(compgen -W "$words" -- "$current"))
  [[ ${{#COMPREPLY[@]}} -eq 1 && "${{COMPREPLY[0]}}" == *= ]] && compopt -o nospace
  [[ "$current" == -* || $COMP_CWORD -eq 1 ]] || COMPREPLY+=($(compgen -f -- "$current"))
}}
_fullbore_settings() {{
  echo "{}"
}}
complete -o filenames -F _fullbore fullbore
)",
                      fmt::join(setting_words(), " "));
  return text;
}

std::string zsh_option(const OptionDescription& option) {
  const std::string description =
      single_quoted(replace_all(replace_all(option.description, "[", "("), "]", ")"));
  const std::string inner = description.substr(1, description.size() - 2);
  return fmt::format("'--{}[{}]{}'", option.long_names.front(), inner,
                     option.takes_value ? ":value:_files" : "");
}

std::string zsh(const std::vector<CommandDescription>& commands) {
  std::string text = R"(#compdef fullbore
# zsh completion of fullbore; put it into a folder of $fpath:
#   fullbore completion zsh > ~/.zfunc/_fullbore
_fullbore() {
  local -a commands settings
  commands=(
)";
  for (const CommandDescription& command : commands)
    text += fmt::format("    {}\n",
                        single_quoted(fmt::format("{}:{}", command.name, command.description)));
  text += "  )\n  settings=(\n";
  for (const ConfigField& field : config_fields())
    text += fmt::format(
        "    {}\n",
        single_quoted(fmt::format("{}=:{}", field.key, replace_all(field.meaning, ":", ","))));
  text += R"(  )
  if (( CURRENT == 2 )); then
    _describe -t commands 'command' commands
    return
  fi
  local command="$words[2]"
  shift words; (( CURRENT-- ))
  case "$command" in
)";
  for (const CommandDescription& command : commands) {
    text += fmt::format("    {})\n      _arguments", command.name);
    for (const OptionDescription& option : command.options)
      if (!option.long_names.empty()) text += " \\\n        " + zsh_option(option);
    // zsh wants each option once, whichever of the subcommands takes it.
    std::set<std::string> known = {"help"};
    for (const CommandDescription& inner : command.subcommands)
      for (const OptionDescription& option : inner.options)
        if (!option.long_names.empty() && known.insert(option.long_names.front()).second)
          text += " \\\n        " + zsh_option(option);
    if (!command.subcommands.empty())
      text += fmt::format(" \\\n        '1:subcommand:({})'",
                          fmt::join(names_of(command.subcommands), " "));
    text += command.takes_settings()
                ? " \\\n        '1:configuration:_files' "
                  "'*:setting:{ _describe -t settings setting settings -S \"\" }'\n"
                : " \\\n        '*:argument:_files'\n";
    text += "      ;;\n";
  }
  return text + "  esac\n}\n_fullbore \"$@\"\n";
}

std::string fish(const std::vector<CommandDescription>& commands) {
  std::string text =
      "# fish completion of fullbore:\n"
      "#   fullbore completion fish > ~/.config/fish/completions/fullbore.fish\n";
  const auto quoted = [](const std::string& word) {
    return "'" + replace_all(replace_all(word, "\\", "\\\\"), "'", "\\'") + "'";
  };
  std::vector<std::string> with_settings;
  for (const CommandDescription& command : commands) {
    text += fmt::format("complete -c fullbore -n __fish_use_subcommand -f -a {} -d {}\n",
                        command.name, quoted(command.description));
    for (const CommandDescription& inner : command.subcommands) {
      text +=
          fmt::format("complete -c fullbore -n '__fish_seen_subcommand_from {}' -f -a {} -d {}\n",
                      command.name, inner.name, quoted(inner.description));
      for (const OptionDescription& option : inner.options)
        if (!option.long_names.empty())
          text += fmt::format(
              "complete -c fullbore -n '__fish_seen_subcommand_from {}' -l {}{} -d {}\n",
              inner.name, option.long_names.front(), option.takes_value ? " -r" : "",
              quoted(option.description));
    }
    if (command.takes_settings()) with_settings.push_back(command.name);
    for (const OptionDescription& option : command.options)
      if (!option.long_names.empty())
        text +=
            fmt::format("complete -c fullbore -n '__fish_seen_subcommand_from {}' -l {}{} -d {}\n",
                        command.name, option.long_names.front(), option.takes_value ? " -r" : "",
                        quoted(option.description));
  }
  for (const ConfigField& field : config_fields())
    text +=
        fmt::format("complete -c fullbore -n '__fish_seen_subcommand_from {}' -a {} -d {}\n",
                    fmt::join(with_settings, " "), quoted(field.key + "="), quoted(field.meaning));
  return text;
}

ExitCode run_completion(const Command& root, const std::string& shell) {
  const std::vector<CommandDescription> commands = root.describe().subcommands;
  // The scripts are written for `fullbore`; a program of one's own completes itself.
  const auto print = [name = root.describe().name](const std::string& script) {
    print_output("{}", name == "fullbore" ? script : replace_all(script, "fullbore", name));
  };
  const std::vector<std::string> shells = {"bash", "zsh", "fish"};
  if (shell == "bash")
    print(bash(commands));
  else if (shell == "zsh")
    print(zsh(commands));
  else if (shell == "fish")
    print(fish(commands));
  else
    throw UsageError(fmt::format("completion: there is none for '{}'.{} The shells are {}.", shell,
                                 did_you_mean(shell, shells), fmt::join(shells, ", ")));
  return ExitCode::kOk;
}

}  // namespace

void add_completion_command(Command root) {
  Command command = root.add_subcommand("completion", "Print the completion script of a shell");
  auto shell = std::make_shared<std::string>();
  command.add_option("SHELL", *shell, "bash, zsh or fish").required();
  command.footer(
      "\nCompletes commands, options and the keys of a configuration.\n\n"
      "Example:\n"
      "  source <(fullbore completion bash)\n"
      "  fullbore completion zsh > ~/.zfunc/_fullbore\n"
      "  fullbore completion fish > ~/.config/fish/completions/fullbore.fish");
  command.runs([root, shell] { return run_completion(root, *shell); });
}

}  // namespace fullbore
