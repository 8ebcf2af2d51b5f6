#pragma once
#include <string>
#include <vector>

namespace fullbore {

/// What names the job of a program in place of a file: `spiral train default train.steps=500`.
inline constexpr const char* kDefaultJob = "default";

/// A program of one's own brings a job: settings "section.key=value" that hold before a configuration file is read, and
/// all there are where kDefaultJob stands in its place. Set before the first configuration is read.
void set_default_job(std::vector<std::string> settings);
/// null: the program has none, and configurations begin with the defaults of their keys.
const std::vector<std::string>* default_job();

}  // namespace fullbore
