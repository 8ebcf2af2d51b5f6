#pragma once
#include <string>
#include <string_view>

#include "workloads/chess/position.h"

namespace fullbore::chess {

enum class SanError : uint8_t {
  kNone,
  kMalformed,  ///< no move in standard algebraic notation
  kIllegal,    ///< no legal move is meant
  kAmbiguous,  ///< several are
};

/// A legal move of `position` in standard algebraic notation ("Nf3", "exd5", "O-O", "e8=Q+"), as files have it: checks
/// and marks (+ # ! ?) are not asked for, castling may have zeros, a promotion no "=" or a bracket, a move more of its
/// origin than it needs, up to "Ng1-f3" and "e2e4". Any bytes may be given; never throws. `move` is set with kNone.
/// Source: Edwards, Portable Game Notation Specification, section 8.2.3.
SanError parse_san(const Position& position, std::string_view text, Move& move) noexcept;

/// The shortest standard notation of a legal move, with "+" or "#": "Nbd7", "exd6", "O-O-O#", "e8=Q".
std::string san_text(const Position& position, Move move);

/// "malformed", "not legal", "ambiguous".
const char* san_error_name(SanError error);

}  // namespace fullbore::chess
