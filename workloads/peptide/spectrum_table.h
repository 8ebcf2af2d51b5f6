#pragma once
#include <memory>

#include "fullbore/data/text_lines.h"
#include "workloads/peptide/spectrum_reader.h"

namespace fullbore::peptide {

/// Rows of a table whose first line names the columns: precursor_mz, precursor_charge (or charge),
/// mz_array, intensity_array; sequence, modified_sequence, scan, title and retention_seconds where they
/// are there. Columns are separated by tabs, commas or semicolons, whichever the first line has; a cell in
/// quotes may have all of them, and line ends. Arrays are numbers with or without brackets and commas.
/// Failure: no such columns, with the nearest name.
Result<std::unique_ptr<SpectrumReader>> make_table_reader(TextLines lines,
                                                          const SpectrumReadOptions& options);

}  // namespace fullbore::peptide
