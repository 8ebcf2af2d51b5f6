// Any bytes as a library of spectra (MSP): read as spectra that can be used, or refused with file and line.
#include "workloads/peptide/tests/fuzz/spectrum_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fullbore::testing::check_spectrum_file(data, size, fullbore::peptide::SpectrumFormat::msp);
  return 0;
}
