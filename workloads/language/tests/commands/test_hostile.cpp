// Run folders, checkpoints and caches that a stranger made. Whatever is in them: nothing of theirs is run, nothing
// outside is written, the command ends with a documented code within bounds of memory and time, and what it says
// steers no terminal. docs/security.md refers to these tests.
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <filesystem>
#include <set>
#include <sstream>

#include "fullbore/base/files.h"
#include "fullbore/base/hash.h"
#include "fullbore/base/printable.h"
#include "fullbore/base/seal.h"
#include "fullbore/ckpt/checkpoint_folder.h"
#include "fullbore/ckpt/manifest.h"
#include "fullbore/ir/print.h"
#include "fullbore/ops/ops.h"
#include "tests/support/hostile.h"
#include "tests/support/paths.h"

namespace fullbore {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

using Arguments = std::vector<std::string>;

const Arguments kGenerate = {"generate", "../gift", "--prompt", "the ", "--characters", "8"};
const Arguments kEval = {"eval", "../gift", "--batches", "1"};
const Arguments kResume = {"train", "../gift", "--resume", "train.steps=22"};

using Hostile = HostileTest;

struct Kind {
  std::string name;
  Arguments arguments;
  int exit_code;
  std::string message;  ///< a part of what it says
  void (*spoil)(Hostile& h);
};
void PrintTo(const Kind& kind, std::ostream* out) { *out << kind.name; }

class HostileGift : public HostileTest, public ::testing::WithParamInterface<Kind> {};

TEST_P(HostileGift, HarmsNobody) {
  const Kind& kind = GetParam();
  kind.spoil(*this);
  if (HasFatalFailure()) return;
  const bool resumes = kind.arguments.front() == "train";
  const Arguments own = resumes ? Arguments{"gift"} : Arguments{};
  const std::string before = snapshot(folder_.path(), own);
  const LimitedResult result = run_limited(folder_ / "work", kind.arguments);
  EXPECT_EQ(result.exit_code, kind.exit_code) << result.err;
  EXPECT_THAT(result.err + result.out, HasSubstr(kind.message));
  EXPECT_EQ(snapshot(folder_.path(), own), before);
  EXPECT_EQ(result.err, printable(result.err)) << "control characters";
  EXPECT_LT(result.err.size(), 20'000U);
}

/// A value in the checkpoint's config.json, in place of what is there.
void set(Hostile& h, const std::string& from, const std::string& to) {
  h.replace(h.checkpoint("config.json"), from, to);
  h.sign_checkpoint();
}
/// The run's configuration with a checksum that holds: the stranger knows how.
void write_run_config(Hostile& h, const std::string& yaml) {
  std::istringstream lines(yaml);
  std::string text;
  for (std::string line; std::getline(lines, line);)
    if (!line.starts_with('#')) text += line + '\n';
  h.write(h.gift("config.resolved.yaml"), seal_yaml(text));
}
/// The same of the run's.
void set_in_run(Hostile& h, const std::string& from, const std::string& to) {
  h.replace(h.gift("config.resolved.yaml"), from, to);
  write_run_config(h, read_file(h.gift("config.resolved.yaml")).value());
}

std::string manifest_with(const std::string& name, const std::string& entry) {
  std::string text = "{\n  \"format\": 1,\n  \"files\": {\n    " + name + ": " + entry +
                     "\n  },\n  \"xxhash64\": \"0000000000000000\"\n}\n";
  const std::string hash = hash_hex(hash_text(text));
  return text.replace(text.rfind("0000000000000000"), hash.size(), hash);
}

const char* const kEntry = "{\"bytes\": 4, \"xxhash64\": \"0123456789abcdef\"}";

std::string tensor(const std::string& name, const std::string& shape, const std::string& offsets) {
  return "\"" + name + R"(":{"dtype":"F32","shape":)" + shape + R"(,"data_offsets":)" + offsets +
         "}";
}

INSTANTIATE_TEST_SUITE_P(
    Configuration, HostileGift,
    ::testing::
        Values(
            Kind{"unspoilt_generate", kGenerate, 0, "", [](Hostile&) {}},
            Kind{"unspoilt_resume", kResume, 0, "reads    data.path", [](Hostile&) {}},
            Kind{"cache_of_the_run", kResume, 0, "engine.cache_dir",
                 [](Hostile& h) {
                   h.plant_cache(h.gift("cache"), true);
                   set_in_run(h, "cache: true\n  cache_dir: \"\"\n",
                              "cache: true\n  cache_dir: " + h.gift("cache") + "\n");
                 }},
            Kind{"cache_of_the_run_to_bench",
                 {"bench", "../gift/config.resolved.yaml", "--steps", "1", "--warm-up", "1"},
                 0,
                 "engine.cache_dir",
                 [](Hostile& h) {
                   h.plant_cache(h.gift("cache"), true);
                   set_in_run(h, "cache: true\n  cache_dir: \"\"\n",
                              "cache: true\n  cache_dir: " + h.gift("cache") + "\n");
                 }},
            Kind{"cache_of_the_checkpoint", kGenerate, 0, "engine.cache_dir",
                 [](Hostile& h) {
                   h.plant_cache(h.gift("cache"), true);
                   set(h, "\"cache\": true,\n    \"cache_dir\": \"\",",
                       "\"cache\": true,\n    \"cache_dir\": \"" + h.gift("cache") + "\",");
                 }},
            Kind{"cache_of_the_checkpoint_to_eval", kEval, 0, "engine.cache_dir",
                 [](Hostile& h) {
                   h.plant_cache(h.gift("cache"), true);
                   set(h, "\"cache\": true,\n    \"cache_dir\": \"\",",
                       "\"cache\": true,\n    \"cache_dir\": \"" + h.gift("cache") + "\",");
                 }},
            Kind{"token_cache_elsewhere", kResume, 0, "data.cache_dir",
                 [](Hostile& h) {
                   set_in_run(h, "cache_dir: \"\"\n", "cache_dir: " + h.victim("empty") + "\n");
                 }},
            Kind{"token_cache_of_the_checkpoint", kEval, 0, "data.cache_dir",
                 [](Hostile& h) {
                   set(h, "\"cache_dir\": \"\",", "\"cache_dir\": \"" + h.victim("empty") + "\",");
                 }},
            Kind{"a_port", kResume, 0, "log.prometheus_port=1 is ignored",
                 [](Hostile& h) { set_in_run(h, "prometheus_port: 0", "prometheus_port: 1"); }},
            Kind{"another_folder", kResume, 0, "",
                 [](Hostile& h) { set_in_run(h, "dir: gift", "dir: " + h.victim("empty")); }},
            Kind{"a_thousand_threads", kGenerate, 0, "engine.threads=1000 is ignored",
                 [](Hostile& h) { set(h, "\"threads\": 2", "\"threads\": 1000"); }},
            Kind{"all_memory", kResume, 0, "engine.memory_budget",
                 [](Hostile& h) {
                   set_in_run(h, "memory_budget: \"\"", "memory_budget: 900000GiB");
                 }},
            Kind{"a_name_that_leads_out", kResume, 2, "run.name",
                 [](Hostile& h) { set_in_run(h, "name: tiny", "name: ../../victim/x"); }},
            Kind{"a_name_that_steers", kResume, 2, "run.name",
                 [](Hostile& h) { set_in_run(h, "name: tiny", "name: \"a\\e[2J\\a\""); }},
            Kind{"text_of_a_device", kResume, 3, "/dev/zero is not a regular file",
                 [](Hostile& h) {
                   const std::string yaml = read_file(h.gift("config.resolved.yaml")).value();
                   const size_t at = yaml.find("path: ");
                   write_run_config(h, yaml.substr(0, at) + "path: /dev/zero" +
                                           yaml.substr(yaml.find('\n', at)));
                 }},
            Kind{"text_of_a_device_to_eval", kEval, 3, "/dev/zero is not a regular file",
                 [](Hostile& h) {
                   const std::string json = read_file(h.checkpoint("config.json")).value();
                   const size_t at = json.find("\"path\": ");
                   h.write(h.checkpoint("config.json"), json.substr(0, at) +
                                                            "\"path\": \"/dev/zero\"" +
                                                            json.substr(json.find(",\n", at)));
                   h.sign_checkpoint();
                 }},
            Kind{"tokenizer_of_a_device", kResume, 3, "/dev/zero",
                 [](Hostile& h) {
                   set_in_run(h, "tokenizer: character", "tokenizer: bpe:/dev/zero");
                 }},
            Kind{"model_of_a_device", kResume, 3, "/dev/zero",
                 [](Hostile& h) {
                   fs::remove_all(h.gift("checkpoints"));  // or it would go on from the last one
                   set_in_run(h, "initialize_from: \"\"", "initialize_from: /dev/zero");
                 }},
            Kind{"a_pass_that_is_none", kGenerate, 2, "engine.disabled_passes",
                 [](Hostile& h) {
                   set(h, "\"disabled_passes\": []", "\"disabled_passes\": [\"../../x\"]");
                 }},
            Kind{"huge_dimensions", kGenerate, 2, "model.layers",
                 [](Hostile& h) { set(h, "\"layers\": 1,", "\"layers\": 1000000000,"); }},
            Kind{"negative_dimensions", kGenerate, 2, "model.width",
                 [](Hostile& h) { set(h, "\"width\": 16,", "\"width\": -16,"); }},
            Kind{"no_number", kResume, 2, "optim.learning_rate",
                 [](Hostile& h) { set_in_run(h, "learning_rate: 0.01", "learning_rate: .nan"); }},
            Kind{"an_unknown_key_that_steers", kGenerate, 2, "unknown key 'model.\\x1b]0;x\\x07'",
                 [](Hostile& h) {
                   set(h, "\"layers\": 1,", "\"\\u001b]0;x\\u0007\": 1,\n\"layers\": 1,");
                 }},
            Kind{"configuration_cut", kResume, 3, "config.resolved.yaml: it has no checksum",
                 [](Hostile& h) {
                   h.write(h.gift("config.resolved.yaml"), "run: {name: tiny, seed");
                 }},
            Kind{"configuration_of_the_checkpoint_of_a_tensor", kGenerate, 2, "config",
                 [](Hostile& h) {
                   h.write(h.checkpoint("config.json"), std::string("\x00\xff\x1b[0m", 6));
                   h.sign_checkpoint();
                 }}),
    [](const auto& kind) { return kind.param.name; });

INSTANTIATE_TEST_SUITE_P(
    Links, HostileGift,
    ::testing::Values(
        Kind{"log", kResume, 3, "gift/log.txt is a symbolic link",
             [](Hostile& h) { h.link(h.gift("log.txt"), h.victim("file")); }},
        Kind{"metrics", kResume, 3, "gift/metrics.jsonl is a symbolic link",
             [](Hostile& h) { h.link(h.gift("metrics.jsonl"), h.victim("file")); }},
        Kind{"summary", kResume, 3, "gift/summary.json is a symbolic link",
             [](Hostile& h) { h.link(h.gift("summary.json"), h.victim("file")); }},
        Kind{"dangling_log", kResume, 3, "gift/log.txt is a symbolic link",
             [](Hostile& h) { h.link(h.gift("log.txt"), h.victim("new")); }},
        Kind{"given_configuration", kResume, 3, "gift/config.given.yaml is a symbolic link",
             [](Hostile& h) {
               fs::copy_file(h.gift("config.resolved.yaml"), h.victim("given"));
               h.link(h.gift("config.given.yaml"), h.victim("given"));
             }},
        Kind{"configuration", kResume, 3, "gift/config.resolved.yaml is a symbolic link",
             [](Hostile& h) {
               fs::rename(h.gift("config.resolved.yaml"), h.victim("resolved"));
               h.link(h.gift("config.resolved.yaml"), h.victim("resolved"));
             }},
        Kind{"configuration_of_a_device", kResume, 2, "is not a regular file",
             [](Hostile& h) { h.link(h.gift("config.resolved.yaml"), "/dev/zero"); }},
        Kind{"checkpoints", kResume, 3, "gift/checkpoints is a symbolic link",
             [](Hostile& h) {
               fs::rename(h.gift("checkpoints"), h.victim("checkpoints"));
               h.link(h.gift("checkpoints"), h.victim("checkpoints"));
             }},
        Kind{"bad_steps", kResume, 3, "gift/bad_steps is a symbolic link",
             [](Hostile& h) { h.link(h.gift("bad_steps"), h.victim("folder")); }},
        Kind{"tensorboard",
             {"train", "../gift", "--resume", "train.steps=22", "log.tensorboard=true"},
             3,
             "gift/tensorboard is a symbolic link",
             [](Hostile& h) { h.link(h.gift("tensorboard"), h.victim("folder")); }},
        Kind{"a_checkpoint_under_way", kResume, 0, "",
             [](Hostile& h) {
               h.link(h.gift("checkpoints/.step-00000022.tmp"), h.victim("folder"));
             }},
        Kind{"a_checkpoint_to_be_removed",
             {"train", "../gift", "--resume", "train.steps=22", "train.keep_checkpoints=1"},
             0,
             "",
             [](Hostile& h) { h.link(h.gift("checkpoints/step-00000001"), h.victim("folder")); }},
        Kind{"the_last_checkpoint", kGenerate, 3, "is a link that leads out of",
             [](Hostile& h) {
               fs::remove(h.gift("checkpoints/best"));
               fs::copy(h.checkpoint(), h.victim("step"), fs::copy_options::recursive);
               h.link(h.gift("checkpoints/last"), h.victim("step"));
             }},
        Kind{"the_best_checkpoint", kGenerate, 3, "",
             [](Hostile& h) { h.link(h.gift("checkpoints/best"), "/proc/self"); }},
        Kind{"the_checkpoint_itself", kGenerate, 3, "is a link that leads out of",
             [](Hostile& h) {
               fs::rename(h.checkpoint(), h.victim("step"));
               h.link(h.gift("checkpoints/step-00000020"), h.victim("step"));
               h.link(h.gift("checkpoints/best"), "step-00000020");
             }},
        Kind{"weights", kGenerate, 3, "weights.safetensors is a symbolic link",
             [](Hostile& h) {
               fs::rename(h.checkpoint("weights.safetensors"), h.victim("weights"));
               h.link(h.checkpoint("weights.safetensors"), h.victim("weights"));
             }},
        Kind{"manifest_of_a_device", kGenerate, 3, "manifest.json is a symbolic link",
             [](Hostile& h) { h.link(h.checkpoint("manifest.json"), "/dev/zero"); }},
        Kind{"checkpoint_configuration_of_a_device", kGenerate, 3, "config.json is a symbolic link",
             [](Hostile& h) { h.link(h.checkpoint("config.json"), "/dev/zero"); }},
        Kind{"tokenizer_of_the_kernel", kGenerate, 3, "tokenizer.json is a symbolic link",
             [](Hostile& h) { h.link(h.checkpoint("tokenizer.json"), "/proc/self/mem"); }},
        Kind{"position_of_a_folder", kGenerate, 3, "position.json is a symbolic link",
             [](Hostile& h) { h.link(h.checkpoint("position.json"), h.victim("folder")); }},
        Kind{"weights_of_a_pipe", kGenerate, 3, "weights.safetensors is not a regular file",
             [](Hostile& h) { h.pipe(h.checkpoint("weights.safetensors")); }},
        Kind{"log_of_a_pipe", kResume, 3, "gift/log.txt is not a regular file",
             [](Hostile& h) { h.pipe(h.gift("log.txt")); }},
        Kind{"metrics_of_a_folder", kResume, 3, "gift/metrics.jsonl is not a regular file",
             [](Hostile& h) {
               fs::remove(h.gift("metrics.jsonl"));
               fs::create_directory(h.gift("metrics.jsonl"));
             }}),
    [](const auto& kind) { return kind.param.name; });

INSTANTIATE_TEST_SUITE_P(
    Checkpoint, HostileGift,
    ::testing::Values(
        Kind{"manifest_of_an_absolute_path", kGenerate, 3, "is malformed",
             [](Hostile& h) {
               h.write(h.checkpoint("manifest.json"),
                       manifest_with("\"" + h.victim("file") + "\"", kEntry));
             }},
        Kind{"manifest_that_leads_out", kGenerate, 3, "is malformed",
             [](Hostile& h) {
               h.write(h.checkpoint("manifest.json"),
                       manifest_with("\"../../../victim/file\"", kEntry));
             }},
        Kind{"manifest_with_a_name_twice", kGenerate, 3, "manifest.json",
             [](Hostile& h) {
               h.write(h.checkpoint("manifest.json"),
                       manifest_with("\"config.json\"",
                                     std::string(kEntry) + ", \"config.json\": " + kEntry));
             }},
        Kind{"manifest_of_huge_sizes", kGenerate, 3, "18446744073709551615",
             [](Hostile& h) {
               h.write(h.checkpoint("manifest.json"),
                       manifest_with("\"config.json\"",
                                     "{\"bytes\": 18446744073709551615, \"xxhash64\": "
                                     "\"0123456789abcdef\"}"));
             }},
        Kind{"manifest_of_names_that_steer", kGenerate, 3, "\\x1b[31m",
             [](Hostile& h) {
               h.write(h.checkpoint("manifest.json"), manifest_with("\"\\u001b[31m\"", kEntry));
             }},
        Kind{"manifest_of_nothing", kGenerate, 3, "manifest.json",
             [](Hostile& h) { h.write(h.checkpoint("manifest.json"), ""); }},
        Kind{"weights_that_overlap", kGenerate, 3, "weights.safetensors",
             [](Hostile& h) {
               h.write_weights(
                   "{" + tensor("a", "[4]", "[0,16]") + "," + tensor("b", "[4]", "[8,24]") + "}",
                   std::string(24, 'x'));
             }},
        Kind{"weights_with_holes", kGenerate, 3, "weights.safetensors",
             [](Hostile& h) {
               h.write_weights(
                   "{" + tensor("a", "[1]", "[0,4]") + "," + tensor("b", "[1]", "[8,12]") + "}",
                   std::string(12, 'x'));
             }},
        Kind{"weights_beyond_the_file", kGenerate, 3, "weights.safetensors",
             [](Hostile& h) {
               h.write_weights("{" + tensor("a", "[1000000000000]", "[0,4000000000000]") + "}",
                               "x");
             }},
        Kind{"weights_of_sizes_that_wrap_around", kGenerate, 3, "weights.safetensors",
             [](Hostile& h) {
               h.write_weights("{" + tensor("a", "[4611686018427387904,4]", "[0,0]") + "}", "");
             }},
        Kind{
            "weights_of_no_number", kGenerate, 3, "weights.safetensors",
            [](Hostile& h) { h.write_weights("{" + tensor("a", "[NaN]", "[0,4]") + "}", "xxxx"); }},
        Kind{"weights_of_negative_sizes", kGenerate, 3, "weights.safetensors",
             [](Hostile& h) { h.write_weights("{" + tensor("a", "[-1]", "[0,4]") + "}", "xxxx"); }},
        Kind{"weights_of_a_name_twice", kGenerate, 3, "weights.safetensors",
             [](Hostile& h) {
               h.write_weights(
                   "{" + tensor("a", "[1]", "[0,4]") + "," + tensor("a", "[1]", "[4,8]") + "}",
                   "xxxxxxxx");
             }},
        Kind{"weights_of_names_that_steer", kGenerate, 3, "",
             [](Hostile& h) {
               h.write_weights("{" + tensor("\\u001b[2J", "[2]", "[0,4]") + "}", "xxxx");
             }},
        Kind{"weights_of_a_deep_header", kGenerate, 3, "weights.safetensors",
             [](Hostile& h) { h.write_weights(std::string(100'000, '['), ""); }},
        Kind{"weights_of_a_huge_header", kGenerate, 3, "weights.safetensors",
             [](Hostile& h) {
               h.write(h.checkpoint("weights.safetensors"), std::string(8, '\xff') + "{}");
               h.sign_checkpoint();
             }},
        Kind{"weights_of_another_model", kGenerate, 3, "",
             [](Hostile& h) { h.write_weights("{" + tensor("a", "[1]", "[0,4]") + "}", "xxxx"); }},
        Kind{"tokenizer_that_is_none", kGenerate, 3, "",
             [](Hostile& h) {
               h.write(h.checkpoint("tokenizer.json"), "{\"type\": \"\\u001b]0;x\\u0007\"}");
               h.sign_checkpoint();
             }},
        Kind{"tokenizer_cut", kGenerate, 3, "",
             [](Hostile& h) {
               h.write(h.checkpoint("tokenizer.json"), "{\"type\": \"character\", \"char");
               h.sign_checkpoint();
             }},
        Kind{"position_of_other_types", kGenerate, 3, "position.json",
             [](Hostile& h) {
               h.write(h.checkpoint("position.json"), "{\"step\": \"\\u001b[2J\", \"seed\": []}");
               h.sign_checkpoint();
             }},
        Kind{"a_step_beyond_all_numbers", kResume, 3, "",
             [](Hostile& h) {
               fs::remove_all(h.gift("checkpoints/step-00000015"));
               h.replace(h.checkpoint("position.json"), "20", "99999999999999999999");
               h.sign_checkpoint();
             }},
        Kind{"export_of_weights_that_overlap",
             {"export", "--int8", "../gift", "-o", "../work/out"},
             3,
             "weights.safetensors",
             [](Hostile& h) {
               h.write_weights(
                   "{" + tensor("a", "[4]", "[0,16]") + "," + tensor("b", "[4]", "[8,24]") + "}",
                   std::string(24, 'x'));
             }}),
    [](const auto& kind) { return kind.param.name; });

void put_bad_step(Hostile& h, const std::string& graph, const std::string& report) {
  const int32_t indices[] = {0, -1, 2147483647, -2147483647 - 1};
  const float values[] = {1, 2, 3, 4};
  const CheckpointContents contents{
      {{"batch",
        {{"x", {DType::f32, {4}}, values}, {"indices", {DType::i32, {4}}, indices}},
        false}},
      {{"graph.txt", graph}, {"report.json", report}}};
  fs::create_directories(h.gift("bad_steps"));
  ASSERT_TRUE(write_checkpoint_folder(h.gift("bad_steps/step-00000001"), contents).ok());
}

/// Indices of a batch into a table of four.
std::string graph_text() {
  GraphBuilder builder("step");
  const Tensor x = builder.input("x", Role::batch, {DType::f32, {4}});
  const Tensor indices = builder.input("indices", Role::batch, {DType::i32, {4}});
  builder.output("y", gather(x, indices));
  return print(builder.take());
}

const char* const kReport =
    R"({"step": 1, "device": "cpu", "disabled_passes": [], "precision": "f32", "fp32_modules": [],
 "first_non_finite": "", "results": {"\u001b[2J": "nan"}})";

const Arguments kReplay = {"replay-step", "../gift/bad_steps/step-00000001"};

INSTANTIATE_TEST_SUITE_P(BadStep, HostileGift,
                         ::testing::Values(
                             // Operations are total: an index out of range reads zero.
                             Kind{"indices_out_of_range", kReplay, 0, "recorded   \\x1b[2J",
                                  [](Hostile& h) { put_bad_step(h, graph_text(), kReport); }},
                             Kind{"graph_that_is_none", kReplay, 3, "",
                                  [](Hostile& h) { put_bad_step(h, "\x1b[2J", kReport); }},
                             Kind{"graph_of_wrong_types", kReplay, 3, "",
                                  [](Hostile& h) {
                                    std::string graph = graph_text();
                                    const size_t at = graph.find("f32[4]", graph.find("gather"));
                                    put_bad_step(h, graph.replace(at, 6, "f32[9]"), kReport);
                                  }},
                             // No step as traced reads one; what it is derived from need not exist.
                             Kind{"graph_with_a_derived_weight", kReplay, 3, "input 'x' is derived",
                                  [](Hostile& h) {
                                    std::string graph = graph_text();
                                    const std::string batch = "\"x\" batch";
                                    graph.replace(graph.find(batch), batch.size(),
                                                  "\"x\" derived of \"w\" {dtype=bf16}");
                                    put_bad_step(h, graph, kReport);
                                  }},
                             Kind{"report_of_nothing", kReplay, 3, "report.json",
                                  [](Hostile& h) { put_bad_step(h, graph_text(), "{}"); }},
                             Kind{"device_that_is_none", kReplay, 2, "../x",
                                  [](Hostile& h) {
                                    std::string report = kReport;
                                    put_bad_step(h, graph_text(),
                                                 report.replace(report.find("cpu"), 3, "../x"));
                                  }}),
                         [](const auto& kind) { return kind.param.name; });

// All within the ranges of their keys, and far beyond any memory; a configuration costs nothing to write.
TEST_F(HostileTest, SizesAreRefusedBeforeTheirMemoryIsTaken) {
  constexpr uint64_t kGiB = 1 << 30;
  const struct {
    std::string from, to;
    Arguments arguments;
    int exit_code;
    const char* message;
  } cases[] = {
      {"\"layers\": 1,", "\"layers\": 1000,", kGenerate, 3, "a checkpoint of another model"},
      {"\"width\": 16,", "\"width\": 65536,", kEval, 3, "a checkpoint of another model"},
      {"\"vocabulary\": 0,", "\"vocabulary\": 1000000000,", kGenerate, 3,
       "a checkpoint of another model"},
      {"\"vocabulary\": 0,", "\"vocabulary\": 1000000000,", kEval, 3, "f32[1000000000,16] here"},
      {"\"context\": 8,", "\"context\": 1048576,", kGenerate, 3, "a checkpoint of another model"},
      {"\"batch_size\": 4,", "\"batch_size\": 1048576,", kEval, 5,
       "are allowed beside the process (engine.memory_budget)"},
  };
  const std::string path = checkpoint("config.json");
  const std::string sound = read_file(path).value();
  EXPECT_EQ(run_limited(folder_ / "work", kGenerate, {}, kGiB).exit_code, 0) << "as it was";
  for (const auto& each : cases) {
    if (each.exit_code == 5 && !limits_memory()) continue;
    write(path, sound);
    set(*this, each.from, each.to);
    const LimitedResult result = run_limited(folder_ / "work", each.arguments, {}, kGiB);
    EXPECT_EQ(result.exit_code, each.exit_code) << each.to << ": " << result.err;
    EXPECT_THAT(result.err, HasSubstr(each.message)) << each.to;
  }
}

// Caches that the environment names, planted by whoever can write there.
class HostileCache : public HostileTest {
 protected:
  /// Generates, with caches as `environment` says; what it writes is in `own` alone.
  LimitedResult generate(const std::vector<std::string>& environment,
                         const std::vector<std::string>& own) const {
    const std::string before = snapshot(folder_.path(), own);
    const LimitedResult result = run_limited(folder_ / "work", kGenerate, environment);
    EXPECT_EQ(snapshot(folder_.path(), own), before);
    return result;
  }
  void expect_warned(const LimitedResult& result, const std::string& reason) const {
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(result.err, HasSubstr("fullbore: warning: no lasting cache: "));
    EXPECT_THAT(result.err, HasSubstr(reason));
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  }
  std::string cache() const { return folder_ / "cache"; }
  std::string variable() const { return "FULLBORE_CACHE=" + cache(); }
};

// The others prove something only if this holds: what is planted is found, and is fatal to whoever takes it.
TEST_F(HostileCache, IsFatalUnderTheStrangersOwnKey) {
  plant_cache(cache(), true);
  const LimitedResult result = run_limited(folder_ / "work", kGenerate,
                                           {variable(), "XDG_STATE_HOME=" + state_of_stranger()});
  const std::set<int> documented = {0, 2, 3, 4, 5};
  EXPECT_FALSE(documented.contains(result.exit_code)) << result.exit_code << result.err;
}

TEST_F(HostileCache, OfAnotherKeyIsMadeAgain) {
  plant_cache(cache(), true);
  const LimitedResult result = generate({variable()}, {"cache"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err, "");
}

TEST_F(HostileCache, OfAHashWithoutAKeyIsMadeAgain) {
  plant_cache(cache(), false);
  EXPECT_EQ(generate({variable()}, {"cache"}).exit_code, 0);
}

TEST_F(HostileCache, ThatOthersCanWriteToIsNotUsed) {
  plant_cache(cache(), true);
  ASSERT_EQ(::chmod(cache().c_str(), 0777), 0);
  expect_warned(generate({variable()}, {}), "cache has mode 0777");
}

TEST_F(HostileCache, ThatIsALinkIsNotUsed) {
  plant_cache(gift("cache"), true);
  link(cache(), gift("cache"));
  expect_warned(generate({variable()}, {}), "cache is a symbolic link");
}

TEST_F(HostileCache, WhoseFolderOfKernelsIsALinkIsNotUsed) {
  plant_cache(gift("cache"), true);
  fs::create_directories(cache());
  fs::permissions(cache(), fs::perms::owner_all);
  link(cache() + "/kernels", gift("cache/kernels"));
  expect_warned(generate({variable()}, {"cache/plans"}), "kernels is a symbolic link");
}

TEST_F(HostileCache, OfAnotherUserIsNotUsed) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a folder away";
  plant_cache(cache(), true);
  ASSERT_EQ(::chown(cache().c_str(), 65534, 65534), 0);
  expect_warned(generate({variable()}, {}), "belongs to user 65534");
}

// Earlier versions took /tmp/fullbore-<uid> there, whoever had made it.
TEST_F(HostileCache, InATemporaryFolderForAllIsNotUsed) {
  const std::string common = folder_ / "common";
  fs::create_directories(common);
  ASSERT_EQ(::chmod(common.c_str(), 01777), 0);
  plant_cache(fmt::format("{}/fullbore-{}", common, ::getuid()), true);
  const LimitedResult result = generate(
      {"TMPDIR=" + common, "FULLBORE_CACHE", "XDG_CACHE_HOME", "XDG_STATE_HOME", "HOME"}, {});
  expect_warned(result, "none of FULLBORE_CACHE, XDG_CACHE_HOME and HOME");
}

TEST_F(HostileCache, WithAKeyThatOthersCanReadIsNotUsed) {
  plant_cache(cache(), true);
  const std::string state = state_of_stranger();
  ASSERT_EQ(::chmod((state + "/fullbore/cache.key").c_str(), 0644), 0);
  expect_warned(generate({variable(), "XDG_STATE_HOME=" + state}, {}), "cache.key has mode 0644");
}

TEST_F(HostileCache, WithALinkedKeyIsNotUsed) {
  plant_cache(cache(), true);
  const std::string state = state_of_stranger();
  fs::rename(state + "/fullbore/cache.key", victim("key"));
  link(state + "/fullbore/cache.key", victim("key"));
  expect_warned(generate({variable(), "XDG_STATE_HOME=" + state}, {}),
                "cache.key is a symbolic link");
}

// Of tokens, which are data and not code: what is damaged is made again, a link replaced and not followed.
TEST_F(HostileCache, OfTokensIsMadeAgain) {
  const Arguments train = {"train",       "../job.yaml",   "data.path=../text.txt",
                           "run.dir=run", "train.steps=1", "data.cache_dir=" + cache()};
  ASSERT_EQ(run_limited(folder_ / "work", train).exit_code, 0);
  const std::string entry = fs::directory_iterator(cache())->path().string();
  const std::string sound = read_file(entry).value();
  const auto again = [&] {
    fs::remove_all(folder_ / "work/run");
    const std::string before = snapshot(folder_.path(), {"work/run", "cache"});
    const LimitedResult result = run_limited(folder_ / "work", train);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(snapshot(folder_.path(), {"work/run", "cache"}), before);
    EXPECT_EQ(read_file(entry).value(), sound);
    EXPECT_FALSE(fs::is_symlink(entry));
  };
  write(entry, sound.substr(0, sound.size() / 2));
  again();
  std::string flipped = sound;
  flipped[70] = static_cast<char>(flipped[70] ^ 0x40);
  write(entry, flipped);
  again();
  link(entry, "/dev/zero");
  again();
  link(entry, victim("file"));
  again();
  ASSERT_EQ(::chmod(cache().c_str(), 0777), 0);
  fs::remove_all(folder_ / "work/run");
  const LimitedResult refused = run_limited(folder_ / "work", train);
  EXPECT_EQ(refused.exit_code, 3);
  EXPECT_THAT(refused.err, HasSubstr("data.cache_dir: "));
}

}  // namespace
}  // namespace fullbore
