#pragma once
#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

#include "fullbore/base/error.h"
#include "fullbore/base/printable.h"

namespace fullbore {

/// Standard output and standard error, as all commands write them. Nothing else in apps/ writes to either.
///
/// Output is gathered and handed to the system in blocks. The first failure is kept, and what comes after it
/// is dropped: a command still writes the files that it was asked for. flush_output() reports the failure;
/// app() calls it behind every command.

/// Standard output could not be written. what() names it and the system's reason; exit code 3.
class OutputError : public DataError {
 public:
  explicit OutputError(int reason);
  /// The reader of a pipe closed it (EPIPE): it has read what it wanted.
  bool pipe_closed() const { return pipe_closed_; }

 private:
  bool pipe_closed_;
};

/// Appends to standard output, as it is. Never fails.
void write_output(std::string_view text);
/// Text that is the output itself, of a model or a document: as it is to a file, and to a terminal without what would
/// steer it.
void write_text(std::string_view text);
/// For people. Names and texts in it come from files of strangers: what would steer a terminal is escaped, as
/// printable() has it.
template <typename... Values>
void print_output(fmt::format_string<Values...> format, Values&&... values) {
  write_output(printable(fmt::format(format, std::forward<Values>(values)...)));
}
/// Hands over what was written so far. OutputError, once, if this or an earlier part could not be written.
void flush_output();

/// Writes to standard error at once, escaped likewise. A message that cannot be written is dropped.
void write_message(std::string_view text);
template <typename... Values>
void print_message(fmt::format_string<Values...> format, Values&&... values) {
  write_message(fmt::format(format, std::forward<Values>(values)...));
}

/// To be called once, before any file is opened. Descriptors 0, 1 and 2 that are closed are taken, such that
/// using them fails: otherwise the next file opened would have their number, and output would land in it.
/// SIGPIPE and SIGXFSZ (RLIMIT_FSIZE) are ignored from here on: writes report EPIPE and EFBIG instead.
void prepare_standard_streams();

/// Ends the process by SIGPIPE, as a program does that never heard of closed pipes: 141 in a shell.
[[noreturn]] void end_by_closed_pipe();

}  // namespace fullbore
