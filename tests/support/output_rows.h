#pragma once
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tests/support/job.h"

namespace fullbore {

/// A cheap call of a command.
struct OutputRow {
  std::vector<std::string> arguments;
  bool prints = true;  ///< false: its result is a file, and its words are messages
  std::vector<std::string> writes = {};  ///< the files that its options name
};

/// By the command's name, "data stats"; behind a " --" stands what else a second row is about.
using OutputRows = std::map<std::string, OutputRow>;

/// Expects a row for each command that these workloads add, and for each of its options that names a file.
void expect_rows_of_workloads(const OutputRows& rows, const std::vector<std::string>& workloads);
/// The same of all other commands but those of workloads/.
void expect_rows_of_others(const OutputRows& rows);

/// Commands with a standard output, a standard error or files that cannot be written.
class OutputRowsTest : public JobTest {
 protected:
  explicit OutputRowsTest(OutputRows rows) : rows_(std::move(rows)) {}
  /// Makes the runs and files that the rows read.
  virtual void prepare() = 0;

  void expect_full_device_named();
  void expect_closed_pipe_ends_without_a_word();
  void expect_closed_descriptor_named();
  void expect_full_disk_named();

  /// A run ends as if its terminal were there, says in its log what is missing, and with code 3.
  void expect_done_without(const CommandResult& result) const;

 private:
  CommandResult run(const OutputRow& row, const CommandStreams& streams) const;
  void run_all(Stream out, const std::function<void(const CommandResult&)>& unwritable);

  OutputRows rows_;
};

}  // namespace fullbore
