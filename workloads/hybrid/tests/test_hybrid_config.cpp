#include <fmt/format.h>
#include <gmock/gmock.h>

#include <string>
#include <utility>
#include <vector>

#include "fullbore/train/config_schema.h"
#include "fullbore/train/stored_config.h"
#include "tests/support/configs.h"
#include "workloads/hybrid/hybrid_keys.h"

namespace fullbore {
namespace {

using testing::config_refusal;
using testing::expect_shows_its_keys;
using ::testing::HasSubstr;

TEST(HybridConfig, RefusesWhatDoesNotGoTogether) {
  const std::vector<std::pair<const char*, const char*>> cases = {
      {"model: {name: hybrid}\ndata: {initial_state: carry}",
       "data.initial_state carry (configs/x.yaml:2) goes on along sequences, not with "
       "data.batching "
       "windows (default)"},
      {"model: {name: hybrid}\ndata: {initial_state: carry, batching: sequences, segments: 3}",
       "data.initial_state carry (configs/x.yaml:2) does not go with data.segments 3 "
       "(configs/x.yaml:2)"},
      {"model: {name: hybrid}\ndata: {initial_state: noise, batching: sequences}\nengine: "
       "{accumulate: "
       "2}\ntrain: {batch_size: 4}",
       "data.initial_state noise (configs/x.yaml:2) does not go with engine.accumulate 2 "
       "(configs/x.yaml:3)"},
      {"model: {name: hybrid}\ndata: {initial_state: noise, batching: sequences}\nengine: "
       "{parallel_microbatches: "
       "2}\ntrain: {batch_size: 4}",
       "data.initial_state noise (configs/x.yaml:2) does not go with engine.parallel_microbatches "
       "2 "
       "(configs/x.yaml:3)"},
      {"model: {name: hybrid, learned_state: true}",
       "model.learned_state true (configs/x.yaml:1) needs batches of sequences, not of "
       "data.batching "
       "windows (default)"}};
  for (const auto& [yaml, message] : cases)
    EXPECT_THAT(config_refusal(yaml), HasSubstr(message)) << yaml;
}

TEST(HybridConfig, IsShownWhole) { expect_shows_its_keys("hybrid-p2"); }

TEST(HybridConfig, HasItsRetiredWordsTranslated) {
  const Config older =
      parse_stored_config("data: {batching: tracks}\nmodel: {name: hybrid, branch: stand_in}\n",
                          "config.resolved.yaml")
          .config;
  EXPECT_EQ(hybrid_keys(older).model.branch, "channel_softmax");
  EXPECT_THAT(config_refusal("model: {name: hybrid, branch: stand_in}"),
              HasSubstr("model.branch: 'stand_in' is called channel_softmax now"));
}

}  // namespace
}  // namespace fullbore
