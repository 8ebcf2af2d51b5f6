#pragma once
#include <string>

#include "fullbore/base/result.h"

namespace fullbore {

/// Closes a file descriptor on every way out.
class Descriptor {
 public:
  explicit Descriptor(int number = -1) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept;
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor();
  int get() const { return number_; }
  bool ok() const { return number_ >= 0; }

 private:
  int number_;
};

/// Who else may look into a folder of this user's.
enum class Readers {
  anyone,  ///< the mode stays as it is
  nobody,  ///< the mode becomes 0700
};

/// Opens a folder in which nobody but the effective user can have put anything: it belongs to that user,
/// its mode lets nobody else write, and its name is no symbolic link. Made with mode 0700 where it is
/// missing, and so are the folders above. Failure says which of these does not hold.
Result<Descriptor> open_private_folder(const std::string& path, Readers readers = Readers::nobody);

/// Opens a regular file of such a folder for reading: the effective user's, and no link. Without
/// `readable` nobody else may read it. Failure says why not; `errno` is ENOENT where there is none.
Result<Descriptor> open_private_file(const Descriptor& folder, const std::string& name,
                                     Readers readers = Readers::anyone);

/// All that is left to read, up to `most` bytes; more is a Failure.
Result<std::string> read_all(const Descriptor& file, size_t most);
/// Writes all of it. Failure: the system's reason.
Status write_all(const Descriptor& file, std::string_view bytes);

}  // namespace fullbore
