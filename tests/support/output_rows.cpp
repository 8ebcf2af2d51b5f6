#include "tests/support/output_rows.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "fullbore/app/command_tree.h"
#include "fullbore/app/commands.h"
#include "fullbore/app/workload.h"

namespace fullbore {
namespace {

namespace fs = std::filesystem;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;
using Descriptions = std::map<std::string, CommandDescription>;

Descriptions leaves(const CommandDescription& command, const std::string& above = "") {
  Descriptions found;
  for (const CommandDescription& inner : command.subcommands) {
    const std::string name = above.empty() ? inner.name : above + ' ' + inner.name;
    if (inner.subcommands.empty()) found.emplace(name, inner);
    found.merge(leaves(inner, name));
  }
  return found;
}

Descriptions commands_by(const std::function<void(Command)>& add) {
  CommandParser parser("fullbore", "", [] { return std::string(); });
  add(parser.root());
  return leaves(parser.root().describe());
}

Descriptions commands_of(const Workload& workload) {
  return workload.add_commands ? commands_by(workload.add_commands) : Descriptions();
}

std::string command_of_row(const std::string& name) { return name.substr(0, name.find(" --")); }

/// A command without a row is not tested with a full disk and a closed pipe.
void expect_rows_of(const Descriptions& commands, const OutputRows& rows) {
  std::set<std::string> known;
  for (const auto& [name, row] : rows) known.insert(command_of_row(name));
  for (const auto& [name, command] : commands) EXPECT_TRUE(known.contains(name)) << name;
  // Not --state-out, which only models with a state have a use for: their workloads have rows of it.
  const std::set<std::string> files = {"output", "out", "json", "csv", "svg", "trace", "answers"};
  for (const auto& [command, description] : commands)
    for (const OptionDescription& option : description.options) {
      if (!option.takes_value || option.long_names.empty()) continue;
      if (!files.contains(option.long_names.front())) continue;
      if (option.description.starts_with("Folder")) continue;  // of runs, which tests of runs fill
      const bool tested = std::ranges::any_of(rows, [&](const auto& each) {
        const std::vector<std::string>& words = each.second.arguments;
        return command_of_row(each.first) == command && !each.second.writes.empty() &&
               (std::ranges::find(words, option.name()) != words.end() ||
                (!option.short_names.empty() &&
                 std::ranges::find(words, "-" + option.short_names.front()) != words.end()));
      });
      EXPECT_TRUE(tested) << command << ' ' << option.name() << " is not tested with a full disk";
    }
}

}  // namespace

void expect_rows_of_workloads(const OutputRows& rows, const std::vector<std::string>& names) {
  for (const Workload& workload : workloads())
    if (std::ranges::find(names, workload.name) != names.end())
      expect_rows_of(commands_of(workload), rows);
}

void expect_rows_of_others(const OutputRows& rows) {
  Descriptions commands = commands_by(add_commands);
  for (const Workload& workload : workloads())
    if (!workload.keys.is_common)
      for (const auto& [name, command] : commands_of(workload)) commands.erase(name);
  expect_rows_of(commands, rows);
}

/// Runs a row as if it were the first time.
CommandResult OutputRowsTest::run(const OutputRow& row, const CommandStreams& streams) const {
  for (const std::string& file : row.writes) fs::remove_all(folder_ / file);
  fs::remove_all(folder_ / "fresh");
  return run_command_with(streams, folder_.path(), row.arguments);
}
/// All rows with this standard output: `unwritable` judges those that print.

void OutputRowsTest::run_all(Stream out,
                             const std::function<void(const CommandResult&)>& unwritable) {
  prepare();
  ASSERT_FALSE(HasFatalFailure());
  for (const auto& [name, row] : rows_) {
    SCOPED_TRACE(name);
    const CommandResult result = run(row, {.out = out});
    // A text that nobody reads is not made to its end, and has no state to keep.
    for (const std::string& file : row.writes)
      EXPECT_TRUE(fs::exists(folder_ / file) || name == "generate --state-out")
          << "what " << file << " was to hold is lost";
    EXPECT_THAT(result.err, Not(AnyOf(HasSubstr("a bug of ours"), HasSubstr("warning"))));
    if (!row.prints) {
      EXPECT_EQ(result.exit_code, 0) << result.err;
    } else if (name == "train") {
      expect_done_without(result);
    } else {
      unwritable(result);
    }
  }
}
/// A run ends as if its terminal were there, says in its log what is missing, and with code 3.
void OutputRowsTest::expect_done_without(const CommandResult& result) const {
  EXPECT_EQ(result.exit_code, 3) << result.err;
  EXPECT_EQ(summary("fresh")["status"], "completed");
  EXPECT_EQ(summary("fresh")["steps"], 2);
  EXPECT_THAT(read("fresh/log.txt"), HasSubstr("cannot write standard "));
}

void OutputRowsTest::expect_full_device_named() {
  run_all(Stream::full, [](const CommandResult& result) {
    EXPECT_EQ(result.exit_code, 3);
    EXPECT_EQ(result.err, "fullbore: cannot write standard output: No space left on device\n");
  });
}

void OutputRowsTest::expect_closed_pipe_ends_without_a_word() {
  run_all(Stream::closed_pipe, [](const CommandResult& result) {
    EXPECT_EQ(result.exit_code, 128 + SIGPIPE);
    EXPECT_EQ(result.err, "");
  });
}

void OutputRowsTest::expect_closed_descriptor_named() {
  run_all(Stream::closed, [](const CommandResult& result) {
    EXPECT_EQ(result.exit_code, 3);
    EXPECT_EQ(result.err, "fullbore: cannot write standard output: Bad file descriptor\n");
  });
}

void OutputRowsTest::expect_full_disk_named() {
  prepare();
  ASSERT_FALSE(HasFatalFailure());
  for (const auto& [name, row] : rows_) {
    if (row.writes.empty()) continue;
    SCOPED_TRACE(name);
    ASSERT_EQ(run(row, {}).exit_code, 0) << "once with a disk: what can be cached is cached";
    const auto before = folder_contents(folder_.path());
    const CommandResult result = run(row, {.full_disk = true});
    EXPECT_EQ(result.exit_code, 3) << result.err;
    EXPECT_THAT(result.err, HasSubstr("File too large"));
    EXPECT_THAT(result.err, HasSubstr(row.writes.front()));
    for (const auto& [file, contents] : folder_contents(folder_.path()))
      EXPECT_TRUE(before.contains(file) || !contents.empty()) << file << " was left behind";
  }
}

}  // namespace fullbore
