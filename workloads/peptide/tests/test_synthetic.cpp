#include "workloads/peptide/synthetic.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "fullbore/base/error.h"
#include "fullbore/data/loader.h"

namespace fullbore::peptide {
namespace {

using ::testing::ElementsAre;

using Bytes = std::vector<std::vector<uint8_t>>;

Bytes batch_of(const BatchSource& source, uint64_t position) {
  Bytes bytes;
  std::vector<void*> buffers;
  const std::vector<BatchField> fields = source.shapes()[source.shape_at(position)];
  for (const BatchField& field : fields)
    bytes.emplace_back(static_cast<size_t>(field.type.bytes()), uint8_t{0xAA});
  for (auto& buffer : bytes) buffers.push_back(buffer.data());
  source.fill(position, buffers);
  return bytes;
}

template <class T>
std::vector<T> values(const std::vector<uint8_t>& bytes) {
  std::vector<T> all(bytes.size() / sizeof(T));
  std::memcpy(all.data(), bytes.data(), bytes.size());
  return all;
}

SyntheticOptions small_options() {
  SyntheticOptions options;
  options.batch_size = 4;
  options.seed = 5;
  return options;
}

TEST(SyntheticBatches, FieldsAreInTheirOrder) {
  const SyntheticBatches source(small_options(), default_curriculum());
  std::vector<std::string> names;
  for (const BatchField& field : source.fields()) names.push_back(field.name);
  EXPECT_THAT(names, ElementsAre("mz", "intensity", "peak_mask", "precursor_mass",
                                 "precursor_charge", "targets", "target_mask", "spectrum_weight"));
  EXPECT_EQ(source.fields()[0].type, (TensorType{DType::f32, {4, 42}}));
  EXPECT_EQ(source.fields()[2].type, (TensorType{DType::boolean, {4, 42}}));
  EXPECT_EQ(source.fields()[3].type, (TensorType{DType::f32, {4}}));
  EXPECT_EQ(source.fields()[5].type, (TensorType{DType::i32, {4, 25}}));
  EXPECT_EQ(source.fields()[7].type, (TensorType{DType::f32, Shape{}}));
  Curriculum curriculum = default_curriculum();
  curriculum[3].precursor_weight = 0.02;
  const SyntheticBatches weighted(small_options(), curriculum);
  EXPECT_EQ(weighted.fields().back().name, "precursor_weight");
  EXPECT_EQ(values<float>(batch_of(weighted, 21999).back())[0], 0);
  EXPECT_EQ(values<float>(batch_of(weighted, 22000).back())[0], 0.02F);
}

TEST(SyntheticBatches, DataAndWeightSwitchOnTheSameStep) {
  const SyntheticBatches source(small_options(), default_curriculum());
  constexpr uint64_t kSteps[] = {0,     7999,  8000,  15999, 16000, 21999,
                                 22000, 27999, 28000, 37999, 38000, 60000};
  constexpr int64_t kPeaks[] = {18, 18, 18, 18, 23, 23, 24, 24, 33, 33, 42, 42};
  constexpr float kWeight[] = {0, 0, .1F, .1F, .1F, .1F, .12F, .12F, .15F, .15F, .15F, .15F};
  EXPECT_EQ(source.shapes().size(), 5U);
  for (size_t i = 0; i < std::size(kSteps); ++i) {
    const std::vector<BatchField> fields = source.shapes()[source.shape_at(kSteps[i])];
    EXPECT_EQ(fields[0].type.shape[1], kPeaks[i]) << kSteps[i];
    EXPECT_EQ(values<float>(batch_of(source, kSteps[i])[7])[0], kWeight[i]) << kSteps[i];
  }
  const auto mask = [&](uint64_t position) { return batch_of(source, position)[2]; };
  EXPECT_EQ(mask(38000).size(), 4U * 42);
}

TEST(SyntheticBatches, TrimmingLosesNothing) {
  SyntheticOptions options = small_options();
  const SyntheticBatches trimmed(options, default_curriculum());
  options.trim = false;
  const SyntheticBatches whole(options, default_curriculum());
  EXPECT_EQ(whole.shapes().size(), 1U);
  for (const uint64_t position : {0, 16000, 40000}) {
    const Bytes narrow = batch_of(trimmed, position);
    const Bytes wide = batch_of(whole, position);
    const auto peaks =
        static_cast<size_t>(trimmed.shapes()[trimmed.shape_at(position)][0].type.shape[1]);
    const auto narrow_mz = values<float>(narrow[0]);
    const auto wide_mz = values<float>(wide[0]);
    for (size_t row = 0; row < 4; ++row)
      for (size_t p = 0; p < 100; ++p)
        EXPECT_EQ(wide_mz[row * 100 + p], p < peaks ? narrow_mz[row * peaks + p] : 0);
    for (size_t field = 3; field < 8; ++field) EXPECT_EQ(narrow[field], wide[field]);
  }
}

TEST(SyntheticBatches, AnyNumberOfWorkersMakesTheSameBytes) {
  const auto source = std::make_shared<SyntheticBatches>(small_options(), default_curriculum());
  Loader one(source, {.workers = 1, .prefetch = 2});
  Loader sixteen(source, {.workers = 16, .prefetch = 20});
  for (const uint64_t start : {uint64_t{0}, uint64_t{7995}, uint64_t{37990}}) {
    one.seek(start);
    sixteen.seek(start);
    for (uint64_t position = start; position < start + 20; ++position) {
      const Bytes expected = batch_of(*source, position);
      const auto a = one.next();
      const auto b = sixteen.next();
      for (size_t field = 0; field < expected.size(); ++field) {
        EXPECT_EQ(std::memcmp(a[field], expected[field].data(), expected[field].size()), 0);
        EXPECT_EQ(std::memcmp(b[field], expected[field].data(), expected[field].size()), 0);
      }
    }
  }
}

TEST(SyntheticBatches, SpectraAreTheSameInBatchesOfAnySize) {
  SyntheticOptions options = small_options();
  const SyntheticBatches fours(options, default_curriculum());
  options.batch_size = 2;
  const SyntheticBatches twos(options, default_curriculum());
  for (size_t field = 0; field < 7; ++field) {
    std::vector<uint8_t> both = batch_of(twos, 6)[field];
    const std::vector<uint8_t> second = batch_of(twos, 7)[field];
    both.insert(both.end(), second.begin(), second.end());
    EXPECT_EQ(batch_of(fours, 3)[field], both);
  }
}

TEST(SyntheticBatches, ValidationIsAFixedSetOfItsOwn) {
  const CurriculumStage stage = default_curriculum()[5];
  const SyntheticBatches training(small_options(), {default_curriculum()[0]});
  const auto clean = SyntheticBatches::validation(small_options(), default_curriculum()[0], 3);
  EXPECT_NE(batch_of(training, 0), batch_of(clean, 0));
  EXPECT_EQ(batch_of(clean, 0), batch_of(clean, 3));
  EXPECT_EQ(batch_of(clean, 2), batch_of(clean, 8));
  EXPECT_NE(batch_of(clean, 0), batch_of(clean, 1));
  const auto hard = SyntheticBatches::validation(small_options(), stage, 3);
  EXPECT_EQ(hard.fields()[0].type.shape[1], 42);
  // Peptides of a stage of longer ones differ; what corrupts is really there.
  const std::vector<uint8_t> mask = batch_of(hard, 0)[2];
  EXPECT_NE(std::count(mask.begin(), mask.end(), 1), 0);
  EXPECT_THROW(SyntheticBatches::validation(small_options(), stage, 0), UsageError);
}

TEST(SyntheticBatches, SeedsDiffer) {
  SyntheticOptions options = small_options();
  const SyntheticBatches five(options, default_curriculum());
  options.seed = 6;
  const SyntheticBatches six(options, default_curriculum());
  EXPECT_NE(batch_of(five, 0)[5], batch_of(six, 0)[5]);
}

TEST(SyntheticBatches, BadOptionsAndCurriculaAreRefused) {
  SyntheticOptions options = small_options();
  options.max_peaks = 0;
  EXPECT_THROW(SyntheticBatches(options, default_curriculum()), UsageError);
  EXPECT_THROW(SyntheticBatches(small_options(), {}), UsageError);
}

}  // namespace
}  // namespace fullbore::peptide
