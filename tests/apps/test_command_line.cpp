// What the command line says of itself: numbers, examples, exit codes.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "fullbore/app/command_tree.h"
#include "fullbore/app/commands.h"
#include "fullbore/app/exit_codes.h"
#include "fullbore/base/text.h"
#include "fullbore/train/config.h"
#include "fullbore/train/config_schema.h"
#include "tests/support/gathered.h"
#include "tests/support/paths.h"

namespace fullbore {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using Words = std::vector<std::string>;

/// Why a configuration is refused; "" if it is not.
std::string refusal(const std::string& yaml, const Words& overrides) {
  try {
    (void)parse_config(yaml, "x", overrides);
    return "";
  } catch (const UsageError& error) {
    return error.what();
  }
}

/// A model that has the key: the default one, or the first whose own defaults can be trained.
std::string model_with(const ConfigField& field) {
  if (!field.models.empty()) return field.models.front();
  if (!default_model().empty()) return default_model();
  const auto& models = find_config_field("model.name")->choices;
  const auto trained = std::ranges::find_if(models, [](const auto& name) {
    return refusal("", {fmt::format("model.name={}", name)}).empty();
  });
  return std::string(trained == models.end() ? models.front() : *trained);
}

class CommandLine : public ::testing::Test {
 protected:
  CommandDescription description() {
    CommandParser parser("fullbore", "", [] { return std::string(); });
    add_commands(parser.root());
    return parser.root().describe();
  }
  /// What is wrong with the words, which nothing runs; "" if they are right.
  static std::string complaint(const Words& words) {
    CommandParser parser("fullbore", "", [] { return std::string(); });
    add_commands(parser.root());
    std::vector<const char*> arguments = {"fullbore"};
    for (const std::string& word : words) arguments.push_back(word.c_str());
    try {
      parser.check(static_cast<int>(arguments.size()), arguments.data());
    } catch (const UsageError& error) {
      return error.what();
    }
    return "";
  }
  /// Every command and subcommand with the words that name it.
  static void for_each_command(
      const CommandDescription& above, const Words& names,
      const std::function<void(const CommandDescription&, const Words&)>& visit) {
    visit(above, names);
    for (const CommandDescription& inner : above.subcommands) {
      Words all = names;
      all.push_back(inner.name);
      for_each_command(inner, all, visit);
    }
  }
};

// None is below zero, and none is so large that what is computed of it would not be finite.
TEST_F(CommandLine, NumbersAreFiniteAndWithinBounds) {
  int options = 0;
  for_each_command(description(), {}, [&](const CommandDescription& command, const Words& names) {
    for (const OptionDescription& option : command.options) {
      if (!option.takes_number) continue;
      ++options;
      for (const char* value : {"nan", "-nan", "NAN", "inf", "-inf", "infinity", "1e999", "x", "-1",
                                "-1e-9", "1e300", "99999999999999999999", ""}) {
        Words words = names;
        words.push_back(option.name() + "=" + value);
        EXPECT_THAT(complaint(words), HasSubstr(option.name()))
            << fmt::format("{}", fmt::join(words, " "));
      }
    }
  });
  EXPECT_GT(options, 40);
}

// A configuration is written section by section: one that stood in two places could not be read again.
TEST_F(CommandLine, KeysOfASectionStandTogether) {
  std::vector<std::string> sections = config_sections();
  std::ranges::sort(sections);
  EXPECT_EQ(std::ranges::adjacent_find(sections), sections.end());
  EXPECT_GT(sections.size(), 8U);
}

TEST_F(CommandLine, NumbersOfAConfigurationAreFiniteAndWithinBounds) {
  const auto refused = [](const std::string& override) {
    const std::string key = override.substr(0, override.find('='));
    const Words overrides = {"model.name=" + model_with(*find_config_field(key)), override};
    EXPECT_THAT(refusal("", overrides), HasSubstr(key)) << override;
  };
  Config defaults;
  int keys = 0;
  for (const ConfigField& field : config_fields()) {
    const ConfigPlace place = field.place(defaults);
    if (!std::holds_alternative<double*>(place) && !std::holds_alternative<int64_t*>(place))
      continue;
    ++keys;
    for (const char* value : {"nan", "-nan", "inf", "-inf", "1e999", "1e300", "-1e300", "-2", "",
                              "99999999999999999999", "0x10", "[1]"})
      refused(field.key + "=" + value);
  }
  EXPECT_GT(keys, 50);
  // Numbers within texts and lists.
  for (const char* value : {"nan", "inf", "-1", "1e999", "1e300", ""}) {
    for (const char* name : {"weight_decay", "learning_rate_multiplier"})
      refused(fmt::format("optim.groups=[{{match: '*.bias', {}: {}}}]", name, value));
    refused(fmt::format("data.buckets=[4, {}]", value));
    refused(fmt::format("data.context_curriculum=[{{until_step: {}, length: 4}}]", value));
    refused(fmt::format("data.context_curriculum=[{{until_step: 4, length: {}}}]", value));
    if (*value != '\0') refused(fmt::format("engine.memory_budget={}", value));
  }
}

TEST_F(CommandLine, EveryKeyIsComplete) {
  const Config defaults;
  for (const ConfigField& field : config_fields()) {
    EXPECT_EQ(find_config_field(field.key), &field) << "two rows for " << field.key;
    EXPECT_FALSE(field.meaning.empty()) << field.key;
    EXPECT_LE(field.meaning.size(), 100U) << field.key;
    EXPECT_THAT(config_documentation(), HasSubstr(field.key));
    // A default that its own range refuses could not be written back.
    const std::string yaml =
        fmt::format("{}: {{{}: {}}}", field.section(), field.name(), value_yaml(field, defaults));
    const Words overrides = {"model.name=" + model_with(field)};
    if (field.key == "model.name" && default_model().empty()) continue;  // it has no default
    EXPECT_EQ(refusal(yaml, overrides), "") << yaml;
  }
}

TEST_F(CommandLine, AModelMustBeNamedWhereNoneIsTheDefault) {
  const std::string refused = refusal("", {});
  if (default_model().empty())
    EXPECT_THAT(refused, HasSubstr("config: model.name is not set; it is one of "));
  else
    EXPECT_EQ(refused, "");
}

TEST_F(CommandLine, EveryShippedConfigIsRead) {
  const std::set<std::string> absent = testing::absent_workloads();
  int files = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(testing::source_folder() + "/configs")) {
    if (entry.path().extension() != ".yaml") continue;
    try {
      (void)load_config(entry.path().string());
      ++files;
    } catch (const UsageError& error) {
      // A link to nowhere, or a task of one workload for the model of another.
      EXPECT_THAT(absent, Not(IsEmpty())) << error.what();
    }
  }
  EXPECT_GE(files, 1);
}

/// The words of a line as a shell has them; what follows a pipe, && or > is another command's.
std::vector<Words> shell_words(const std::string& line) {
  std::vector<Words> commands(1);
  std::string word;
  bool any = false;
  char quote = 0;
  const auto end_word = [&] {
    if (any) commands.back().push_back(word);
    word.clear();
    any = false;
  };
  for (const char c : line + ' ') {
    if (quote != 0) {
      c == quote ? void(quote = 0) : void(word += c);
    } else if (c == '"' || c == '\'') {
      quote = c;
      any = true;
    } else if (c == ' ') {
      if (word == "#") return commands;
      if (word == "|" || word == "&&" || word == ">" || word == "<(" || word == "\\") {
        word.clear();
        any = false;
        commands.emplace_back();
      } else {
        end_word();
      }
    } else {
      word += c;
      any = true;
    }
  }
  return commands;
}

/// Reads a line of an example; false if it holds no command of ours.
bool check_example(const std::string& line, const std::string& where,
                   const std::function<std::string(const Words&)>& complaint) {
  bool any = false;
  for (Words words : shell_words(line)) {
    if (words.empty() || !(words.front() == "fullbore" || words.front().ends_with("/fullbore")))
      continue;
    any = true;
    words.erase(words.begin());
    EXPECT_EQ(complaint(words), "") << where << ": " << line;
    // Settings, wherever they stand; those of one model are refused without its name.
    for (size_t i = 0; i < words.size(); ++i) {
      // Behind --switch the values of a setting stand in a list.
      const bool is_list = i > 0 && words[i - 1] == "--switch";
      const std::string word = is_list ? words[i].substr(0, words[i].find(',')) : words[i];
      const size_t equals = word.find('=');
      const ConfigField* const field =
          equals == std::string::npos ? nullptr : find_config_field(word.substr(0, equals));
      if (field == nullptr || word.ends_with("NAME]")) continue;
      try {
        const Words overrides = {word};
        (void)parse_config("model: {name: " + model_with(*field) + "}\n", "x", overrides);
      } catch (const UsageError& error) {
        // What two settings are together is another matter.
        EXPECT_THAT(error.what(), Not(HasSubstr("command line: " + field->key)))
            << where << ": " << line;
      }
    }
  }
  return any;
}

TEST_F(CommandLine, EveryExampleOfAHelpIsRight) {
  int examples = 0;
  for_each_command(description(), {}, [&](const CommandDescription& command, const Words& names) {
    std::istringstream lines(command.footer);
    for (std::string line; std::getline(lines, line);)
      examples += check_example(line, fmt::format("{}", fmt::join(names, " ")), complaint);
  });
  EXPECT_GT(examples, 50);
}

TEST_F(CommandLine, EveryExampleOfTheDocumentsIsRight) {
  const std::set<std::string> absent = testing::absent_workloads();
  if (!absent.empty())
    GTEST_SKIP() << "documents tell of all workloads; not here: " << fmt::format("{}", absent);
  std::vector<std::string> pages = {testing::source_folder() + "/README.md"};
  for (const auto& page :
       std::filesystem::directory_iterator(testing::source_folder() + "/docs/guide"))
    pages.push_back(page.path().string());
  int examples = 0;
  for (const std::string& page : pages) {
    std::ifstream file(page);
    ASSERT_TRUE(file) << page;
    bool code = false;
    for (std::string line; std::getline(file, line);) {
      if (line.starts_with("```")) code = !code && (line == "```sh" || line == "```console");
      if (code) examples += check_example(line, page, complaint);
    }
  }
  EXPECT_GT(examples, 60);
}

TEST_F(CommandLine, EveryExampleOfAKeyIsRight) {
  for (const ConfigField& field : config_fields()) {
    EXPECT_EQ(field.maps, !field.example.empty())
        << field.key << ": what maps look like is shown by an example";
    if (field.example.empty()) continue;
    const std::vector<std::string> overrides = {field.key + "=" + field.example};
    const std::string yaml = "model: {name: " + model_with(field) + "}\n";
    const Config config = parse_config(yaml, "x", overrides);
    EXPECT_NE(value_yaml(field, config), value_yaml(field, Config{}));
    // And what `config` prints as a default.
    const std::vector<std::string> as_printed = {field.key + "=" + value_yaml(field, config)};
    EXPECT_EQ(parse_config(yaml, "x", as_printed), config);
  }
}

TEST_F(CommandLine, ExitCodesAreThoseOfTheGuide) {
  std::ifstream file(testing::source_folder() + "/docs/guide/resuming.md");
  std::stringstream page;
  page << file.rdbuf();
  EXPECT_THAT(description().footer, HasSubstr(exit_codes_text()));
  for (const ExitCodeDescription& each : exit_code_descriptions())
    EXPECT_THAT(page.str(), HasSubstr(fmt::format("| {} | {} |\n", each.code, each.meaning)));
}

}  // namespace
}  // namespace fullbore
