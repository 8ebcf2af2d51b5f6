#include "workloads/chess/piece_shapes.h"

namespace fullbore::chess {

const char* piece_outline(PieceKind kind) {
  switch (kind) {
    case PieceKind::kPawn:
      return "M50 22a13 13 0 0 1 9 22q9 8 5 12h-5q2 14 13 22v8H28v-8q11-8 13-22h-5q-4-4 5-12a13 13 "
             "0 0 1 9-22z";
    case PieceKind::kKnight:
      return "M34 86q-2-22 14-34q-8 2-14 8l-8 2l-6-8l14-22l2-16l10 8q30 2 32 36q1 14 0 26z";
    case PieceKind::kBishop:
      return "M50 10a6 6 0 0 1 4 10q16 14 14 28q-2 8-8 12l4 "
             "14h12v12H24v-12h12l4-14q-6-4-8-12q-2-14 14-28a6 6 0 0 1 4-10z";
    case PieceKind::kRook:
      return "M26 16h10v8h9v-8h10v8h9v-8h10v20l-9 8v24l9 8v10H26v-10l9-8v-24l-9-8z";
    case PieceKind::kQueen:
      return "M50 12a5 5 0 0 1 2 9l8 20l10-18a5 5 0 1 1 6 2l-2 18l8-10a5 5 0 1 1 4 4l-14 "
             "35v14H28v-14l-14-35a5 5 0 1 1 "
             "4-4l8 10l-2-18a5 5 0 1 1 6-2l10 18l8-20a5 5 0 0 1 2-9z";
    case PieceKind::kKing:
      return "M46 8h8v7h7v8h-7v9q22-8 28 6q4 16-12 30v18H30v-18q-16-14-12-30q6-14 28-6v-9h-7v-8h7z";
    case PieceKind::kNone: break;
  }
  return "";
}

const char* piece_details(PieceKind kind) {
  switch (kind) {
    case PieceKind::kKnight: return "M41 36l3 1M26 54l4-2";
    case PieceKind::kBishop: return "M50 30v18M42 38h16M38 74h24";
    case PieceKind::kRook: return "M35 44h30M35 68h30";
    case PieceKind::kQueen: return "M28 72q22-8 44 0";
    case PieceKind::kKing: return "M50 32v32M30 68q20-8 40 0M28 44q10-6 22 18q12-24 22-18";
    default: return "";
  }
}

}  // namespace fullbore::chess
