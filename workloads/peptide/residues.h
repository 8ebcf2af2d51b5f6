#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fullbore/base/result.h"

namespace fullbore::peptide {

/// Ids of what is no residue; its mass is 0. Residues follow from kFirstResidue on.
inline constexpr int32_t kPad = 0;
inline constexpr int32_t kStart = 1;
inline constexpr int32_t kEnd = 2;
inline constexpr int32_t kUnknown = 3;
inline constexpr int32_t kFirstResidue = 4;
/// The residues without modifications, ids 4 to 23 in this order.
inline constexpr std::string_view kResidueLetters = "ARNDCEQGHILKMFPSTWYV";
inline constexpr int32_t kResidues = static_cast<int32_t>(kResidueLetters.size());

/// Monoisotopic masses: of five decimals, or made from atomic masses. They differ by at most 5e-6 Da.
enum class MassTable : uint8_t { reference, full };
std::optional<MassTable> parse_mass_table(std::string_view name);

/// Masses besides the residues', in Da.
struct MassConstants {
  double water = 0;
  double ammonia = 0;
  double carbon_monoxide = 0;
  double proton = 0;
};
const MassConstants& mass_constants(MassTable table);

/// What a fragment loses beside its cleavage: water if the residue there is one of STED, ammonia if it is
/// one of RKNQ.
enum class NeutralLoss : uint8_t { none, water, ammonia };

/// A peptide as written: its ids, or what is wrong with it.
struct PeptideText {
  enum class Problem : uint8_t { none, malformed, unknown_residue, unknown_modification };
  std::vector<int32_t> ids;
  Problem problem = Problem::none;
  std::string message;  ///< one clause that names the place
};

/// The tokens of peptides: 24 ids, and one more for each modification that a data set has. A modified
/// residue ("M+15.995") is a token of its own; so is a modification of the N-terminus ("+42.011"), which
/// stands before the first residue.
class ResidueAlphabet {
 public:
  /// `modifications` are "M+15.995", a residue and what is added to its mass, or "+43.006-17.027" for the
  /// N-terminus. Where the difference is that of a modification of Unimod to within 0.001 Da, its exact
  /// mass is taken. UsageError: malformed, no residue, twice.
  explicit ResidueAlphabet(MassTable table = MassTable::reference,
                           const std::vector<std::string>& modifications = {});

  MassTable mass_table() const { return table_; }
  const MassConstants& constants() const { return mass_constants(table_); }
  int32_t size() const { return static_cast<int32_t>(names_.size()); }
  std::span<const double> masses() const { return masses_; }  ///< [size()], in Da
  double mass(int32_t id) const { return masses_[static_cast<size_t>(id)]; }
  const std::string& name(int32_t id) const { return names_[static_cast<size_t>(id)]; }
  /// The letter without its modification; 0 where there is none.
  char letter(int32_t id) const { return letters_[static_cast<size_t>(id)]; }
  bool is_residue(int32_t id) const { return letter(id) != 0; }
  bool is_terminal(int32_t id) const { return id >= kFirstResidue && letter(id) == 0; }
  NeutralLoss neutral_loss(int32_t id) const { return losses_[static_cast<size_t>(id)]; }

  /// Ids of "PEPTIDE", "AM+15.995K", "C[Carbamidomethyl]GK", "M(+15.99)K", "[UNIMOD:1]-AK", "n[42.011]AK",
  /// "+42.011AK": a modification is looked up by its mass (to 0.01 Da) or its name in Unimod.
  PeptideText read(std::string_view text) const;
  /// The same; a Failure where the text has a problem, or no residue.
  Result<std::vector<int32_t>> ids(std::string_view text) const;
  /// Names one after the other; ends at kEnd, and leaves out kPad and kStart. kUnknown is "X".
  std::string text(std::span<const int32_t> ids) const;

  /// The same ids, and behind them those of `modifications` that are not among them.
  ResidueAlphabet extended(const std::vector<std::string>& modifications) const;

  bool operator==(const ResidueAlphabet& other) const {
    return table_ == other.table_ && names_ == other.names_;
  }

 private:
  void add_modification(const std::string& modification, bool may_be_there = false);
  /// The id of a letter (0: the N-terminus) whose mass is changed by `difference`; -1: there is none.
  int32_t modified(char letter, double difference) const;

  MassTable table_;
  std::vector<std::string> names_;
  std::vector<double> masses_;
  std::vector<char> letters_;
  std::vector<NeutralLoss> losses_;
  std::array<double, kResidues> plain_masses_{};
  friend class PeptideReader;
};

/// Those that MassIVE-KB is annotated with (Wang et al. 2018, Cell Systems 7:412), of which Casanovo's
/// alphabet is made: C+57.021, M+15.995, N+0.984, Q+0.984; N-terminal +42.011, +43.006, -17.027,
/// +43.006-17.027.
const std::vector<std::string>& massive_kb_modifications();
/// The same list with "massivekb" replaced by those eight, and without "none".
std::vector<std::string> expand_modifications(const std::vector<std::string>& names);

/// The id of an unmodified residue, or -1.
int32_t residue_id(char letter);

}  // namespace fullbore::peptide
