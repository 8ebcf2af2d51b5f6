#pragma once
#include <string>
#include <string_view>

#include "fullbore/base/result.h"

namespace fullbore {

/// Where a server is: "http://host:port/prefix".
struct HttpAddress {
  std::string host;
  std::string port = "80";
  std::string prefix = {};  ///< of paths, without a slash at its end

  /// Failure says what is wrong: another scheme (https needs a proxy of one's own), a name and password, no host.
  static Result<HttpAddress> parse(std::string_view url);
};

struct HttpAnswer {
  int status = 0;  ///< 200, 404, ...
  std::string body;
};

/// One request over a connection of its own (HTTP/1.1, no encryption). `body`: JSON; "" for GET. Failure: the server is not
/// there, or has not answered in full after `seconds`, or has answered something else than HTTP or more than 1 MiB.
/// Redirections are not followed.
Result<HttpAnswer> ask_http(const HttpAddress& address, std::string_view method,
                            std::string_view path, std::string_view body, double seconds);

/// Text within a URL: all but letters, digits and "-_.~" as %XX.
std::string url_text(std::string_view text);

}  // namespace fullbore
