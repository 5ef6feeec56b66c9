#include "measure/build_identity.h"

#include "backend/backend.h"
#include "backend/fingerprint.h"
#include "base/json_fields.h"
#include "collage/version.h"

namespace collage {

using nlohmann::json;

json build_identity() {
  json backends = json::object();
  for (Backend* backend : all_backends()) backends[backend->name()] = backend->traits().version;
  return {{"version", COLLAGE_VERSION}, {"judges", judges_fingerprint()}, {"backends", backends}};
}

std::string identity_difference(const json& other) {
  if (!other.is_object()) return "it does not say which build it is";
  const json own = build_identity();
  const auto shown = [](const JsonFields& fields, const char* name) {
    Result<std::string> text = fields.text(name);
    return text ? *text : std::string("unknown");
  };
  for (const auto& [name, words] :
       {std::pair{"version", "version"}, {"judges", "measuring and judging as build"}}) {
    const std::string theirs = shown(JsonFields(other), name), ours = shown(JsonFields(own), name);
    if (theirs != ours) return fmt::format("{} {}, not {}", words, theirs, ours);
  }
  const Result<const json*> backends = JsonFields(other).object("backends");
  if (!backends) return "it does not say which backends it has";
  const JsonFields fields(**backends);
  for (const auto& [name, version] : own["backends"].items()) {
    if (!fields.has(name.c_str())) return fmt::format("it lacks the backend {}", name);
    const std::string theirs = shown(fields, name.c_str()), ours = version.get<std::string>();
    if (theirs != ours)
      return fmt::format("its backend {} is of version {}, not {}", name, theirs, ours);
  }
  return "";
}

}  // namespace collage
