// Reads JSON that may hold anything: output of another build, a foreign database, a damaged file.
// Nothing here throws: a field that is missing, of another type or out of range is an error that
// names it.
//
//   const nlohmann::json value = parse_json(text);
//   const JsonFields fields(value);
//   row.source = TRY(fields.text("source"));
//   row.ratio = TRY(fields.number("ratio", {1e-3, 1e3}));
//   row.failure = TRY(fields.text("failure", ""));  // may be missing
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "base/json.h"
#include "base/result.h"

namespace collage {

// Prints on one line; bytes that are not UTF-8 are replaced.
std::string json_text(const nlohmann::json& value);

class JsonFields {
 public:
  struct Range {
    double low, high;  // both included; never NaN or infinite
  };

  // `object` must outlive it; a value that is no object has no fields.
  explicit JsonFields(const nlohmann::json& object) : object_(object) {}
  explicit JsonFields(nlohmann::json&&) = delete;

  bool has(const char* name) const;
  // `missing` is the value of a field that is absent.
  Result<std::string> text(const char* name, std::optional<std::string> missing = {}) const;
  Result<double> number(const char* name, Range range, std::optional<double> missing = {}) const;
  Result<int64_t> integer(const char* name, int64_t low, int64_t high,
                          std::optional<int64_t> missing = {}) const;
  Result<bool> flag(const char* name, std::optional<bool> missing = {}) const;
  // Returns an array or object, which belongs to the value that is read.
  Result<const nlohmann::json*> array(const char* name) const;
  Result<const nlohmann::json*> object(const char* name) const;

 private:
  const nlohmann::json* find(const char* name) const;
  const nlohmann::json& object_;
};

}  // namespace collage
