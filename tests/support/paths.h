#pragma once
#include <string>

// Functions, not macros: a path on the command line of every test's compilation would make each of them another one in
// another clone, and ccache would know none of them.
namespace fullbore::testing {

/// The root of the repository, or of a copy of it that the environment variable FULLBORE_TEST_SOURCES names: to it
/// tests/tools add cases.
const std::string& source_folder();
/// Optional data beside it: a test that needs a file from there skips with a message when it is absent.
const std::string& shared_folder();
/// The command, of the same build: bin/fullbore, or what use_command() said.
const std::string& command_path();
/// From now on command_path() is bin/<name>.
void use_command(const std::string& name);

}  // namespace fullbore::testing
