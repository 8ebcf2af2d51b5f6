#pragma once
#include <string>

namespace fullbore {

/// How open_device() is asked for it.
inline constexpr const char* kAutomatic = "auto";

/// The device that "auto" stands for.
struct AutomaticDevice {
  std::string name;  ///< "cuda", "cpu"
  std::string why;   ///< what the card is, or why there is none that can be used
};

/// A card of NVIDIA's if one can be used, else the processor. Looks anew each time.
AutomaticDevice automatic_device();

/// What "auto" stands for; another name as it is.
std::string resolved_device(const std::string& name);

}  // namespace fullbore
