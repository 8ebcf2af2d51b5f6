// Frozen parameters that lie in files: mapped, hashed, told by checkpoints and confirmed by whoever resumes.
#include "fullbore/train/frozen_weights.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <cstring>

#include "fullbore/ckpt/checkpoint.h"
#include "fullbore/device/registry.h"
#include "fullbore/runtime/program.h"
#include "fullbore/train/frozen.h"
#include "fullbore/train/tensor_groups.h"
#include "tests/train/trainer_test.h"

namespace fullbore {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kHidden = 5;

/// y = tanh(x A) W, of which W may lie in a file.
Loss through_frozen(Trace& trace, std::span<const Tensor> batch) {
  const Tensor adapter = trace.parameter("adapter", {kWidth, kHidden}, Initializer::normal(0.3));
  const Tensor weight = trace.parameter("model.weight", {1, kHidden}, Initializer::ones());
  const Tensor made = reshape(linear(tanh(matmul(batch[0], adapter)), weight), {kRows});
  const Tensor error = made - batch[1];
  return {reduce_mean(error * error, {0})};
}

class FrozenWeightsTest : public TrainerTest {
 protected:
  FrozenWeightsTest() {
    job_.options.steps = 6;
    job_.options.checkpoint_interval = 0;
    job_.validation.reset();
  }

  /// A file with the weight, behind `before` bytes that are another tensor.
  std::string file_of(const std::string& name, const std::vector<double>& values,
                      DType dtype = DType::f32, int64_t before = 3) {
    const TensorType type{dtype, {1, kHidden}};
    std::vector<std::byte> bytes(static_cast<size_t>(type.bytes()));
    for (size_t i = 0; i < values.size(); ++i)
      store_element(bytes.data(), dtype, static_cast<int64_t>(i), values[i]);
    // By hand: what others write need not be aligned.
    const uint64_t end = static_cast<uint64_t>(before) + bytes.size();
    std::string header = fmt::format(
        R"({{"before":{{"dtype":"U8","shape":[{0}],"data_offsets":[0,{0}]}},)"
        R"("model.weight":{{"dtype":"{1}","shape":[1,{2}],"data_offsets":[{0},{3}]}}}})",
        before, dtype == DType::f32 ? "F32" : "BF16", kHidden, end);
    header.resize((header.size() + 7) / 8 * 8, ' ');
    const uint64_t length = header.size();
    std::string contents(reinterpret_cast<const char*>(&length), sizeof length);
    contents += header + std::string(static_cast<size_t>(before), '\0');
    contents.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return folder_.put(name, contents);
  }

  void read_from(const std::string& path) {
    const auto weights = std::make_shared<FrozenWeights>(MappedTensors::open(path));
    job_.loss = with_frozen(through_frozen, {"model.*"},
                            [weights](const std::string& name) { return weights->storage(name); });
    job_.frozen = weights;
  }

  template <class Run>
  static std::string refusal(const Run& run) {
    try {
      run();
    } catch (const DataError& error) {
      return error.what();
    }
    return "accepted";
  }
};

const std::vector<double> kValues = {0.5, -1.25, 2, 0.375, -3};

TEST_F(FrozenWeightsTest, AreReadWhereTheyLieAndWrittenByNobody) {
  for (const char* device : {"cpu", "reference", "null"}) {
    for (const int64_t before : {4, 3}) {  // the second lies where no float may
      const FrozenWeights weights(
          MappedTensors::open(file_of("model.safetensors", kValues, DType::f32, before)));
      const LossFunction loss = with_frozen(through_frozen, {"model.*"});
      const TracedStep step = trace_training_step(loss, Lines().fields(), {});
      const std::vector<StateEntry> entries = state_entries(step.graph);
      State state = initial_state(step, 1, open_device(device, 1), weights.lend(entries));
      const int entry = state.find("model.weight");
      ASSERT_TRUE(state.is_lent(entry));
      EXPECT_EQ(state.lent_bytes(), 4 * kHidden);
      const State owned = initial_state(step, 1, open_device(device, 1));
      EXPECT_EQ(owned.bytes() - state.bytes(), 64);
      EXPECT_THAT(state.read<float>("model.weight"), ElementsAre(0.5, -1.25, 2, 0.375, -3));
      const bool in_place = state.address(entry).value ==
                            reinterpret_cast<uint64_t>(weights.find("model.weight")->bytes.data());
      EXPECT_EQ(in_place, before == 4 && std::string(device) != "null") << device << before;
      Program program = Program::compile(step.graph, state, {.copies_frozen_weights = false});
      alignas(64) float x[kRows * kWidth] = {1, 2, 3};
      alignas(64) float y[kRows] = {1};
      const void* const batch[] = {x, y};
      program.run(batch);
      for (const TensorGroup& group : tensor_groups(state, Compression::none))
        for (const NamedTensor& tensor : group.tensors) EXPECT_NE(tensor.name, "model.weight");
    }
  }
}

TEST_F(FrozenWeightsTest, ARunHasTheBitsOfOneThatOwnsThemAndResumes) {
  job_.loss = with_frozen(through_frozen, {"model.*"});
  job_.initialize = [](State& state) {
    state.write<float>("model.weight", {0.5F, -1.25F, 2, 0.375F, -3});
  };
  EXPECT_EQ(train_in("owned"), ExitCode::kOk);
  job_.initialize = {};
  read_from(file_of("model.safetensors", kValues));
  EXPECT_EQ(train_in("lent"), ExitCode::kOk);
  const auto optimizer = "/checkpoints/last/optimizer.safetensors";
  EXPECT_EQ(file(std::string("owned") + optimizer), file(std::string("lent") + optimizer));
  const OpenedCheckpoint saved = open_checkpoint(folder_ / "lent");
  EXPECT_EQ(saved.folder.group("weights").value().tensors().size(), 1U);
  ASSERT_EQ(saved.record.frozen.size(), 1U);
  EXPECT_EQ(saved.record.frozen.at("model.weight").file, folder_ / "model.safetensors");
  job_.options.steps = 8;
  EXPECT_EQ(train_in("lent", true), ExitCode::kOk);
}

TEST_F(FrozenWeightsTest, AnotherFileOrNoneIsRefusedByName) {
  read_from(file_of("model.safetensors", kValues));
  EXPECT_EQ(train_in("run"), ExitCode::kOk);
  job_.options.steps = 8;
  const std::string other = file_of("other.safetensors", {0.5, -1.25, 2, 0.375, 3});
  read_from(other);
  EXPECT_THAT(refusal([&] { train_in("run", true); }),
              ::testing::AllOf(HasSubstr(other + ": the frozen parameter 'model.weight' has the"),
                               HasSubstr("read from " + (folder_ / "model.safetensors"))));
  // A checkpoint's path is told, not followed.
  job_.frozen = nullptr;
  EXPECT_THAT(refusal([&] { train_in("run", true); }),
              HasSubstr("is not followed because a checkpoint says so: name it by train.frozen_"));
  read_from(file_of("moved.safetensors", kValues));
  EXPECT_EQ(train_in("run", true), ExitCode::kOk) << "the hash counts, not the path";
}

TEST_F(FrozenWeightsTest, HashesOfKnownFilesAreNotComputedAgain) {
  const std::string path = file_of("model.safetensors", kValues);
  const auto hash = [&] {
    const MappedTensors tensors = MappedTensors::open(path);
    const MappedTensor* const tensor = tensors.find("model.weight");
    return tensor_hashes(std::span(&tensor, 1)).front();
  };
  const std::string first = hash();
  struct stat status {};
  ASSERT_EQ(::stat(path.c_str(), &status), 0);
  // A byte changes and the file says that nothing has: only then is an old hash believed.
  const int changed = ::open(path.c_str(), O_RDWR);
  ASSERT_EQ(::pwrite(changed, "x", 1, status.st_size - 1), 1);
  ::close(changed);
  const std::string honest = hash();
  EXPECT_NE(honest, first);
  const timespec times[] = {status.st_atim, status.st_mtim};
  ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
  EXPECT_EQ(hash(), first);
}

// What is stored in bf16 is the model of the rounded numbers, forward and backward.
TEST_F(FrozenWeightsTest, NarrowStorageIsTheModelOfTheRoundedNumbers) {
  const std::vector<double> values = {0.51, -1.26, 2.03, 0.377, -3.1};
  std::vector<double> rounded;
  for (const double value : values) rounded.push_back(round_to_dtype(value, DType::bf16));
  read_from(file_of("narrow.safetensors", values, DType::bf16));
  EXPECT_EQ(train_in("narrow"), ExitCode::kOk);
  read_from(file_of("wide.safetensors", rounded));
  EXPECT_EQ(train_in("wide"), ExitCode::kOk);
  for (const char* name : {"weights", "optimizer"}) {
    const std::string path = fmt::format("/checkpoints/last/{}.safetensors", name);
    EXPECT_EQ(file("narrow" + path), file("wide" + path)) << name;
  }
}

TEST_F(FrozenWeightsTest, FilesThatDoNotFitAreRefusedByName) {
  const std::string path = file_of("model.safetensors", kValues);
  const MappedTensors tensors = MappedTensors::open(path);
  const auto lent = [&](const std::string& name, const Shape& shape) {
    return refusal([&] {
      (void)FrozenWeights(tensors).lend({{name, Role::frozen, {DType::f32, shape}}});
    });
  };
  EXPECT_EQ(
      lent("model.weights", {1, kHidden}),
      path + ": the frozen parameter 'model.weights' is missing. Did you mean 'model.weight'?");
  EXPECT_EQ(lent("model.weight", {kHidden, 1}),
            path + ": 'model.weight' is f32[1,5], the model's 'model.weight' is f32[5,1]");
  // Folders: all of its files, a tensor once, no link out of it.
  EXPECT_EQ(MappedTensors::open(folder_.path()).tensors().size(), 2U);
  const std::string twin = file_of("twin.safetensors", kValues);
  const auto opened = [&](const std::string& place) {
    return refusal([&] { MappedTensors::open(place); });
  };
  EXPECT_EQ(opened(folder_.path()), path + ": 'before' is in " + twin + " as well");
  std::filesystem::remove(twin);
  std::filesystem::create_symlink("/etc/hostname", twin);
  EXPECT_THAT(opened(folder_.path()), HasSubstr("a link that leads out of"));
  EXPECT_THAT(opened(folder_ / "none"), HasSubstr("cannot open"));
  const std::string whole = file("model.safetensors");
  for (const size_t bytes : {size_t{0}, size_t{7}, size_t{40}, whole.size() - 1})
    EXPECT_THAT(opened(folder_.put("cut.safetensors", whole.substr(0, bytes))),
                HasSubstr("cut.safetensors: "));
}

}  // namespace
}  // namespace fullbore
