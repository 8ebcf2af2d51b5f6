#pragma once
#include <string>

namespace fullbore {

/// What a person types to run this process' commands, for texts that name one: "fullbore", or a program of one's own.
const std::string& program_name();
/// Before anything is told; of the whole process.
void set_program_name(std::string name);

}  // namespace fullbore
