#include "workloads/peptide/residues.h"

#include <fmt/format.h>

#include <cctype>
#include <cmath>

#include "fullbore/base/error.h"
#include "workloads/peptide/modifications.h"

namespace fullbore::peptide {
namespace {

constexpr double kReferenceMasses[kResidues] = {
    71.03711, 156.10111, 114.04293, 115.02694, 103.00919, 129.04259, 128.05858,
    57.02146, 137.05891, 113.08406, 113.08406, 128.09496, 131.04049, 147.06841,
    97.05276, 87.03203,  101.04768, 186.07931, 163.06333, 99.06841};
constexpr MassConstants kReferenceConstants{18.01056, 17.02655, 27.99491, 1.00727};

// Atomic masses (NIST, Atomic Weights and Isotopic Compositions, version 4.1) times composition.
constexpr double atoms(int c, int h, int n, int o, int s = 0) {
  return 12.0 * c + 1.00782503223 * h + 14.00307400443 * n + 15.99491461957 * o + 31.9720711744 * s;
}
constexpr double kFullMasses[kResidues] = {
    atoms(3, 5, 1, 1),    atoms(6, 12, 4, 1),  atoms(4, 6, 2, 2),  atoms(4, 5, 1, 3),
    atoms(3, 5, 1, 1, 1), atoms(5, 7, 1, 3),   atoms(5, 8, 2, 2),  atoms(2, 3, 1, 1),
    atoms(6, 7, 3, 1),    atoms(6, 11, 1, 1),  atoms(6, 11, 1, 1), atoms(6, 12, 2, 1),
    atoms(5, 9, 1, 1, 1), atoms(9, 9, 1, 1),   atoms(5, 7, 1, 1),  atoms(3, 5, 1, 2),
    atoms(4, 7, 1, 2),    atoms(11, 10, 2, 1), atoms(9, 9, 1, 2),  atoms(5, 9, 1, 1)};
constexpr MassConstants kFullConstants{atoms(0, 2, 0, 1), atoms(0, 3, 1, 0), atoms(1, 0, 0, 1),
                                       1.007276452};

// Data sets write a modification with two decimals or more.
constexpr double kModificationTolerance = 0.01;

double round_to_five_decimals(double mass) { return std::round(mass * 1e5) / 1e5; }

NeutralLoss loss_of(char letter) {
  if (letter == 0) return NeutralLoss::none;
  if (std::string_view("STED").find(letter) != std::string_view::npos) return NeutralLoss::water;
  if (std::string_view("RKNQ").find(letter) != std::string_view::npos) return NeutralLoss::ammonia;
  return NeutralLoss::none;
}

}  // namespace

std::optional<MassTable> parse_mass_table(std::string_view name) {
  if (name == "reference") return MassTable::reference;
  if (name == "full") return MassTable::full;
  return {};
}

const MassConstants& mass_constants(MassTable table) {
  return table == MassTable::reference ? kReferenceConstants : kFullConstants;
}

const std::vector<std::string>& massive_kb_modifications() {
  static const std::vector<std::string> modifications{"C+57.021", "M+15.995",      "N+0.984",
                                                      "Q+0.984",  "+42.011",       "+43.006",
                                                      "-17.027",  "+43.006-17.027"};
  return modifications;
}

std::vector<std::string> expand_modifications(const std::vector<std::string>& names) {
  std::vector<std::string> all;
  for (const std::string& name : names) {
    if (name == "massivekb")
      all.insert(all.end(), massive_kb_modifications().begin(), massive_kb_modifications().end());
    else if (name != "none")
      all.push_back(name);
  }
  return all;
}

ResidueAlphabet ResidueAlphabet::extended(const std::vector<std::string>& modifications) const {
  ResidueAlphabet result = *this;
  for (const std::string& modification : modifications)
    result.add_modification(modification, /*may_be_there=*/true);
  return result;
}

int32_t residue_id(char letter) {
  const size_t place = kResidueLetters.find(letter);
  return place == std::string_view::npos ? -1 : kFirstResidue + static_cast<int32_t>(place);
}

ResidueAlphabet::ResidueAlphabet(MassTable table, const std::vector<std::string>& modifications)
    : table_(table),
      names_{"<pad>", "<start>", "<end>", "X"},
      masses_(kFirstResidue, 0.0),
      letters_(kFirstResidue, '\0'),
      losses_(kFirstResidue, NeutralLoss::none) {
  for (size_t i = 0; i < kResidueLetters.size(); ++i) {
    plain_masses_[i] = table == MassTable::reference ? kReferenceMasses[i] : kFullMasses[i];
    names_.emplace_back(1, kResidueLetters[i]);
    masses_.push_back(plain_masses_[i]);
    letters_.push_back(kResidueLetters[i]);
    losses_.push_back(loss_of(kResidueLetters[i]));
  }
  for (const std::string& modification : modifications) add_modification(modification);
}

void ResidueAlphabet::add_modification(const std::string& modification, bool may_be_there) {
  std::string_view difference = modification;
  char letter = 0;
  if (!difference.empty() && std::isalpha(static_cast<unsigned char>(difference[0])) != 0) {
    letter = difference[0];
    difference.remove_prefix(1);
    if (residue_id(letter) < 0)
      throw UsageError(fmt::format("modification '{}': '{}' is no residue; the residues are {}",
                                   modification, letter, kResidueLetters));
  }
  const std::optional<double> mass = parse_mass_difference(difference);
  if (!mass)
    throw UsageError(fmt::format(
        "modification '{}': expected a residue and what is added to its mass, such as M+15.995, or "
        "+42.011 for the N-terminus",
        modification));
  const int32_t same = modified(letter, *mass);
  if (same >= 0 && may_be_there) return;
  if (same >= 0)
    throw UsageError(
        fmt::format("modification '{}' is the same as '{}'", modification, name(same)));
  double exact = exact_modification_mass(*mass);
  if (table_ == MassTable::reference) exact = round_to_five_decimals(exact);
  const double base = letter == 0 ? 0 : plain_masses_[kResidueLetters.find(letter)];
  if (letter != 0 && base + exact <= 0)
    throw UsageError(fmt::format("modification '{}' leaves the residue no mass", modification));
  names_.push_back(modification);
  masses_.push_back(base + exact);
  letters_.push_back(letter);
  losses_.push_back(loss_of(letter));
}

int32_t ResidueAlphabet::modified(char letter, double difference) const {
  const double base = letter == 0 ? 0 : plain_masses_[kResidueLetters.find(letter)];
  for (int32_t id = kFirstResidue + kResidues; id < size(); ++id)
    if (this->letter(id) == letter &&
        std::abs(mass(id) - base - difference) < kModificationTolerance)
      return id;
  return -1;
}

/// One pass over a text.
class PeptideReader {
 public:
  PeptideReader(const ResidueAlphabet& alphabet, std::string_view text)
      : alphabet_(alphabet), text_(text) {}

  PeptideText read() {
    if (read_terminus())
      while (place_ < text_.size() && read_residue()) {
      }
    return std::move(result_);
  }

 private:
  using Problem = PeptideText::Problem;

  bool refuse(Problem problem, size_t place, std::string message) {
    result_ = {{}, problem, fmt::format("{} at character {} of '{}'", message, place + 1, text_)};
    return false;
  }

  /// Appends the mass of a modification from `place_`, and says that there was one; false also after
  /// refusing it.
  bool read_modification(double& difference) {
    const size_t begin = place_;
    if (place_ == text_.size()) return false;
    const char first = text_[place_];
    if (first == '+' || first == '-') {
      while (
          ++place_ < text_.size() &&
          (std::isdigit(static_cast<unsigned char>(text_[place_])) != 0 || text_[place_] == '.')) {
      }
      return add(text_.substr(begin, place_ - begin), begin, difference);
    }
    if (first != '[' && first != '(') return false;
    const size_t end = text_.find(first == '[' ? ']' : ')', place_);
    if (end == std::string_view::npos)
      return refuse(Problem::malformed, begin, fmt::format("'{}' is not closed", first));
    place_ = end + 1;
    return add(text_.substr(begin + 1, end - begin - 1), begin, difference);
  }

  bool add(std::string_view name, size_t begin, double& difference) {
    std::optional<double> mass = parse_mass_difference(name, /*needs_sign=*/false);
    if (!mass) mass = modification_mass(name);
    if (!mass)
      return refuse(Problem::unknown_modification, begin,
                    fmt::format("'{}' is no modification that is known", name));
    difference += *mass;
    return true;
  }

  bool refused() const { return result_.problem != Problem::none; }

  /// "[Acetyl]-", "n[42.011]", "+42.011", or nothing.
  bool read_terminus() {
    if (text_.substr(0, 2) == "n[") place_ = 1;
    double difference = 0;
    bool any = false;
    while (read_modification(difference)) {
      any = true;
      if (place_ < text_.size() && text_[place_] == '-' && text_[place_ - 1] == ']') {
        ++place_;
        break;
      }
    }
    if (refused()) return false;
    if (!any) return true;
    const int32_t id = alphabet_.modified('\0', difference);
    if (id < 0)
      return refuse(
          Problem::unknown_modification, 0,
          fmt::format("the alphabet has no N-terminal modification of {:+.3f} Da", difference));
    result_.ids.push_back(id);
    return true;
  }

  bool read_residue() {
    const size_t begin = place_;
    const char letter = text_[place_++];
    const int32_t plain = residue_id(letter);
    if (plain < 0) {
      const bool is_letter = std::isalpha(static_cast<unsigned char>(letter)) != 0;
      return refuse(
          is_letter ? Problem::unknown_residue : Problem::malformed, begin,
          fmt::format("'{}' is no residue",
                      std::isprint(static_cast<unsigned char>(letter)) != 0
                          ? std::string(1, letter)
                          : fmt::format("\\x{:02x}", static_cast<unsigned char>(letter))));
    }
    double difference = 0;
    bool any = false;
    while (read_modification(difference)) any = true;
    if (refused()) return false;
    if (!any) {
      result_.ids.push_back(plain);
      return true;
    }
    if (const int32_t id = alphabet_.modified(letter, difference); id >= 0) {
      result_.ids.push_back(id);
      return true;
    }
    // Q[Gln->pyro-Glu] at the N-terminus is the token of the terminus.
    const int32_t terminal = alphabet_.modified('\0', difference);
    if (terminal >= 0 && result_.ids.empty()) {
      result_.ids = {terminal, plain};
      return true;
    }
    return refuse(Problem::unknown_modification, begin,
                  fmt::format("the alphabet has no {} with {:+.3f} Da", letter, difference));
  }

  const ResidueAlphabet& alphabet_;
  std::string_view text_;
  size_t place_ = 0;
  PeptideText result_;
};

PeptideText ResidueAlphabet::read(std::string_view text) const {
  return PeptideReader(*this, text).read();
}

Result<std::vector<int32_t>> ResidueAlphabet::ids(std::string_view text) const {
  PeptideText read_text = read(text);
  if (read_text.problem != PeptideText::Problem::none) return Failure{std::move(read_text.message)};
  for (const int32_t id : read_text.ids)
    if (is_residue(id)) return std::move(read_text.ids);
  return Failure{fmt::format("'{}' has no residue", text)};
}

std::string ResidueAlphabet::text(std::span<const int32_t> ids) const {
  std::string text;
  for (const int32_t id : ids) {
    if (id == kEnd) break;
    if (id != kPad && id != kStart) text += name(id);
  }
  return text;
}

}  // namespace fullbore::peptide
