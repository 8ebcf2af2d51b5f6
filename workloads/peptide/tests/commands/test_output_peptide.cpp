#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/output_rows.h"
#include "tests/support/paths.h"

namespace fullbore {
namespace {

const OutputRows& rows() {
  static const OutputRows all = {
      {"predict",
       {{"predict", "peptides", "spectra.mgf", "-o", "found.mztab"}, false, {"found.mztab"}}},
      {"peptide ions", {{"peptide", "ions", "PEPTIDE"}}},
      {"peptide convert",
       {{"peptide", "convert", "spectra.mgf", "--min-length", "5", "-o", "out.cache"},
        true,
        {"out.cache"}}},
      {"peptide generate",
       {{"peptide", "generate", testing::source_folder() + "/configs/peptide-cpu.yaml", "--count",
         "2", "-o", "made.mgf"},
        true,
        {"made.mgf"}}},
  };
  return all;
}

constexpr const char* kPeptideConfig =
    "data: {min_length: 5, max_length: 6, validation_spectra: 16, min_peaks: 5}\n"
    "model: {name: peptide, hidden_dim: 48, num_encoder_layers: 1, num_decoder_layers: 1,\n"
    "  num_heads: 2, max_peaks: 14, max_seq_len: 9, num_supervision_steps: 2,\n"
    "  num_latent_steps: 2}\n"
    "train: {steps: 1, batch_size: 8, curriculum: none}\n";
constexpr const char* kSpectra =
    "BEGIN IONS\nTITLE=first\nPEPMASS=257.6290\nCHARGE=2+\nSEQ=PEPTA\n"
    "98.06 1\n227.103 2\n324.155 3\n425.203 2\n90.055 4\n191.103 5\n288.155 6\n417.198 7\n"
    "88.1 1\n99.2 1\n110.3 1\n120.1 1\n130.1 1\n140.1 1\n150.1 1\n160.1 1\n170.1 1\n180.1 1\n"
    "201.1 1\n202.1 1\n203.1 1\n204.1 1\nEND IONS\n";

class PeptideOutput : public OutputRowsTest {
 protected:
  PeptideOutput() : OutputRowsTest(rows()) {
    folder_.put("peptide.yaml", kPeptideConfig);
    folder_.put("spectra.mgf", kSpectra);
  }
  void prepare() override {
    ASSERT_EQ(command({"train", "peptide.yaml", "run.dir=peptides"}).exit_code, 0);
  }
};

TEST(PeptideOutputRows, KnowEveryCommand) { expect_rows_of_workloads(rows(), {"peptide"}); }

TEST_F(PeptideOutput, OfAFullDeviceIsExitCode3AndNamed) { expect_full_device_named(); }

TEST_F(PeptideOutput, OfAClosedPipeEndsTheCommandWithoutAWord) {
  expect_closed_pipe_ends_without_a_word();
}

TEST_F(PeptideOutput, OfAClosedDescriptorIsExitCode3AndNamed) { expect_closed_descriptor_named(); }

TEST_F(PeptideOutput, OfAFullDiskIsExitCode3AndNamesTheFile) { expect_full_disk_named(); }

}  // namespace
}  // namespace fullbore
