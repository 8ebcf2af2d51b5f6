#include <fmt/format.h>
#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "fullbore/train/config_schema.h"
#include "tests/support/configs.h"
#include "workloads/peptide/peptide_keys.h"

namespace fullbore {
namespace {

using testing::config_refusal;
using testing::expect_shows_its_keys;
using ::testing::HasSubstr;

TEST(PeptideConfig, RefusesKeysOfOthersAndIsReadBack) {
  EXPECT_THAT(config_refusal("data: {split: file}", {"model.name=peptide"}),
              HasSubstr("config: configs/x.yaml:1: 'data.split' is a key of model.name="));
  EXPECT_THAT(config_refusal("model: {name: peptide, hidden_dim: 65}"),
              HasSubstr("model.hidden_dim 65"));
  const Config config = parse_config("model: {name: peptide, hidden_dim: 64}", "x");
  EXPECT_EQ(peptide_keys(config).model.hidden_dim, 64);
  EXPECT_EQ(parse_config(config_yaml(config), "resolved"), config);
  EXPECT_EQ(parse_config(config_json(config), "config.json"), config);
  EXPECT_EQ(config_yaml(config).find("context"), std::string::npos);
  EXPECT_FALSE(config == Config());
}

TEST(PeptideConfig, IsShownWhole) { expect_shows_its_keys("peptide"); }

}  // namespace
}  // namespace fullbore
