#pragma once
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "fullbore/base/result.h"
#include "fullbore/lab/tuning/tuning.h"

namespace fullbore {

nlohmann::ordered_json to_json(const Tuning& tuning);
/// Text of such a file, sealed. Failure: it is damaged, or lacks something.
Result<Tuning> parse_tuning(const std::string& text, const std::string& path);

/// What a tuning is of, as a text to be hashed: everything that its result depends on.
std::string tuning_identity(const Config& config, const TuningScope& scope, TuningQuality quality,
                            const std::string& machine);

/// Results by what they are of, in a folder. What is damaged, of something else, or chooses what is neither in `space` nor on the
/// memory ladder of this configuration is no result: `warn` is told, once.
std::optional<Tuning> kept_tuning(const std::string& folder, const std::string& identity,
                                  const Config& config, const std::vector<Coordinate>& space,
                                  const std::function<void(const std::string&)>& warn);
/// A folder that cannot be written costs the next tuning its time, and nothing else: `warn` is told.
void keep_tuning(const std::string& folder, const Tuning& tuning,
                 const std::function<void(const std::string&)>& warn);

}  // namespace fullbore
