// Spectra of a file that are disturbed as synthetic ones are.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/support/scratch_folder.h"
#include "workloads/peptide/measured.h"
#include "workloads/peptide/spectrum_batch.h"

namespace fullbore::peptide {
namespace {

using fullbore::testing::ScratchFolder;
using ::testing::Each;
using ::testing::Gt;
using ::testing::SizeIs;

constexpr int kSpectra = 200;
constexpr int kPeaks = 20;
constexpr int64_t kSlots = 40;
constexpr float kWeak = 0.001F;

/// Spectra of 20 peaks, at 100, 140, ... and a little more, of which every fourth is weak.
std::shared_ptr<const SpectrumCache> make_cache(const ScratchFolder& folder) {
  const ResidueAlphabet alphabet;
  auto writer = SpectrumCacheWriter::create(folder / "a.spectra", alphabet).take_or_throw();
  for (int spectrum = 0; spectrum < kSpectra; ++spectrum) {
    PreparedSpectrum prepared;
    prepared.precursor_mass = 1000 + spectrum;
    prepared.precursor_charge = 2 + spectrum % 2;
    for (int i = 0; i < kPeaks; ++i)
      prepared.peaks.push_back(
          pack_peak(static_cast<float>(100 + 40 * i) + 0.01F * static_cast<float>(spectrum),
                    i == 5       ? 1.0F
                    : i % 4 == 0 ? kWeak
                                 : 0.2F + 0.02F * static_cast<float>(i)));
    for (int i = 0; i < 7; ++i) prepared.ids.push_back(kFirstResidue + (spectrum + i) % 20);
    EXPECT_TRUE(writer.append(prepared).ok());
  }
  EXPECT_TRUE(writer.commit("{}").ok());
  return std::make_shared<SpectrumCache>(SpectrumCache::open(folder / "a.spectra").take_or_throw());
}

struct Row {
  std::vector<float> mz;  // of the peaks that there are
  std::vector<float> intensity;
  float precursor_mass = 0;
  int32_t precursor_charge = 0;
  std::vector<int32_t> targets;
  bool operator==(const Row&) const = default;
};

std::vector<Row> rows_at(const MeasuredBatches& source, uint64_t position) {
  const std::vector<BatchField> fields = source.shapes()[source.shape_at(position)];
  std::vector<std::vector<uint8_t>> bytes;
  std::vector<void*> buffers;
  for (const BatchField& field : fields)
    bytes.emplace_back(static_cast<size_t>(field.type.bytes()), uint8_t{0xAA});
  for (auto& buffer : bytes) buffers.push_back(buffer.data());
  source.fill(position, buffers);
  std::vector<Row> rows;
  for (int64_t i = 0; i < fields[0].type.shape[0]; ++i) {
    const SpectrumRow row =
        spectrum_row(buffers, i, fields[0].type.shape[1], fields[5].type.shape[1]);
    const auto count = std::count(row.peak_mask.begin(), row.peak_mask.end(), 1);
    Row& read = rows.emplace_back();
    read.mz.assign(row.mz.begin(), row.mz.begin() + count);
    read.intensity.assign(row.intensity.begin(), row.intensity.begin() + count);
    read.precursor_mass = *row.precursor_mass;
    read.precursor_charge = *row.precursor_charge;
    read.targets.assign(row.targets.begin(), row.targets.end());
  }
  return rows;
}

class Corrupted : public ::testing::Test {
 protected:
  MeasuredOptions options(const SpectrumSettings& settings, bool corrupt = true) const {
    MeasuredOptions options;
    options.batch_size = kSpectra;
    options.max_peaks = kSlots;
    options.max_sequence = 12;
    options.shuffle = false;
    options.seed = 3;
    options.curriculum[0].spectra = settings;
    options.corrupt = corrupt;
    return options;
  }
  MeasuredBatches batches(const MeasuredOptions& options) const {
    std::vector<uint64_t> all(cache_->size());
    for (uint64_t i = 0; i < all.size(); ++i) all[i] = i;
    return {cache_, all, options};
  }
  std::vector<Row> rows(const SpectrumSettings& settings, uint64_t position = 0) const {
    return rows_at(batches(options(settings)), position);
  }
  std::vector<Row> clean() const { return rows_at(batches(options({}, false)), 0); }

  ScratchFolder folder_;
  std::shared_ptr<const SpectrumCache> cache_ = make_cache(folder_);
};

constexpr SpectrumSettings kAll = {.noise_peaks = 6,
                                   .peak_dropout = 0.2,
                                   .mass_error_ppm = 20,
                                   .intensity_variation = 0.3,
                                   .signal_suppression = 0.1,
                                   .high_noise_share = 0.3};

TEST_F(Corrupted, NothingIsDisturbedUnlessThatIsAsked) {
  EXPECT_EQ(rows_at(batches(options(kAll, false)), 0), clean());
  EXPECT_EQ(rows({}), clean());
  EXPECT_NE(rows(kAll), clean());
}

TEST_F(Corrupted, AFunctionOfSeedAndPosition) {
  EXPECT_EQ(rows(kAll), rows(kAll));
  // The next epoch has the same spectra in the same order, and other disturbances.
  const std::vector<Row> first = rows(kAll);
  const std::vector<Row> second = rows(kAll, 1);
  for (size_t i = 0; i < kSpectra; ++i) {
    EXPECT_NE(first[i].mz, second[i].mz);
    EXPECT_EQ(first[i].targets, second[i].targets);
  }
  MeasuredOptions other = options(kAll);
  other.seed = 4;
  EXPECT_NE(rows_at(batches(other), 0), first);
  // A batch of any size has the same spectra of the run.
  MeasuredOptions small = options(kAll);
  small.batch_size = kSpectra / 4;
  std::vector<Row> joined;
  for (uint64_t i = 0; i < 4; ++i)
    for (Row& row : rows_at(batches(small), i)) joined.push_back(std::move(row));
  EXPECT_EQ(joined, first);
}

TEST_F(Corrupted, ThePeptideStaysAndTheHighestPeakIsOne) {
  const std::vector<Row> before = clean();
  const std::vector<Row> after = rows(kAll);
  for (size_t i = 0; i < kSpectra; ++i) {
    EXPECT_EQ(after[i].targets, before[i].targets);
    EXPECT_EQ(after[i].precursor_charge, before[i].precursor_charge);
    EXPECT_TRUE(std::is_sorted(after[i].mz.begin(), after[i].mz.end()));
    EXPECT_EQ(std::ranges::max(after[i].intensity), 1);
  }
}

TEST_F(Corrupted, SomeStayAsTheyAre) {
  SpectrumSettings settings = kAll;
  settings.clean_data_ratio = 1;
  EXPECT_EQ(rows(settings), clean());
  settings.clean_data_ratio = 0.5;
  const std::vector<Row> before = clean();
  const std::vector<Row> mixed = rows(settings);
  const std::vector<Row> all = rows(kAll);
  int same = 0;
  for (size_t i = 0; i < kSpectra; ++i) {
    const bool is_clean = mixed[i] == before[i];
    EXPECT_TRUE(is_clean || mixed[i] == all[i]);
    same += is_clean ? 1 : 0;
  }
  EXPECT_NEAR(same, kSpectra / 2, 5 * std::sqrt(kSpectra) / 2);
}

TEST_F(Corrupted, PeaksAreLeftOut) {
  const std::vector<Row> before = clean();
  const std::vector<Row> after = rows({.peak_dropout = 0.25});
  size_t left = 0;
  for (size_t i = 0; i < kSpectra; ++i) {
    left += after[i].mz.size();
    EXPECT_TRUE(std::ranges::includes(before[i].mz, after[i].mz));
  }
  const double all = kSpectra * kPeaks;
  EXPECT_NEAR(static_cast<double>(left), 0.75 * all, 5 * std::sqrt(0.25 * 0.75 * all));
}

TEST_F(Corrupted, MassesAreWrongByPartsPerMillion) {
  constexpr double kPpm = 100;
  const std::vector<Row> before = clean();
  const std::vector<Row> after = rows({.mass_error_ppm = kPpm});
  double sum = 0;
  double precursors = 0;
  for (size_t i = 0; i < kSpectra; ++i) {
    ASSERT_THAT(after[i].mz, SizeIs(kPeaks));
    const auto square = [](float now, float then) {
      const double error = (static_cast<double>(now) / static_cast<double>(then) - 1) * 1e6;
      return error * error;
    };
    for (size_t j = 0; j < kPeaks; ++j) sum += square(after[i].mz[j], before[i].mz[j]);
    precursors += square(after[i].precursor_mass, before[i].precursor_mass);
    EXPECT_EQ(after[i].intensity, before[i].intensity);
  }
  EXPECT_NEAR(std::sqrt(sum / (kSpectra * kPeaks)), kPpm, 0.1 * kPpm);
  EXPECT_NEAR(std::sqrt(precursors / kSpectra), kPpm, 0.3 * kPpm);
}

TEST_F(Corrupted, NoiseComesOnTop) {
  const std::vector<Row> before = clean();
  const std::vector<Row> after = rows({.noise_peaks = 15});
  for (size_t i = 0; i < kSpectra; ++i) {
    ASSERT_THAT(after[i].mz, SizeIs(kPeaks + 15));
    EXPECT_TRUE(std::ranges::includes(after[i].mz, before[i].mz));
    EXPECT_GE(after[i].mz.front(), 50);
    EXPECT_LE(after[i].mz.back(), after[i].precursor_mass);
  }
  // Of more peaks than there is room for the most intense stay.
  for (const Row& row : rows({.noise_peaks = 30})) {
    EXPECT_THAT(row.mz, SizeIs(kSlots));
    EXPECT_THAT(row.intensity, Each(Gt(kWeak)));
  }
}

// Those of predictions are often weaker than anything that is drawn for synthetic spectra.
TEST_F(Corrupted, WeakPeaksAreNotRaised) {
  // All others fall to 0.05 at most, and then the highest becomes 1.
  for (const Row& row : rows({.signal_suppression = 1}))
    for (size_t j = 0; j < kPeaks; ++j) {
      if (j % 4 == 0)
        EXPECT_TRUE(row.intensity[j] >= kWeak / 0.05F && row.intensity[j] <= kWeak / 0.01F);
      else
        EXPECT_GE(row.intensity[j], 0.2F);
    }
  for (const Row& row : rows({.intensity_variation = 0.1}))
    for (size_t j = 0; j < kPeaks; j += 4) EXPECT_LT(row.intensity[j], 2 * kWeak);
}

TEST_F(Corrupted, StagesSwitchByStep) {
  MeasuredOptions staged = options({});
  staged.curriculum.push_back({.name = "noisy", .first_step = 2, .spectra = kAll});
  const MeasuredBatches source = batches(staged);
  EXPECT_EQ(rows_at(source, 1), clean());
  EXPECT_EQ(rows_at(source, 2), rows(kAll, 2));
}

TEST_F(Corrupted, TrimmedBatchesHaveRoomForNoise) {
  MeasuredOptions trimmed = options({.noise_peaks = 5});
  trimmed.trim = true;
  const MeasuredBatches source = batches(trimmed);
  ASSERT_THAT(source.shapes(), SizeIs(1));
  EXPECT_EQ(source.fields()[0].type.shape[1], 30);  // of 10, 20, 30, 40
  for (const Row& row : rows_at(source, 0)) EXPECT_THAT(row.mz, SizeIs(25));
  trimmed.corrupt = false;
  EXPECT_EQ(batches(trimmed).fields()[0].type.shape[1], 20);
}

}  // namespace
}  // namespace fullbore::peptide
