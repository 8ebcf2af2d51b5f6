#include "fullbore/app/bench_start.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <nlohmann/json.hpp>
#include <string_view>
#include <system_error>
#include <utility>

#include "fullbore/app/job_options.h"
#include "fullbore/app/output.h"
#include "fullbore/app/temporary_folder.h"
#include "fullbore/base/files.h"
#include "fullbore/base/json.h"
#include "fullbore/base/own_executable.h"
#include "fullbore/monitor/console.h"
#include "fullbore/monitor/process.h"
#include "fullbore/train/run_directory.h"
#include "fullbore/train/trainer.h"

namespace fullbore {
namespace {

/// What NVIDIA's driver compiles of PTX it keeps too, there where this variable says.
constexpr std::string_view kDriversCache = "CUDA_CACHE_PATH=";

/// As posix_spawn wants them, as long as `texts` live.
std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

/// Runs this program with those words, the driver's cache, its output and its errors in files. Its exit status, or -1.
int run_again(std::vector<std::string> words, const std::string& drivers_cache,
              const std::string& out, const std::string& err) {
  std::vector<std::string> variables = {std::string(kDriversCache) + drivers_cache};
  for (char** each = environ; *each != nullptr; ++each)
    if (!std::string_view(*each).starts_with(kDriversCache)) variables.emplace_back(*each);
  const std::vector<char*> arguments = pointers_to(words), environment = pointers_to(variables);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  constexpr int kFlags = O_WRONLY | O_CREAT | O_TRUNC;
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, out.c_str(), kFlags, 0600);
  posix_spawn_file_actions_addopen(&files, STDERR_FILENO, err.c_str(), kFlags, 0600);
  pid_t child = -1;
  const int problem = ::posix_spawn(&child, own_executable(), &files, nullptr, arguments.data(),
                                    environment.data());
  posix_spawn_file_actions_destroy(&files);
  if (problem != 0)
    throw DataError(fmt::format("cannot start a process to measure the start: {}",
                                std::generic_category().message(problem)));
  int status = 0;
  while (::waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

StartTimes parts_of(const std::string& text) {
  StartTimes times;
  const Result<nlohmann::json> json = parse_json(text);
  if (json.ok() && json.value().is_array())
    for (const nlohmann::json& part : json.value())
      times.parts.push_back({part.at("part").get<std::string>(), part.at("seconds").get<double>()});
  return times;
}

}  // namespace

double StartTimes::seconds() const {
  double sum = 0;
  for (const StartPart& part : parts) sum += part.seconds;
  return sum;
}

MeasuredStart measure_start(const MeasuredArguments& arguments,
                            const std::vector<std::string>& settings) {
  const TemporaryFolder folder("start");
  const auto start = [&](const char* name) {
    std::vector<std::string> words = {"fullbore", "bench", arguments.config};
    words.insert(words.end(), settings.begin(), settings.end());
    words.push_back("engine.cache_dir=" + folder.file("cache"));
    words.push_back("data.cache_dir=" + folder.file("data"));
    if (arguments.vocabulary > 0) {
      words.emplace_back("--vocabulary");
      words.push_back(std::to_string(arguments.vocabulary));
    }
    words.emplace_back("--one-start");
    words.push_back(folder.file(name));
    const std::string out = folder.file(std::string(name) + ".json");
    const std::string err = folder.file(std::string(name) + ".err");
    const int status = run_again(std::move(words), folder.file("driver"), out, err);
    StartTimes times = parts_of(read_file(out).take_or_throw());
    if (status != 0 || times.parts.empty()) {
      const std::string said = read_file(err).take_or_throw();
      const size_t last = said.find_last_of('\n', said.size() < 2 ? 0 : said.size() - 2);
      throw DataError(fmt::format("its process ended with exit code {}: {}", status,
                                  said.substr(last == said.npos ? 0 : last + 1)));
    }
    return times;
  };
  StartTimes cold = start("cold");
  return {std::move(cold), start("warm")};
}

void make_one_start(const MeasuredArguments& arguments, const std::string& run) {
  Console console;
  MeasuredJob measured = measured_job(named_config(arguments.config, arguments.overrides),
                                      arguments.vocabulary, console);
  TrainingJob& job = measured.job;
  job.validation.reset();
  job.started = [](const std::vector<StartPart>& parts) {
    nlohmann::ordered_json json = nlohmann::ordered_json::array();
    for (const StartPart& part : parts)
      json.push_back({{"part", part.name}, {"seconds", part.seconds}});
    write_output(json.dump());
    flush_output();
    ::_exit(0);  // a save may be under way, of a run that nobody wants
  };
  train(job, RunDirectory::create(run), console, false, process_start());
  throw DataError("a run of no step");
}

}  // namespace fullbore
