#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>

#include "fullbore/app/measured_job.h"
#include "fullbore/app/output.h"
#include "fullbore/base/text.h"
#include "fullbore/monitor/console.h"
#include "workloads/peptide/convert_spectra.h"
#include "workloads/peptide/peptide_commands.h"
#include "workloads/peptide/peptide_generate.h"
#include "workloads/peptide/peptide_report.h"
#include "workloads/peptide/spectrum_arguments.h"

namespace fullbore {
namespace {

using namespace peptide;  // NOLINT: the words of these commands

/// What residues and modifications there are.
struct AlphabetArguments {
  std::string masses = "reference";
  std::vector<std::string> modifications;

  ResidueAlphabet alphabet() const {
    return ResidueAlphabet(*parse_mass_table(masses), expand_modifications(modifications));
  }
};

void add_alphabet(Command command, AlphabetArguments& arguments) {
  command
      .add_option("--masses", arguments.masses,
                  "reference: of five decimals; full: from atomic masses")
      .one_of({"reference", "full"})
      .shows_default();
  command
      .add_option("--modifications", arguments.modifications,
                  "Such as M+15.995 or +42.011 (N-terminus); massivekb: those of MassIVE-KB; none")
      .one_value_each_time()
      .shows_default();
}

// --- ions ----------------------------------------------------------------------------------------

struct IonsArguments : AlphabetArguments {
  std::string sequence;
  int charge = 2;
  int fragment_charges = 0;
  std::string types = "b,y";
  bool neutral_losses = false;
  bool json = false;
};

std::vector<IonType> ion_types_of(const std::string& text) {
  std::vector<IonType> types;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string name = text.substr(begin, end - begin);
    const std::optional<IonType> type = parse_ion_type(name);
    if (!type)
      throw UsageError(
          fmt::format("ions: --types {}: '{}' is no type of ion; there are b, y, a", text, name));
    if (std::find(types.begin(), types.end(), *type) == types.end()) types.push_back(*type);
    begin = end + 1;
  }
  return types;
}

ExitCode run_ions(const IonsArguments& arguments) {
  IonTable table{arguments.alphabet(), {}, arguments.charge, {}};
  Result<std::vector<int32_t>> ids = table.alphabet.ids(arguments.sequence);
  if (!ids.ok()) throw UsageError(fmt::format("ions: {}", ids.error()));
  table.ids = std::move(ids).value();
  table.options.types = ion_types_of(arguments.types);
  table.options.neutral_losses = arguments.neutral_losses;
  table.options.max_charge = arguments.fragment_charges > 0 ? arguments.fragment_charges
                                                            : std::max(1, arguments.charge - 1);
  print_output("{}", arguments.json ? ions_json(table) : ions_report(table));
  return ExitCode::kOk;
}

void add_ions(Command peptide) {
  Command command = peptide.add_subcommand("ions", "Print the theoretical fragments of a peptide");
  auto arguments = std::make_shared<IonsArguments>();
  arguments->modifications = {"massivekb"};
  command
      .add_option("SEQUENCE", arguments->sequence,
                  "PEPTIDE, with modifications as in AM+15.995K, C[Carbamidomethyl]K, [Acetyl]-AK")
      .required();
  command.add_option("--charge", arguments->charge, "Of the precursor")
      .between(1, 100)
      .shows_default();
  command
      .add_option("--fragment-charges", arguments->fragment_charges,
                  "Fragments with charges 1 to this; 0: below the precursor's")
      .between(0, 100);
  command.add_option("--types", arguments->types, "Of b, y, a").shows_default();
  command.add_flag("--neutral-losses", arguments->neutral_losses,
                   "Also without water (S, T, E, D at the cleavage) or ammonia (R, K, N, Q)");
  command.add_flag("--json", arguments->json, "Print JSON");
  add_alphabet(command, *arguments);
  command.footer(R"(
These are the masses that synthetic spectra and the spectrum-matching loss are made of.

Example:
  fullbore peptide ions PEPTIDE --charge 2
  fullbore peptide ions "C[Carbamidomethyl]DEFGHIK" --charge 3 --types b,y,a --masses full --json)");
  command.runs([arguments] { return run_ions(*arguments); });
}

// --- convert -------------------------------------------------------------------------------------

struct ConvertArguments : AlphabetArguments {
  std::vector<std::string> files;
  std::string output;
  std::string format = "auto";
  SpectrumArguments reading;
  PreparationOptions preparation;
  bool force = false;
  bool json = false;
};

std::optional<SpectrumFormat> format_of(const std::string& name) {
  for (const SpectrumFormat format :
       {SpectrumFormat::mgf, SpectrumFormat::msp, SpectrumFormat::mzml, SpectrumFormat::table})
    if (spectrum_format_name(format) == name) return format;
  return {};
}

ExitCode run_convert(const ConvertArguments& arguments) {
  const auto start = std::chrono::steady_clock::now();
  check_output_file(arguments.output);
  refuse_existing(arguments.output, arguments.force);
  Console console;
  ConvertOptions options;
  options.reading = reading_options(arguments.reading, Config());
  options.reading.format = format_of(arguments.format);
  options.left_out_path = arguments.reading.left_out.empty() ? arguments.output + ".left_out.tsv"
                                                             : arguments.reading.left_out;
  refuse_existing(options.left_out_path, arguments.force);
  options.preparation = arguments.preparation;
  options.progress = [&](uint64_t spectra) {
    if (console.live_due())
      console.live(fmt::format("converting {} spectra", count_text(static_cast<double>(spectra))));
  };
  Conversion conversion{arguments.output, options.left_out_path, {}, arguments.preparation};
  conversion.counts =
      convert_spectra(arguments.files, arguments.output, arguments.alphabet(), options)
          .take_or_throw();
  console.clear();
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
  conversion.seconds = passed.count();
  conversion.cache_bytes = std::filesystem::file_size(arguments.output);
  print_output("{}", arguments.json ? conversion_json(conversion) : conversion_report(conversion));
  return ExitCode::kOk;
}

void add_preparation(Command command, PreparationOptions& options) {
  constexpr int64_t kMost = 1000000;
  command.add_option("--max-peaks", options.max_peaks, "Keep so many of the most intense peaks")
      .between(int64_t{1}, kMost)
      .shows_default();
  command.add_option("--min-peaks", options.min_peaks, "Drop spectra of fewer peaks")
      .between(int64_t{0}, kMost)
      .shows_default();
  command.add_option("--min-length", options.min_length, "Drop peptides of fewer residues")
      .between(1, 1000)
      .shows_default();
  command.add_option("--max-length", options.max_length, "Drop peptides of more residues")
      .between(1, 1000)
      .shows_default();
  command.add_option("--max-charge", options.max_charge, "Drop precursors of a higher charge")
      .between(1, 100)
      .shows_default();
  constexpr double kLargest = 1e6;  // of masses in Da and of deviations in ppm
  command.add_option("--min-mz", options.min_mz, "Leave out peaks below")
      .between(0.0, kLargest)
      .shows_default();
  command.add_option("--max-mz", options.max_mz, "Leave out peaks above").between(0.0, kLargest);
  command
      .add_option("--min-intensity", options.min_intensity,
                  "Leave out peaks below this share of the most intense")
      .between(0.0, 1.0)
      .shows_default();
  command
      .add_option("--remove-precursor", options.remove_precursor,
                  "Leave out peaks within so many Da of the precursor's m/z; 0: none")
      .between(0.0, kLargest)
      .shows_default();
  command
      .add_option("--precursor-ppm", options.precursor_ppm,
                  "Drop spectra whose sequence has another mass than the precursor; 0: none")
      .between(0.0, kLargest)
      .shows_default();
  command
      .add_option("--isotopes", options.isotopes,
                  "The precursor may be heavier by so many neutrons")
      .between(0, 10)
      .shows_default();
  command
      .add_option("--fixed-modifications", options.fixed_modifications,
                  "Every such residue has it though sequences do not say so: C+57.021")
      .one_value_each_time();
}

void add_convert(Command peptide) {
  Command command =
      peptide.add_subcommand("convert", "Write annotated spectra to a file that training reads");
  auto arguments = std::make_shared<ConvertArguments>();
  command
      .add_option("FILE", arguments->files,
                  "MGF, MSP, mzML, or a table with mz_array and intensity_array; gzipped or not")
      .required();
  command.add_option("-o,--output", arguments->output, "The cache of spectra").required();
  command.add_option("--format", arguments->format, "Of all files; auto: as contents and name say")
      .one_of({"auto", "MGF", "MSP", "mzML", "table"})
      .shows_default();
  arguments->reading.on_bad = "skip";
  add_spectrum_arguments(command, arguments->reading);
  add_alphabet(command, *arguments);
  add_preparation(command, arguments->preparation);
  command.add_flag("--force", arguments->force, "Replace a file that is there");
  command.add_flag("--json", arguments->json, "Print JSON");
  command.footer(R"(
What cannot be used is dropped, counted by reason, and listed in OUTPUT.left_out.tsv. A malformed spectrum is
one of these, or, with --on-bad-spectrum fail, the end of the conversion with file, line and field (exit
code 3), which leaves no cache. --on-bad-spectrum try-charges finds a charge that the file does not state by
the mass of the sequence. A cache is of one alphabet: the modifications of the configuration that trains on
it must be the same.

Example:
  fullbore peptide convert spectra.mgf -o spectra.cache --modifications massivekb
  fullbore peptide convert runs/*.msp.gz -o library.cache --modifications massivekb --max-length 23)");
  command.runs([arguments] { return run_convert(*arguments); });
}

}  // namespace

void add_peptide_command(Command root) {
  Command peptide =
      root.add_subcommand("peptide", "Fragments of peptides, and files of their spectra");
  peptide.require_subcommand();
  add_ions(peptide);
  add_convert(peptide);
  add_peptide_generate(peptide);
  peptide.footer(R"(
Example:
  fullbore peptide ions PEPTIDE --charge 2
  fullbore peptide convert spectra.mgf -o spectra.cache --modifications massivekb
  fullbore peptide generate configs/peptide.yaml -o synthetic.mgf --count 1000)");
}

}  // namespace fullbore
