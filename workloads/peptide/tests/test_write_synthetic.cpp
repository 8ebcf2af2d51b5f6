#include <gtest/gtest.h>

#include <vector>

#include "workloads/peptide/ions.h"
#include "workloads/peptide/spectrum_batch.h"
#include "workloads/peptide/spectrum_cache.h"
#include "workloads/peptide/synthetic.h"
#include "workloads/peptide/tests/generated.h"
#include "workloads/peptide/tests/spectrum_files.h"
#include "workloads/peptide/write_synthetic.h"

namespace fullbore::peptide {
namespace {

/// Rows of batches as training draws them, in memory of the test.
class DrawnBatches {
 public:
  DrawnBatches(const SyntheticOptions& options, const Curriculum& curriculum)
      : options_(options), batches_(options, curriculum) {
    for (const BatchField& field : batches_.fields())
      memory_.emplace_back(static_cast<size_t>(field.type.bytes()) / 8 + 1);
    for (auto& field : memory_) buffers_.push_back(field.data());
  }
  SpectrumRow row(uint64_t index) {
    const uint64_t position = index / static_cast<uint64_t>(options_.batch_size);
    batches_.fill(position, buffers_);
    const int64_t peaks = batches_.shapes()[batches_.shape_at(position)][0].type.shape[1];
    return spectrum_row(buffers_, static_cast<int64_t>(index) % options_.batch_size, peaks,
                        options_.max_sequence);
  }

 private:
  SyntheticOptions options_;
  SyntheticBatches batches_;
  std::vector<std::vector<uint64_t>> memory_;
  std::vector<void*> buffers_;
};

TEST(WriteSynthetic, FilesHoldTheBitsOfTraining) {
  SyntheticOptions options;
  options.batch_size = 4;
  options.max_peaks = 40;
  options.seed = 5;
  Curriculum curriculum(2);
  curriculum[0].name = "clean";
  curriculum[1].name = "noisy";
  curriculum[1].first_step = 2;
  curriculum[1].spectra.noise_peaks = 3;
  curriculum[1].spectra.mass_error_ppm = 10;
  curriculum[1].spectra.max_length = 15;
  const SyntheticRange range{4, 10};
  const fullbore::testing::ScratchFolder folder;
  const ResidueAlphabet alphabet(options.masses, {"M+15.995"});
  ASSERT_TRUE(write_synthetic_mgf(folder / "a.mgf", options, curriculum, range).ok());
  ASSERT_TRUE(write_synthetic_cache(folder / "a", alphabet, options, curriculum, range).ok());
  const testing::FileContents contents = testing::read_file(folder / "a.mgf");
  EXPECT_EQ(contents.error, "");
  const SpectrumCache cache = SpectrumCache::open(folder / "a").take_or_throw();
  EXPECT_TRUE(cache.check_alphabet(alphabet).ok());
  ASSERT_EQ(contents.spectra.size(), 10U);
  ASSERT_EQ(cache.size(), 10U);
  DrawnBatches drawn(options, curriculum);
  for (uint64_t i = 0; i < 10; ++i) {
    const SpectrumRow row = drawn.row(4 + i);
    const Spectrum& written = contents.spectra[i];
    const CachedSpectrum cached = cache.get(i);
    EXPECT_EQ(written.scan, std::to_string(4 + i));
    EXPECT_EQ(written.title,
              "synthetic " + std::to_string(4 + i) + (4 + i < 8 ? " stage clean" : " stage noisy"));
    EXPECT_EQ(written.precursor_charge, *row.precursor_charge);
    EXPECT_EQ(cached.precursor_charge, *row.precursor_charge);
    EXPECT_EQ(cached.precursor_mass, double{*row.precursor_mass});
    EXPECT_EQ(static_cast<float>(mass_of_precursor(written.precursor_mz, written.precursor_charge,
                                                   alphabet.constants())),
              *row.precursor_mass);
    std::vector<int32_t> ids;
    for (const int32_t id : row.targets)
      if (id >= kFirstResidue) ids.push_back(id);
    EXPECT_EQ(written.sequence, alphabet.text(ids));
    EXPECT_EQ(std::vector<int32_t>(cached.ids.begin(), cached.ids.end()), ids);
    size_t peaks = 0;
    while (peaks < row.mz.size() && row.peak_mask[peaks] != 0) ++peaks;
    ASSERT_EQ(written.mz.size(), peaks);
    ASSERT_EQ(cached.peaks.size(), peaks);
    for (size_t p = 0; p < peaks; ++p) {
      EXPECT_EQ(static_cast<float>(written.mz[p]), row.mz[p]);
      EXPECT_EQ(written.intensity[p], row.intensity[p]);
      EXPECT_EQ(cached.peaks[p], pack_peak(row.mz[p], row.intensity[p]));
    }
  }
}

// A full disk ends it at once, not behind the spectra that would have come.
TEST(WriteSynthetic, DrawingEndsAtTheFirstFailure) {
  int taken = 0;
  const Status status =
      draw_synthetic(SyntheticOptions{}, Curriculum(1), {0, uint64_t{1} << 40},
                     [&](uint64_t, const PreparedSpectrum&) -> Status {
                       return ++taken < 70 ? success() : Failure{"the disk is full"};
                     });
  EXPECT_EQ(taken, 70);
  EXPECT_EQ(status.error(), "the disk is full");
}

}  // namespace
}  // namespace fullbore::peptide
