#include "tests/support/control_bytes_test.h"

namespace fullbore {
namespace {

TEST_F(ControlBytesTest, OfSpectraAndPeptides) {
  folder_.put(
      "peptide.yaml",
      "data: {min_length: 5, max_length: 6, validation_spectra: 8, min_peaks: 1}\n"
      "model: {name: peptide, hidden_dim: 48, num_encoder_layers: 1, num_decoder_layers: 1,\n"
      "  num_heads: 2, max_peaks: 14, max_seq_len: 9, num_supervision_steps: 1,\n"
      "  num_latent_steps: 1}\n"
      "train: {steps: 1, batch_size: 4, curriculum: none}\n");
  ASSERT_EQ(command({"train", "peptide.yaml", "run.dir=run"}).exit_code, 0);
  const auto block = [](const std::string& title, const std::string& sequence,
                        const std::string& charge) {
    return "BEGIN IONS\nTITLE=" + title + "\nPEPMASS=257.629\nCHARGE=" + charge +
           "\nSEQ=" + sequence + "\n98.06 1\n227.103 2\nEND IONS\n";
  };
  folder_.put("good.mgf", block("a", "PEPTA", "2+"));
  folder_.put("title.mgf", block(kPlanted, "PEPT" + kPlanted, "2+"));
  folder_.put("charge.mgf", block("a", "PEPTA", "2+" + kPlanted));
  folder_.put("between.mgf", kPlanted + "\n" + block("a", "PEPTA", "2+"));
  folder_.put("a.msp",
              "Name: PEPT" + kPlanted + "/2\nMW: 513\nNum peaks: " + kPlanted + "\n1 1\n\n");
  folder_.put("field.msp", "Name: PEPTA/2\nMW" + kPlanted + "\n\n");
  folder_.put("a.mzML", "<mzML><" + kPlanted + "/></mzML>");
  folder_.put("root.mzML", "<x\xc2\x9bx/>");
  folder_.put("id.mzML",
              "<mzML>\n<spectrum id=\"a\xc2\x9b\x7f\"><cvParam accession=\"MS:1000511\" "
              "value=\"2\"/></spectrum></mzML>");
  folder_.put("a.csv", "mz_array," + kPlanted + "\n1,2\n");
  for (const char* file : {"title.mgf", "charge.mgf", "between.mgf", "a.msp", "field.msp", "a.mzML",
                           "root.mzML", "id.mzML", "a.csv"})
    for (const char* policy : {"fail", "skip", "try-charges"}) {
      SCOPED_TRACE(policy);
      expect_escaped(
          {"predict", "run", file, "-o", "a.mztab", "--force", "--on-bad-spectrum", policy}, false);
      expect_escaped(
          {"peptide", "convert", file, "-o", "a.cache", "--force", "--on-bad-spectrum", policy},
          false);
      expect_escaped({"eval", "run", "--data", file, "--on-bad-spectrum", policy, "--json"}, false);
    }
  expect_escaped({"peptide", "convert", "charge.mgf", "-o", "b", "--on-bad-spectrum", "fail"});
  expect_escaped({"peptide", "ions", "PEP" + kPlanted});
  const std::string sequence = "spectrum_id,sequence,score\na,PEPT" + kPlanted + ",1\n";
  folder_.put("sequence.csv", sequence);
  folder_.put("header.csv", "spectrum" + kPlanted + ",seq\n1,2\n");
  folder_.put("score.csv", "spectrum_id,sequence,score\na,PEPTA," + kPlanted + "\n");
  for (const char* file : {"sequence.csv", "header.csv", "score.csv"}) {
    expect_escaped({"eval", file, "--data", "good.mgf"}, file != std::string("sequence.csv"));
    expect_escaped({"eval", "run", "--data", "good.mgf", "--against", file, "--json"}, false);
  }
}

TEST_F(ControlBytesTest, OfPeptideConfigurations) {
  folder_.put("peptide.yaml",
              "model: {name: peptide, hidden_dim: 48, num_heads: 2}\n"
              "data: {modifications: [\"" +
                  kPlantedJson + "\"]}\n");
  expect_escaped({"train", "peptide.yaml"});
  folder_.put("stages.yaml",
              "model: {name: peptide, hidden_dim: 48, num_heads: 2}\n"
              "train: {curriculum_stages: [\"steps=2 name=" +
                  kPlantedJson + "\"]}\n");
  expect_escaped(
      {"peptide", "generate", "stages.yaml", "-o", "a.mgf", "--count", "1", "--stage", "none"});
  expect_escaped(
      {"peptide", "generate", "stages.yaml", "-o", "a.mgf", "--count", "1", "--stage", "1"});
  expect_escaped({"predict", "gift" + kPlanted, "none" + kPlanted, "-o", "a.csv"});
}

}  // namespace
}  // namespace fullbore
