#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "fullbore/base/file_system.h"
#include "fullbore/base/result.h"

namespace fullbore {

/// What read_file takes unless told otherwise: more than any file of settings, records or names has.
inline constexpr uint64_t kMostFileBytes = uint64_t{64} << 20;

/// The whole file. Failure names the path and the system's reason, what is there in place of a regular file (a device
/// or a pipe may have no end), or the length of a file of more than `most_bytes`, of which nothing is read.
Result<std::string> read_file(const std::string& path, FileSystem& files = system_files(),
                              uint64_t most_bytes = kMostFileBytes);

/// Writes beside the file, syncs, then renames over it: a reader, or a start after a crash, sees
/// the old contents or the new, never a part. The folder must exist.
Status write_file_atomically(const std::string& path, std::string_view contents,
                             FileSystem& files = system_files());

/// Removes a folder with all that is in it; links are not followed, be they in it or the folder itself.
Status remove_folder_with_contents(const std::string& path, FileSystem& files = system_files());

/// Makes the folder and those above it that are missing, and syncs every name it made: after a power
/// cut the folder is still there.
Status make_folders(const std::string& path, FileSystem& files = system_files());

/// Why a file of a run's folder cannot be opened for writing, after a call that said so by errno: a link that
/// somebody has planted there is named as one.
Failure cannot_write(const std::string& path, FileSystem& files = system_files());

/// As make_folders(), but the folder itself is no link: what is written and removed in it would be elsewhere.
Status make_own_folder(const std::string& path, FileSystem& files = system_files());

/// "No space left on device": the text of the current errno.
std::string system_reason();

}  // namespace fullbore
