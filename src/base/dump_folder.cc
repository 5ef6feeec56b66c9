#include "base/dump_folder.h"

#include <cstdlib>

namespace collage {

Result<DumpFolder> DumpFolder::open(const std::string& request) {
  DumpFolder dumps;
  const char* environment = std::getenv("COLLAGE_DUMP");
  const std::string text = !request.empty() || environment == nullptr ? request : environment;
  if (text.empty()) return dumps;
  const size_t colon = text.find(':');
  dumps.folder_ = text.substr(0, colon);
  if (colon != std::string::npos) {
    Result<Regex> filter = Regex::parse(text.substr(colon + 1));
    if (!filter) return std::move(filter).status().with_context("COLLAGE_DUMP");
    dumps.filter_ = *filter;
  }
  std::error_code ec;
  std::filesystem::create_directories(dumps.folder_, ec);
  if (ec) return usage_error("COLLAGE_DUMP: {}: {}", dumps.folder_.string(), ec.message());
  return dumps;
}

}  // namespace collage
