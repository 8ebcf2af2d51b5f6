#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "fullbore/device/interpret.h"
#include "fullbore/ir/op_def.h"
#include "fullbore/ir/print.h"
#include "fullbore/ir/verify.h"
#include "fullbore/passes/pass.h"
#include "tests/support/copies.h"
#include "tests/support/gradcheck.h"
#include "tests/support/paths.h"

/// tests/passes/<pass>/<case>.ir: a line that says why the case exists, optionally what the target
/// supports natively, the graph before and the graph expected after.
///
///   why: zero is the neutral element of addition
///   native: softmax layer_norm:f32:bf16
///   precision: bf16 head.*            (what it asks for, tf32 too, and the modules that stay f32)
///   recompute: 4096                   (bytes of the arena; or full)
///   epilogues: f32:bf16 17 4096       (EpilogueTarget: operand dtypes, fewest rows, near bytes)
///   packing: 64 3 f32:16:1:8:2        (PackingTarget: most rows, fewest uses; per dtype: columns, vnni, fewest
///                                     rows, fewest rows if transposed, 1 if kept for one reader, whole depth)
///   copies: kept                      (Target::keeps_derived_weights)
///   before
///   graph ...
///   after
///   graph ...
///
/// FB_BLESS=1 writes what the pass gives as the new expectation: look at the diff.
namespace fullbore {
namespace {

namespace fs = std::filesystem;

struct Case {
  std::string path, why, before, after;
  Target target;
};

std::vector<std::string> case_paths() {
  std::vector<std::string> paths;
  for (const auto& entry :
       fs::recursive_directory_iterator(fs::path(testing::source_folder()) / "tests" / "passes"))
    if (entry.path().extension() == ".ir") paths.push_back(entry.path().string());
  std::sort(paths.begin(), paths.end());
  return paths;
}

// "softmax" or, with the dtypes for which it is native, "softmax:f32:bf16".
void add_native(const std::string& text, Target& target) {
  std::istringstream parts(text);
  std::string name, dtype;
  std::getline(parts, name, ':');
  std::set<DType>& dtypes = target.native_ops[&get_op(name)];
  while (std::getline(parts, dtype, ':')) dtypes.insert(parse_dtype(dtype).value());
}

void read_packing(const std::string& text, PackingTarget& packing) {
  std::istringstream words(text);
  words >> packing.most_rows >> packing.fewest_uses;
  for (std::string layout; words >> layout;) {
    std::istringstream parts(layout);
    std::string dtype;
    std::getline(parts, dtype, ':');
    PackingTarget::Layout& each = packing.layouts[parse_dtype(dtype).value()];
    char colon = 0;
    parts >> each.columns >> colon >> each.vnni >> colon >> each.fewest_rows >> colon >>
        each.fewest_rows_transposed >> colon >> each.kept_for_one >> colon >> each.whole_depth;
  }
}

Case read_case(const std::string& path) {
  Case result{path, "", "", "", {}};
  std::ifstream file(path);
  std::string* part = nullptr;
  for (std::string line; std::getline(file, line);) {
    if (line == "before")
      part = &result.before;
    else if (line == "after")
      part = &result.after;
    else if (part)
      *part += line + "\n";
    else if (line.starts_with("why: "))
      result.why = line.substr(5);
    else if (line.starts_with("native: ")) {
      std::istringstream names(line.substr(8));
      for (std::string name; names >> name;) add_native(name, result.target);
    } else if (line.starts_with("precision: ")) {
      std::istringstream words(line.substr(11));
      std::string dtype;
      words >> dtype;
      result.target.tf32 = dtype == "tf32";
      if (!result.target.tf32) result.target.precision = parse_dtype(dtype).value();
      for (std::string scope; words >> scope;) result.target.fp32_scopes.push_back(scope);
    } else if (line.starts_with("epilogues: ")) {
      std::istringstream words(line.substr(11));
      std::string dtypes, dtype;
      EpilogueTarget& epilogues = result.target.epilogues;
      words >> dtypes >> epilogues.fewest_rows >> epilogues.near_bytes;
      std::istringstream parts(dtypes);
      while (std::getline(parts, dtype, ':'))
        epilogues.operand_dtypes.insert(parse_dtype(dtype).value());
    } else if (line.starts_with("packing: ")) {
      read_packing(line.substr(9), result.target.packing);
    } else if (line == "copies: kept") {
      result.target.keeps_derived_weights = true;
    } else if (line.starts_with("recompute: ")) {
      const std::string bytes = line.substr(11);
      result.target.recompute = bytes == "full" ? Recompute::full : Recompute::automatic;
      if (bytes != "full") result.target.arena_bytes = std::stoll(bytes);
    }
  }
  return result;
}

void bless(const Case& each, const std::string& after) {
  std::ofstream file(each.path);
  file << "why: " << each.why << "\n";
  if (!each.target.native_ops.empty()) {
    file << "native:";
    for (const OpDef* op : all_ops()) {  // by name: addresses come in any order
      const auto native = each.target.native_ops.find(op);
      if (native == each.target.native_ops.end()) continue;
      const std::set<DType>& dtypes = native->second;
      file << " " << op->name;
      for (DType dtype : dtypes) file << ":" << dtype_name(dtype);
    }
    file << "\n";
  }
  if (each.target.precision != DType::f32) {
    file << "precision: " << dtype_name(each.target.precision);
    for (const std::string& scope : each.target.fp32_scopes) file << " " << scope;
    file << "\n";
  }
  if (each.target.recompute == Recompute::full) file << "recompute: full\n";
  if (each.target.recompute == Recompute::automatic)
    file << "recompute: " << each.target.arena_bytes << "\n";
  const EpilogueTarget& epilogues = each.target.epilogues;
  if (!epilogues.operand_dtypes.empty()) {
    std::string dtypes;
    for (DType dtype : epilogues.operand_dtypes)
      dtypes += (dtypes.empty() ? "" : ":") + std::string(dtype_name(dtype));
    file << "epilogues: " << dtypes << " " << epilogues.fewest_rows << " " << epilogues.near_bytes
         << "\n";
  }
  const PackingTarget& packing = each.target.packing;
  if (!packing.layouts.empty()) {
    file << "packing: " << packing.most_rows << " " << packing.fewest_uses;
    for (const auto& [dtype, layout] : packing.layouts)
      file << fmt::format(" {}:{}:{}:{}:{}{}", dtype_name(dtype), layout.columns, layout.vnni,
                          layout.fewest_rows, layout.fewest_rows_transposed,
                          layout.whole_depth > 0
                              ? fmt::format(":{:d}:{}", layout.kept_for_one, layout.whole_depth)
                          : layout.kept_for_one ? ":1"
                                                : "");
    file << "\n";
  }
  if (each.target.keeps_derived_weights) file << "copies: kept\n";
  file << "before\n" << each.before << "after\n" << after;
}

const Pass* pass_of(const std::string& path) {
  const std::string folder = fs::path(path).parent_path().filename().string();
  for (const Pass& pass : pipeline())
    if (pass.name == folder) return &pass;
  return nullptr;
}

std::vector<Literal> some_inputs(const Graph& graph) {
  std::vector<Literal> inputs;
  for (const Graph::Input& input : graph.inputs()) {
    if (input.role == Role::derived) continue;
    inputs.push_back(random_literal(graph.type(input.value), 21, inputs.size()));
    for (int64_t& each : inputs.back().integers()) each = std::abs(each) % 3;
    inputs.back().round();
  }
  return inputs;
}

class PassCase : public ::testing::TestWithParam<std::string> {};

TEST_P(PassCase, GivesTheGraphExpected) {
  const Case each = read_case(GetParam());
  const Pass* pass = pass_of(each.path);
  ASSERT_TRUE(pass) << "no pass has the name of the folder of " << each.path;
  EXPECT_FALSE(each.why.empty());
  const Result<Graph> before = parse_graph(each.before);
  ASSERT_TRUE(before.ok()) << before.error();
  ASSERT_EQ(verify(before.value()), "");
  EXPECT_EQ(print(before.value()), each.before) << "the case is not written as graphs are printed";

  const Graph after = pass->run(before.value(), each.target);
  EXPECT_EQ(verify(after), "");
  if (std::getenv("FB_BLESS"))
    bless(each, print(after));
  else
    EXPECT_EQ(print(after), each.after) << each.why;
  EXPECT_EQ(print(pass->run(after, each.target)), print(after)) << "twice is not once";
  const std::vector<Literal> inputs = some_inputs(before.value());
  // The interpreter rounds nothing: other types than before, the same numbers.
  const auto results = [&](const Graph& graph) {
    std::vector<Literal> outputs = interpret(graph, with_copies(graph, inputs));
    EXPECT_EQ(check_copies(graph, inputs, outputs), "");
    return without_copies(graph, outputs);
  };
  EXPECT_EQ(compare_literals(results(before.value()), results(after), 1e-9), "");
}

INSTANTIATE_TEST_SUITE_P(Text, PassCase, ::testing::ValuesIn(case_paths()), [](const auto& each) {
  const fs::path path(each.param);
  std::string name = path.parent_path().filename().string() + "_" + path.stem().string();
  return name;
});

TEST(PassCases, EveryPassHasSome) {
  for (const Pass& pass : pipeline()) {
    const auto paths = case_paths();
    EXPECT_TRUE(std::any_of(paths.begin(), paths.end(), [&](const std::string& path) {
      return pass_of(path) == &pass;
    })) << pass.name;
  }
}

}  // namespace
}  // namespace fullbore
