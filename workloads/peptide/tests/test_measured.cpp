#include "workloads/peptide/measured.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <set>

#include "fullbore/base/error.h"
#include "fullbore/data/loader.h"
#include "tests/support/scratch_folder.h"

namespace fullbore::peptide {
namespace {

using fullbore::testing::ScratchFolder;

constexpr int kPeptides = 200;
constexpr int kSpectra = 3;  // of each

// A cache of three spectra each of 200 peptides; the precursor's mass tells which, the first peak which of
// the three.
std::shared_ptr<const SpectrumCache> make_cache(const ScratchFolder& folder, uint64_t peaks = 3) {
  const ResidueAlphabet alphabet;
  auto writer = SpectrumCacheWriter::create(folder / "a.spectra", alphabet).take_or_throw();
  for (int copy = 0; copy < kSpectra; ++copy) {
    for (int peptide = 0; peptide < kPeptides; ++peptide) {
      PreparedSpectrum spectrum;
      spectrum.precursor_mass = 1000 + peptide;
      spectrum.precursor_charge = 2 + copy;
      for (uint64_t i = 0; i < peaks; ++i)
        spectrum.peaks.push_back(
            pack_peak(static_cast<float>(100 * (i + 1) + static_cast<uint64_t>(copy)),
                      1 / static_cast<float>(i + 1)));
      for (int digit = 0; digit < 7; ++digit)
        spectrum.ids.push_back(kFirstResidue + (digit == 0   ? peptide % 8
                                                : digit == 1 ? peptide / 8 % 8
                                                : digit == 2 ? peptide / 64
                                                             : 8));
      EXPECT_TRUE(writer.append(spectrum).ok());
    }
  }
  EXPECT_TRUE(writer.commit("{}").ok());
  return std::make_shared<SpectrumCache>(SpectrumCache::open(folder / "a.spectra").take_or_throw());
}

std::vector<uint64_t> all_of(const SpectrumCache& cache) {
  std::vector<uint64_t> indices(cache.size());
  for (uint64_t i = 0; i < cache.size(); ++i) indices[i] = i;
  return indices;
}

using Bytes = std::vector<std::vector<uint8_t>>;

Bytes batch_of(const BatchSource& source, uint64_t position) {
  Bytes bytes;
  std::vector<void*> buffers;
  for (const BatchField& field : source.fields())
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

MeasuredOptions options_of(int64_t batch_size) {
  MeasuredOptions options;
  options.batch_size = batch_size;
  options.max_peaks = 5;
  options.max_sequence = 10;
  return options;
}

TEST(MeasuredBatches, HaveTheFieldsOfSyntheticOnes) {
  const ScratchFolder folder;
  const auto cache = make_cache(folder);
  MeasuredOptions options = options_of(4);
  options.shuffle = false;
  options.curriculum = default_curriculum();
  const MeasuredBatches source(cache, all_of(*cache), options);
  const Bytes batch = batch_of(source, 1);
  EXPECT_EQ(source.fields()[0].name, "mz");
  EXPECT_EQ(values<float>(batch[0]),
            (std::vector<float>{100, 200, 300, 0, 0, 100, 200, 300, 0, 0,
                                100, 200, 300, 0, 0, 100, 200, 300, 0, 0}));
  EXPECT_EQ(values<float>(batch[1])[1], 0.5F);
  EXPECT_EQ(batch[2][2], 1);
  EXPECT_EQ(batch[2][3], 0);
  EXPECT_EQ(values<float>(batch[3]), (std::vector<float>{1004, 1005, 1006, 1007}));
  EXPECT_EQ(values<int32_t>(batch[4]), (std::vector<int32_t>{2, 2, 2, 2}));
  const auto targets = values<int32_t>(batch[5]);
  EXPECT_EQ(targets[0], kStart);
  EXPECT_EQ(targets[1], kFirstResidue + 4);
  EXPECT_EQ(targets[8], kEnd);
  EXPECT_EQ(targets[9], kPad);
  EXPECT_EQ(batch[6][8], 1);
  EXPECT_EQ(batch[6][9], 0);
  EXPECT_EQ(values<float>(batch[7])[0], 0);
  EXPECT_EQ(values<float>(batch_of(source, 8000)[7])[0], 0.1F);
}

TEST(MeasuredBatches, TheLastBatchInOrderIsFilledWithNothing) {
  const ScratchFolder folder;
  const auto cache = make_cache(folder);
  MeasuredOptions options = options_of(64);
  options.shuffle = false;
  const MeasuredBatches source(cache, all_of(*cache), options);
  ASSERT_EQ(source.batches(), 10U);  // 600 = 9 * 64 + 24
  const Bytes last = batch_of(source, 9);
  for (size_t row = 0; row < 64; ++row) {
    const bool is_empty = row >= 24;
    EXPECT_EQ(std::count(last[2].begin() + static_cast<long>(row * 5),
                         last[2].begin() + static_cast<long>(row * 5 + 5), 1),
              is_empty ? 0 : 3);
    EXPECT_EQ(last[6][row * 10], is_empty ? 0 : 1);
    EXPECT_EQ(values<float>(last[3])[row] == 0, is_empty);
    EXPECT_GE(values<int32_t>(last[4])[row], 1);
  }
  EXPECT_EQ(batch_of(source, 10), batch_of(source, 0));
}

TEST(MeasuredBatches, EachEpochHasEverySpectrumOnceInAnotherOrder) {
  const ScratchFolder folder;
  const auto cache = make_cache(folder);
  const MeasuredBatches source(cache, all_of(*cache), options_of(50));
  std::vector<std::pair<float, int32_t>> epochs[2];
  for (uint64_t position = 0; position < 24; ++position) {
    const Bytes batch = batch_of(source, position);
    const auto masses = values<float>(batch[3]);
    const auto charges = values<int32_t>(batch[4]);
    for (size_t row = 0; row < 50; ++row)
      epochs[position / 12].emplace_back(masses[row], charges[row]);
  }
  for (const auto& epoch : epochs) {
    const std::set<std::pair<float, int32_t>> distinct(epoch.begin(), epoch.end());
    EXPECT_EQ(distinct.size(), 600U);
  }
  EXPECT_NE(epochs[0], epochs[1]);
  MeasuredOptions other = options_of(50);
  other.seed = 1;
  EXPECT_NE(batch_of(MeasuredBatches(cache, all_of(*cache), other), 0), batch_of(source, 0));
}

TEST(MeasuredBatches, AnyNumberOfWorkersMakesTheSameBytes) {
  const ScratchFolder folder;
  const auto cache = make_cache(folder);
  const auto source = std::make_shared<MeasuredBatches>(cache, all_of(*cache), options_of(7));
  Loader one(source, {.workers = 1, .prefetch = 2});
  Loader many(source, {.workers = 16, .prefetch = 20});
  for (uint64_t position = 0; position < 200; ++position) {
    const Bytes expected = batch_of(*source, position);
    const auto a = one.next();
    const auto b = many.next();
    for (size_t field = 0; field < expected.size(); ++field) {
      EXPECT_EQ(std::memcmp(a[field], expected[field].data(), expected[field].size()), 0);
      EXPECT_EQ(std::memcmp(b[field], expected[field].data(), expected[field].size()), 0);
    }
  }
}

TEST(MeasuredBatches, TooManyPeaksKeepTheMostIntense) {
  const ScratchFolder folder;
  const auto cache = make_cache(folder, 9);
  MeasuredOptions options = options_of(1);
  options.shuffle = false;
  const MeasuredBatches source(cache, all_of(*cache), options);
  EXPECT_EQ(values<float>(batch_of(source, 0)[0]), (std::vector<float>{100, 200, 300, 400, 500}));
}

// Spectra of 1 to 5 peaks: those of a batch have about as many, and nothing else about them changes.
TEST(MeasuredBatches, TrimmedOnesAreAsWideAsTheirSpectraNeed) {
  const ScratchFolder folder;
  const ResidueAlphabet alphabet;
  auto writer = SpectrumCacheWriter::create(folder / "b.spectra", alphabet).take_or_throw();
  for (int i = 0; i < 320; ++i) {
    PreparedSpectrum spectrum;
    spectrum.precursor_mass = 1000 + i;
    spectrum.precursor_charge = 2;
    for (int peak = 0; peak <= i % 5; ++peak)
      spectrum.peaks.push_back(pack_peak(static_cast<float>(100 * (peak + 1)), 1));
    spectrum.ids.assign(7, kFirstResidue + i % 20);
    ASSERT_TRUE(writer.append(spectrum).ok());
  }
  ASSERT_TRUE(writer.commit("{}").ok());
  const auto cache =
      std::make_shared<SpectrumCache>(SpectrumCache::open(folder / "b.spectra").take_or_throw());
  MeasuredOptions options = options_of(8);
  options.trim = true;
  const auto source = std::make_shared<MeasuredBatches>(cache, all_of(*cache), options);
  ASSERT_EQ(source->shapes().size(), 4U);
  EXPECT_EQ(source->fields()[0].type.shape[1], 5);
  std::set<float> met;
  size_t slots = 0;
  Loader loader(source, {.workers = 3, .prefetch = 5});
  for (uint64_t position = 0; position < 40; ++position) {  // an epoch
    const auto batch = loader.next();
    const auto peaks =
        static_cast<size_t>(source->shapes()[source->shape_at(position)][0].type.shape[1]);
    const auto* const mask = static_cast<const uint8_t*>(batch[2]);
    size_t widest = 0;
    for (size_t row = 0; row < 8; ++row) {
      const float mass = static_cast<const float*>(batch[3])[row];
      const auto count =
          static_cast<size_t>(std::count(mask + row * peaks, mask + (row + 1) * peaks, 1));
      EXPECT_EQ(count, (static_cast<size_t>(mass) - 1000) % 5 + 1);
      widest = std::max(widest, count);
      met.insert(mass);
    }
    EXPECT_LE(peaks, std::max<size_t>(widest, 2)) << "position " << position;
    slots += peaks;
  }
  EXPECT_EQ(met.size(), 320U);
  EXPECT_LT(slots, 40U * 4) << "of 5 without trimming";
}

TEST(SplitByPeptide, PutsNoPeptideOnBothSides) {
  const ScratchFolder folder;
  const auto cache = make_cache(folder);
  const PeptideSplit split = split_by_peptide(*cache, 0.2, 3);
  EXPECT_EQ(split.training.size() + split.validation.size(), cache->size());
  std::set<uint64_t> training;
  for (const uint64_t index : split.training) training.insert(cache->peptide_hash(index));
  std::set<uint64_t> validation;
  for (const uint64_t index : split.validation) {
    validation.insert(cache->peptide_hash(index));
    EXPECT_FALSE(training.contains(cache->peptide_hash(index)));
  }
  EXPECT_EQ(training.size() + validation.size(), 200U);
  EXPECT_NEAR(static_cast<double>(validation.size()), 40, 5 * std::sqrt(200 * 0.2 * 0.8));
  EXPECT_EQ(split.validation.size(), 3 * validation.size());
  EXPECT_NE(split_by_peptide(*cache, 0.2, 4).validation, split.validation);
  EXPECT_TRUE(split_by_peptide(*cache, 0, 4).validation.empty());
  EXPECT_THROW(split_by_peptide(*cache, 1, 4), UsageError);
}

TEST(MeasuredBatches, BadOptionsAreRefused) {
  const ScratchFolder folder;
  const auto cache = make_cache(folder);
  EXPECT_THROW(MeasuredBatches(cache, {}, options_of(4)), UsageError);
  EXPECT_THROW(MeasuredBatches(cache, {0}, options_of(0)), UsageError);
  MeasuredOptions options = options_of(4);
  options.curriculum.clear();
  EXPECT_THROW(MeasuredBatches(cache, {0}, options), UsageError);
}

}  // namespace
}  // namespace fullbore::peptide
