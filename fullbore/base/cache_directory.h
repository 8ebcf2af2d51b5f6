#pragma once
#include <string>
#include <string_view>

namespace fullbore {

/// Folder for what can be made again: object code, token caches, measured peaks. Not created here.
/// $FULLBORE_CACHE if set, else $XDG_CACHE_HOME/fullbore, else $HOME/.cache/fullbore, else a folder
/// of this user's own under /tmp.
std::string cache_directory();

/// Folder in it for what compilations leave to later ones: "kernels", "plans". "" if
/// $FULLBORE_COMPILE_CACHE is "off" (engine.cache=false): nothing is kept then, nor looked for.
std::string compile_cache_directory(std::string_view what);

}  // namespace fullbore
