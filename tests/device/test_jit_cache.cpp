// Object code on disk: a warm start compiles nothing, damage is found out and repaired.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "fullbore/base/files.h"
#include "fullbore/device/cpu/codegen/code_store.h"
#include "fullbore/device/kernel_ir/lower.h"
#include "fullbore/ir/op_def.h"
#include "jit_harness.h"

namespace fullbore {
namespace {

using jit::CodeStore;

class JitCache : public ::testing::Test {
 protected:
  JitCache() : folder_(::testing::TempDir() + "fullbore_cache_" + std::to_string(::getpid())) {
    std::filesystem::remove_all(folder_);
  }
  ~JitCache() override { std::filesystem::remove_all(folder_); }

  // Computes op(x) for x f32[shape] with code from `store`.
  JitStatistics run(CodeStore& store, const char* op, const Shape& shape) {
    const TensorType type{DType::f32, shape};
    Graph graph;
    const Value x = graph.add_input("x", Role::batch, type);
    const Node node = graph.add_node(get_op(op), {x}, {});
    JitCompiler compiler(&store);
    const auto kernel = compiler.add(graph, node, 1);
    compiler.finish();
    Literal input(type);
    for (int64_t i = 0; i < type.elements(); ++i) input.put(i, static_cast<double>(i) - 3);
    const Literal output = run_kernel(*kernel, {input}, {type})[0];
    for (int64_t i = 0; i < type.elements(); ++i)
      EXPECT_EQ(output.at(i), evaluate_real(get_op(op).scalar, input.at(i)));
    return compiler.statistics();
  }

  std::vector<std::string> entries() const {
    std::vector<std::string> result;
    if (std::filesystem::exists(folder_))
      for (const auto& entry : std::filesystem::directory_iterator(folder_))
        result.push_back(entry.path().string());
    return result;
  }

  std::string folder_;
};

TEST_F(JitCache, ColdCompilesWarmLoadsAgainRemembers) {
  CodeStore cold(jit::host_target(), folder_);
  EXPECT_EQ(run(cold, "neg", {100}).compiled, 1);
  EXPECT_EQ(run(cold, "neg", {100}).from_memory, 1);
  EXPECT_EQ(run(cold, "abs", {100}).compiled, 1);
  EXPECT_EQ(entries().size(), 2);

  CodeStore warm(jit::host_target(), folder_);
  const JitStatistics first = run(warm, "neg", {100});
  EXPECT_EQ(first.compiled, 0);
  EXPECT_EQ(first.from_disk, 1);
  EXPECT_EQ(run(warm, "neg", {100}).from_memory, 1);
}

TEST_F(JitCache, ShapesShareCode) {
  CodeStore store(jit::host_target(), folder_);
  EXPECT_EQ(run(store, "neg", {100}).compiled, 1);
  EXPECT_EQ(run(store, "neg", {7, 3, 2}).compiled, 0);
  EXPECT_EQ(run(store, "neg", {}).compiled, 1);  // one element: no loop at all
}

TEST_F(JitCache, AnotherProcessorHasEntriesOfItsOwn) {
  CodeStore store(jit::host_target(), folder_);
  jit::CodegenTarget other = jit::host_target();
  other.features += ",-fma4";
  const CodeStore foreign(other, folder_);
  EXPECT_NE(store.cache_path("kernel"), foreign.cache_path("kernel"));
}

TEST_F(JitCache, TornOrForeignEntriesAreMadeAgain) {
  {
    CodeStore store(jit::host_target(), folder_);
    run(store, "neg", {100});
  }
  ASSERT_EQ(entries().size(), 1);
  const std::string path = entries()[0];
  const std::string intact = read_file(path).take_or_throw();
  const auto damaged = [&](const std::string& contents) {
    std::ofstream(path, std::ios::binary) << contents;
    CodeStore store(jit::host_target(), folder_);
    const JitStatistics statistics = run(store, "neg", {100});
    return statistics.compiled == 1 && statistics.from_disk == 0 &&
           read_file(path).take_or_throw() == intact;
  };
  EXPECT_TRUE(damaged(""));
  EXPECT_TRUE(damaged(intact.substr(0, 30)));
  EXPECT_TRUE(damaged(intact.substr(0, intact.size() - 1)));
  EXPECT_TRUE(damaged(intact + "x"));
  for (const size_t at :
       {size_t{3}, size_t{20}, size_t{60}, intact.size() / 2, intact.size() - 5}) {
    std::string flipped = intact;
    flipped[at] = static_cast<char>(flipped[at] ^ 4);
    EXPECT_TRUE(damaged(flipped)) << "bit flipped at " << at;
  }
}

TEST_F(JitCache, AnUnwritableFolderOnlyCostsTime) {
  const std::string file = folder_ + "_file";
  std::ofstream(file) << "not a folder";
  CodeStore store(jit::host_target(), file + "/kernels");
  EXPECT_EQ(run(store, "neg", {100}).compiled, 1);
  std::filesystem::remove(file);
}

}  // namespace
}  // namespace fullbore
