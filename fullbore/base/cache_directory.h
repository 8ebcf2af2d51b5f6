#pragma once
#include <string>
#include <string_view>

namespace fullbore {

/// Folder for what can be made again: object code, token caches, measured peaks.
/// $FULLBORE_CACHE if set, else $XDG_CACHE_HOME/fullbore, else $HOME/.cache/fullbore. Made where it is
/// missing. It belongs to the effective user, nobody else can write to it and it is no link
/// (private_folder.h): looked at again by every call. Where that does not hold, or nothing of all that is
/// set: a folder of this process alone, removed when it ends, and one warning on stderr.
/// DataError where there is no place for that either.
std::string cache_directory();

/// The folder `what` in it, mode 0700, likewise: "tokens", "spectra".
std::string cache_directory(std::string_view what);

/// The same for what compilations leave to later ones, which is run as it is read: "kernels", "plans".
/// Without a key (cache_key.h) it is in the folder of this process alone. "": nothing is to be kept or
/// looked for; $FULLBORE_COMPILE_CACHE is "off" (engine.cache=false), or there is no place.
std::string compile_cache_directory(std::string_view what);

/// Why cache_directory() is not the folder that the environment names; "" if it is.
std::string cache_directory_problem();

}  // namespace fullbore
