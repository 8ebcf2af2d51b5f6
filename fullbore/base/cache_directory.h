#pragma once
#include <string>

namespace fullbore {

/// Folder for what can be made again: object code, token caches, measured peaks. Not created here.
/// $FULLBORE_CACHE if set, else $XDG_CACHE_HOME/fullbore, else $HOME/.cache/fullbore, else a folder
/// of this user's own under /tmp.
std::string cache_directory();

}  // namespace fullbore
