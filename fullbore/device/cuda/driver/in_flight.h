#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace fullbore::cuda {

/// The launches of a recorded program that a card was told to make and that nobody has waited for since. The driver tells of
/// a kernel's fault at some later call, and not which kernel it was: errors of such calls name what was in flight
/// (in_flight_text). Nothing is written by the card, and no text is made before there is a fault.
class InFlight {
 public:
  /// A kernel's launch in the launch list.
  struct Kernel {
    int launch = 0;
    const std::string* node = nullptr;  ///< op, type and source line; outlives the program
  };
  InFlight(int card, std::vector<Kernel> kernels);
  ~InFlight();
  InFlight(const InFlight&) = delete;
  InFlight& operator=(const InFlight&) = delete;

  void begin_run();
  /// Launches [first, last] of the launch list were told.
  void tell(int first, int last);
  /// All that the card was told in its main stream has been made.
  static void end(int card);

 private:
  friend std::string in_flight_text();
  std::string text() const;

  int card_;
  std::vector<Kernel> kernels_;
  int64_t run_ = 0;        ///< the last one that was begun, from 1 on
  int64_t first_run_ = 0;  ///< that is in flight
  int first_ = 0, last_ = -1;
};

/// "Run 3 of a program of 812 kernels was under way on card 0: one of 40 launches, from launch 7, matmul f32[8, 8]
/// (model.cpp:12), to launch 46, ...", a sentence for each program in flight, and how to have the launch named; "" if there
/// is none.
std::string in_flight_text();

}  // namespace fullbore::cuda
