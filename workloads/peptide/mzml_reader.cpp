#include "workloads/peptide/mzml_reader.h"

#include <expat.h>
#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <vector>

#include "fullbore/data/text_lines.h"
#include "workloads/peptide/mzml_spectrum.h"

namespace fullbore::peptide {
namespace {

constexpr size_t kPieceBytes = size_t{1} << 16;
constexpr size_t kMostDepth = 100;
// Of a tag with its attributes, or a comment: expat keeps it whole, and looks through all of it again at each piece.
constexpr size_t kMostToken = size_t{1} << 20;
constexpr size_t kMostGroups = 1000;
constexpr size_t kMostGroupBytes = size_t{1} << 24;  // of all groups

// What a cvParam says something about: the innermost of these elements.
enum class Context : uint8_t { other, group, spectrum, scan, isolation, ion, array, binary };

std::string_view attribute(const char** attributes, std::string_view name) {
  for (; *attributes != nullptr; attributes += 2)
    if (name == attributes[0]) return attributes[1];
  return {};
}

int64_t length_of(std::string_view text) {
  const std::optional<double> length = parse_number(text);
  return length ? static_cast<int64_t>(std::clamp(*length, -1.0, 1e15)) : -1;
}

class MzmlReader : public SpectrumReader {
 public:
  MzmlReader(InputBytes bytes, const SpectrumReadOptions& options);
  ~MzmlReader() override { XML_ParserFree(parser_); }
  MzmlReader(const MzmlReader&) = delete;
  MzmlReader& operator=(const MzmlReader&) = delete;
  SpectrumFileTerms terms() const override;

 protected:
  Result<bool> read(Spectrum& spectrum) override;

 private:
  void read_piece();
  void begin(std::string_view name, const char** attributes);
  Context begin_in_spectrum(std::string_view name, const char** attributes, Context context);
  void end();
  void text(std::string_view piece);
  void apply(const MzmlTerm& term);
  void apply_group(std::string_view id);
  void fail(std::string_view message);
  void bad(std::string_view what) {
    spectrum_.spectrum().add_problem(XML_GetCurrentLineNumber(parser_), what);
  }
  void bad_if(const MzmlSpectrum::Problem& problem) {
    if (problem) bad(*problem);
  }

  InputBytes bytes_;
  XML_Parser parser_;
  std::vector<char> piece_;
  uint64_t fed_ = 0;
  bool ended_ = false;
  std::string error_;
  std::deque<Spectrum> ready_;

  std::vector<Context> contexts_;  // of the open elements
  std::map<std::string, std::vector<MzmlTerm>, std::less<>> groups_;
  std::vector<MzmlTerm>* group_ = nullptr;
  size_t group_bytes_ = 0;
  MzmlSpectrum spectrum_;
  bool in_spectrum_ = false;
  uint64_t spectra_ = 0;   // of all levels
  std::string id_format_;  // as a parameter of mzTab
};

MzmlReader::MzmlReader(InputBytes bytes, const SpectrumReadOptions& options)
    : SpectrumReader(bytes.path(), options),
      bytes_(std::move(bytes)),
      parser_(XML_ParserCreate(nullptr)),
      piece_(kPieceBytes) {
  FB_CHECK(parser_ != nullptr, "expat has no memory");
  XML_SetUserData(parser_, this);
  XML_SetElementHandler(
      parser_,
      [](void* self, const char* name, const char** attributes) {
        static_cast<MzmlReader*>(self)->begin(name, attributes);
      },
      [](void* self, const char*) { static_cast<MzmlReader*>(self)->end(); });
  XML_SetCharacterDataHandler(parser_, [](void* self, const char* text, int size) {
    static_cast<MzmlReader*>(self)->text({text, static_cast<size_t>(size)});
  });
  // A handful of them can stand for any number of bytes, and no mzML has one.
  XML_SetEntityDeclHandler(parser_, [](void* self, const char* name, int, const char*, int,
                                       const char*, const char*, const char*, const char*) {
    static_cast<MzmlReader*>(self)->fail(fmt::format("declares the entity {}", quote_text(name)));
  });
}

SpectrumFileTerms MzmlReader::terms() const {
  return {"[MS, MS:1000584, mzML format, ]",
          id_format_.empty() ? "[MS, MS:1000824, no nativeID format, ]" : id_format_};
}

Result<bool> MzmlReader::read(Spectrum& spectrum) {
  while (ready_.empty() && error_.empty() && !ended_) read_piece();
  if (!ready_.empty()) {
    spectrum = std::move(ready_.front());
    ready_.pop_front();
    return true;
  }
  if (!error_.empty()) return Failure{error_};
  return false;
}

void MzmlReader::read_piece() {
  const Result<size_t> count = bytes_.read(piece_.data(), piece_.size());
  if (!count.ok()) {
    error_ = count.error();
    return;
  }
  ended_ = count.value() == 0;
  fed_ += count.value();
  const XML_Status status =
      XML_Parse(parser_, piece_.data(), static_cast<int>(count.value()), ended_ ? 1 : 0);
  if (!error_.empty()) return;
  if (status == XML_STATUS_ERROR) return fail(XML_ErrorString(XML_GetErrorCode(parser_)));
  const auto seen = static_cast<uint64_t>(std::max<XML_Index>(0, XML_GetCurrentByteIndex(parser_)));
  if (fed_ > seen + kMostToken)
    fail(fmt::format("a tag or comment is longer than {} bytes", kMostToken));
}

void MzmlReader::fail(std::string_view message) {
  if (!error_.empty()) return;
  error_ = fmt::format(
      "{}:{}: {}{}", bytes_.path(), XML_GetCurrentLineNumber(parser_),
      in_spectrum_ ? fmt::format("spectrum {}: ", quote_text(spectrum_.spectrum().native_id)) : "",
      message);
  XML_StopParser(parser_, XML_FALSE);
}

void MzmlReader::begin(std::string_view name, const char** attributes) {
  if (!error_.empty()) return;
  if (contexts_.empty() && name != "mzML" && name != "indexedmzML")
    return fail(fmt::format("the root element is <{}>, expected <mzML>", name));
  if (contexts_.size() == kMostDepth) return fail("elements are nested too deep");
  Context context = contexts_.empty() ? Context::other : contexts_.back();
  if (name == "cvParam") {
    apply({std::string(attribute(attributes, "accession")),
           std::string(attribute(attributes, "name")), std::string(attribute(attributes, "value")),
           std::string(attribute(attributes, "unitAccession"))});
  } else if (name == "referenceableParamGroupRef") {
    apply_group(attribute(attributes, "ref"));
  } else if (in_spectrum_) {
    context = begin_in_spectrum(name, attributes, context);
  } else if (name == "referenceableParamGroup") {
    if (groups_.size() == kMostGroups) return fail("too many groups of parameters");
    group_ = &groups_[std::string(attribute(attributes, "id"))];
    context = Context::group;
  } else if (name == "spectrum") {
    spectrum_.begin(attribute(attributes, "id"), spectra_++,
                    length_of(attribute(attributes, "defaultArrayLength")),
                    XML_GetCurrentLineNumber(parser_));
    in_spectrum_ = true;
    context = Context::spectrum;
  }
  contexts_.push_back(context);
}

Context MzmlReader::begin_in_spectrum(std::string_view name, const char** attributes,
                                      Context context) {
  if (name == "spectrum") fail("a spectrum within a spectrum");
  if (name == "scan") return Context::scan;
  if (name == "isolationWindow") return Context::isolation;
  if (name == "product" || name == "activation") return Context::other;
  if (name == "selectedIon") {
    spectrum_.begin_ion();
    return Context::ion;
  }
  if (name == "binaryDataArray") {
    if (context == Context::array) bad("an array within an array");
    spectrum_.begin_array(length_of(attribute(attributes, "arrayLength")));
    return Context::array;
  }
  if (name == "binary" && context == Context::array) return Context::binary;
  return context;
}

void MzmlReader::end() {
  if (!error_.empty() || contexts_.empty()) return;
  const Context context = contexts_.back();
  contexts_.pop_back();
  // An element that only passed its parent's context on ends nothing.
  if (!contexts_.empty() && contexts_.back() == context) return;
  if (context == Context::group) group_ = nullptr;
  if (context == Context::array) bad_if(spectrum_.end_array());
  if (context != Context::spectrum) return;
  bad_if(spectrum_.end());
  if (spectrum_.is_wanted())
    ready_.push_back(std::move(spectrum_.spectrum()));
  else
    ++counts_.others;
  in_spectrum_ = false;
}

void MzmlReader::text(std::string_view piece) {
  if (error_.empty() && !contexts_.empty() && contexts_.back() == Context::binary)
    bad_if(spectrum_.add_text(piece));
}

void MzmlReader::apply_group(std::string_view id) {
  const auto group = groups_.find(id);
  if (group == groups_.end()) {
    const std::string what = fmt::format("no group of parameters has the id {}", quote_text(id));
    return in_spectrum_ ? bad(what) : fail(what);
  }
  if (contexts_.empty() || contexts_.back() == Context::group) return;
  for (const MzmlTerm& term : group->second) apply(term);
}

void MzmlReader::apply(const MzmlTerm& term) {
  if (contexts_.empty() || !error_.empty()) return;
  switch (contexts_.back()) {
    case Context::group:
      group_bytes_ += sizeof(term) + term.accession.size() + term.name.size() + term.value.size() +
                      term.unit.size();
      if (group_bytes_ > kMostGroupBytes) return fail("too many parameters in groups");
      return group_->push_back(term);
    case Context::spectrum: return bad_if(spectrum_.describe_spectrum(term));
    case Context::scan: return bad_if(spectrum_.describe_scan(term));
    case Context::isolation: return bad_if(spectrum_.describe_isolation(term));
    case Context::ion: return bad_if(spectrum_.describe_ion(term));
    case Context::array: return spectrum_.describe_array(term);
    case Context::other:
      // Among the source files: how the instrument's own file names its spectra.
      if (id_format_.empty() && term.name.ends_with("nativeID format") &&
          term.accession.starts_with("MS:") && term.accession.size() <= 12 &&
          term.name.size() <= 80)
        id_format_ = fmt::format("[MS, {}, {}, ]", term.accession, term.name);
      return;
    case Context::binary: return;
  }
}

}  // namespace

std::unique_ptr<SpectrumReader> make_mzml_reader(InputBytes bytes,
                                                 const SpectrumReadOptions& options) {
  return std::make_unique<MzmlReader>(std::move(bytes), options);
}

}  // namespace fullbore::peptide
