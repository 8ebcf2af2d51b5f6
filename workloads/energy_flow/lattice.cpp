#include "workloads/energy_flow/lattice.h"

#include <fmt/format.h>

#include "fullbore/base/error.h"

namespace fullbore::energy_flow {
namespace {

void require(bool holds, const char* option, const std::string& expected) {
  if (!holds) throw UsageError(fmt::format("energy flow: {}: {}", option, expected));
}

}  // namespace

void require_lattice(const LatticeOptions& options, int64_t samples) {
  require(
      options.width >= 2 && options.height >= 2, "width and height",
      fmt::format("{} x {} cells; at least 2 x 2 were expected", options.width, options.height));
  require(options.depth >= 2, "depth", fmt::format("{}; at least 2 was expected", options.depth));
  require(options.mode == FlowMode::absolute
              ? options.spawn_threshold >= 0 && options.spawn_threshold < 1
              : options.spawn_threshold > 0,
          "spawn_threshold",
          fmt::format("{}; {} was expected", options.spawn_threshold,
                      options.mode == FlowMode::absolute ? "0 to below 1" : "a positive length"));
  require(options.most_spawned >= 0 && options.most_spawned <= 16, "most_spawned",
          fmt::format("{}; 0 to 16 was expected", options.most_spawned));
  require(options.energy_threshold >= 0 && options.energy_threshold < 1, "energy_threshold",
          fmt::format("{}; 0 to below 1 was expected", options.energy_threshold));
  require(!options.stop.on || options.stop.min_steps >= 1, "min_steps",
          fmt::format("{}; at least 1 was expected", options.stop.min_steps));
  require(!options.stop.on || options.stop.patience >= 1, "patience",
          fmt::format("{}; at least 1 was expected", options.stop.patience));
  require(!options.stop.on || (options.stop.threshold > 0 && options.stop.threshold <= 1),
          "threshold", fmt::format("{}; above 0 to 1 was expected", options.stop.threshold));
  const int64_t needed = samples * options.surface();
  require(options.capacity >= 1 &&
              (needed <= options.capacity || options.inject_overflow == InjectOverflow::truncate),
          "capacity",
          fmt::format("{} samples of {} x {} cells start {} flows, and there is room for {}: at "
                      "least {} was expected, or inject_overflow=truncate, or fewer samples at a "
                      "time",
                      samples, options.width, options.height, needed, options.capacity, needed));
}

}  // namespace fullbore::energy_flow
