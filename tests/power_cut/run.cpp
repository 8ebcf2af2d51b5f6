// A run's life on a disk, and what is left of it after a power cut. The library's own writers, without a model:
//   power_cut_run live FOLDER PROMISES STEPS    saves, logs and replaces; a line to PROMISES for what must last
//   power_cut_run check FOLDER STEP BEST VERSION    0 if all that was promised is there and life goes on
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "fullbore/base/files.h"
#include "fullbore/base/seal.h"
#include "fullbore/ckpt/checkpoint_store.h"
#include "fullbore/monitor/json_lines.h"
#include "tests/ckpt/checkpoint_fixture.h"

namespace fullbore {
namespace {

namespace fs = std::filesystem;
using testing::Contents;

constexpr int kLines = 3;
constexpr int64_t kKept = 2;

bool is_best(int64_t step) { return step % 3 == 1; }

/// Not a block's size, and other bytes each time.
std::string version_text(int64_t version) {
  std::string text = fmt::format("version {}\n", version);
  text.resize(5000, static_cast<char>('a' + version % 26));
  return text;
}

struct Run {
  std::string folder;
  std::string checkpoints() const { return folder + "/checkpoints"; }
  std::string metrics() const { return folder + "/metrics.jsonl"; }
  std::string version() const { return folder + "/version.txt"; }

  void live(int64_t first, int64_t last,
            const std::function<void(const std::string&)>& promise) const {
    make_folders(checkpoints()).take_or_throw();
    CheckpointStore store(checkpoints(), kKept);
    JsonLines lines = JsonLines::open(metrics()).take_or_throw();
    for (int64_t step = first; step <= last; ++step) {
      for (int line = 0; line < kLines; ++line)
        lines.write({{"step", step}, {"line", line}}).take_or_throw();
      lines.sync().take_or_throw();
      store.save(step, Contents(step).get(), is_best(step)).take_or_throw();
      promise(fmt::format("step {}", step));
      if (is_best(step)) promise(fmt::format("best {}", step));
      write_file_atomically(version(), version_text(step)).take_or_throw();
      promise(fmt::format("version {}", step));
    }
  }

  int64_t linked(const char* link) const {
    const auto found = open_checkpoint_folder(checkpoints() + "/" + link);
    if (!found.ok() || !found.value().verify().ok()) return -1;
    const Result<RunRecord> record = read_run_record(found.value());
    return record.ok() ? record.value().step : -1;
  }

  std::string lines_until(int64_t step) const {
    std::string text;
    for (int64_t i = 1; i <= step; ++i)
      for (int line = 0; line < kLines; ++line)
        text += seal_json(fmt::format("{{\"step\":{},\"line\":{}}}", i, line),
                          static_cast<uint64_t>((i - 1) * kLines + line + 1)) +
                '\n';
    return text;
  }

  std::string leftover() const {
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder))
      if (entry.path().extension() == ".tmp") return entry.path().string();
    return "";
  }

  /// "" or what was lost.
  std::string loss(int64_t step, int64_t best, int64_t version) const {
    if (!fs::is_directory(checkpoints())) return step >= 0 ? "the run is gone" : "";
    CheckpointStore store(checkpoints(), kKept);
    store.remove_stale();
    const Result<LatestCheckpoint> latest = find_latest(store);
    if (!latest.ok()) return latest.error();
    const auto& found = latest.value().found;
    const int64_t newest = found ? found->record.step : 0;
    if (newest < step) return fmt::format("step {} instead of {}", newest, step);
    if (found && !Contents(newest).is_in(found->checkpoint)) return "other contents";
    if (step >= 0 && linked("last") < step) return "last leads nowhere";
    if (best >= 0 && linked("best") < best) return "best leads nowhere";
    const auto kept = [&](const nlohmann::json& line) {
      return line.value("step", newest + 1) <= newest;
    };
    if (const auto trimmed = trim_json_lines(metrics(), kept); !trimmed.ok())
      return trimmed.error();
    const Result<std::string> lines = read_file(metrics());
    if (newest > 0 && (!lines.ok() || lines.value() != lines_until(newest)))
      return fmt::format("metrics up to step {} are missing", newest);
    const Result<std::string> text = read_file(this->version());
    bool whole = !text.ok() && version < 0;
    for (int64_t i = std::max<int64_t>(version, 1); i <= newest + 1; ++i)
      whole = whole || (text.ok() && text.value() == version_text(i));
    if (!whole) return fmt::format("version {} is lost or torn", version);
    // And life goes on, with nothing left of what was cut.
    live(newest + 1, newest + 1, [](const std::string&) {});
    if (linked("last") != newest + 1) return "the next one is not found";
    return leftover().empty() ? "" : leftover() + " is left behind";
  }
};

int run(const std::vector<std::string>& arguments) {
  const Run run{arguments.at(1)};
  if (arguments.at(0) == "live") {
    std::ofstream promises(arguments.at(2));
    run.live(1, std::stoll(arguments.at(3)), [&](const std::string& text) {
      promises << "mark " << text << std::endl;  // NOLINT(performance-avoid-endl): at once
    });
    return promises ? 0 : 2;
  }
  const std::string loss = run.loss(std::stoll(arguments.at(2)), std::stoll(arguments.at(3)),
                                    std::stoll(arguments.at(4)));
  if (!loss.empty()) fmt::print("{}\n", loss);
  return loss.empty() ? 0 : 1;
}

}  // namespace
}  // namespace fullbore

int main(int argc, char** argv) {
  try {
    return fullbore::run({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    fmt::print("{}\n", error.what());
    return 2;
  }
}
