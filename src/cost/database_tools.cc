#include "cost/database_tools.h"

#include <algorithm>
#include <chrono>
#include <istream>
#include <ostream>
#include <sstream>

#include "backend/backend.h"
#include "cost/cost_keys.h"
#include "cost/row_values.h"

namespace collage {

using nlohmann::json;

namespace {

constexpr int kFormat = 1;
constexpr size_t kMaxRowLine = size_t{64} << 20;
constexpr const char* kNewest = "9999-12-31 23:59:59";  // a date

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// What is wrong with a row; ok when it is what this program writes.
Status check_row(const CostRow& row) {
  auto bad = [&](const std::string& what) {
    return error(ErrorCode::kVerification, "{} {}: {}", row.kind, row.key.substr(0, 12), what);
  };
  if (Status status = check_row_value(row); !status.ok()) return bad(status.message());
  if (row.key.size() != 64 || row.key.find_first_not_of("0123456789abcdef") != std::string::npos)
    return bad("its key is no SHA-256");
  if (!row.context.empty() && row.key != CostDatabase::key_of(row.text, row.context))
    return bad("its key is not that of its text");
  return {};
}

// A date as SQLite writes it: "2026-01-31 12:00:00".
bool is_date(const std::string& text) {
  constexpr std::string_view kShape = "dddd-dd-dd dd:dd:dd";
  return text.size() == kShape.size() &&
         std::equal(text.begin(), text.end(), kShape.begin(), [](char c, char shape) {
           return shape == 'd' ? c >= '0' && c <= '9' : c == shape;
         });
}

Result<CostRow> row_from_json(const json& line) {
  CostRow row;
  for (auto [name, field] : {std::pair{"kind", &row.kind},
                             {"key", &row.key},
                             {"text", &row.text},
                             {"context", &row.context},
                             {"written", &row.written}}) {
    if (!line.is_object() || !line.contains(name) || !line[name].is_string())
      return bad_model("no text '{}'", name);
    *field = line[name].get<std::string>();
  }
  if (!line.contains("value") || !line["value"].is_object()) return bad_model("no object 'value'");
  row.value = json_text(line["value"]);
  if (!is_date(row.written)) return bad_model("'{}' is no date", row.written);
  if (Status status = check_row(row); !status.ok()) return bad_model("{}", status.message());
  return row;
}

// Takes the signature out of what it is of.
Status check_signature(json& line, const PublicKey& owner) {
  const Result<std::string> signature = JsonFields(line).text("signature");
  if (!signature) return bad_model("it is not signed");
  line.erase("signature");
  if (!owner.has_signed(json_text(line), *signature))
    return bad_model("it was changed, or another key signed it");
  return {};
}

bool is_refused(const CostRow& row) {
  if (row.kind == "quarantine") return true;
  const json value = parse_json(row.value);
  for (const char* kind : {"cover", "check", "in_situ", "budgets", "machine", "schedules", "plan"})
    if (row.kind == kind) return false;
  if (!is_of_function(row, value)) {
    Result<ConversionRow> conversion = conversion_row_from_json(value);
    return !conversion || conversion->backend.empty();
  }
  Result<TargetCosts> costs = target_costs_from_json(value);
  return !costs ||
         std::none_of(costs->variants.begin(), costs->variants.end(), [](const MeasuredVariant& v) {
           return !std::holds_alternative<Invalid>(v.cost);
         });
}

}  // namespace

bool is_stale(const CostRow& row) {
  // Functions and quarantine: target, version, machine. Others: machine, then a line a backend.
  if (row.context.empty()) return row.kind == "cover";  // of a set of covers, as once
  std::vector<std::string> lines = lines_of(row.context);
  if (row.kind == "machine") return false;
  if (!is_judged_here(lines)) return true;
  if (row.kind == "quarantine" || is_of_function(row, parse_json(row.value))) {
    const Backend* backend = find_backend(lines[0].substr(0, lines[0].find(' ')));
    return backend == nullptr || backend->traits().version != lines[1];
  }
  for (Backend* backend : all_backends())
    if (std::find(lines.begin(), lines.end(), backend->name() + " " + backend->traits().version) ==
        lines.end())
      return true;
  return false;
}

Result<DatabaseInfo> describe_database(CostDatabase& database) {
  DatabaseInfo info;
  info.bytes = TRY(database.used_bytes());
  TRY(database.for_each([&](const CostRow& row) -> Status {
    ++info.rows[row.kind];
    info.stale += is_stale(row);
    info.foreign += row.foreign;
    if (info.oldest.empty() || row.written < info.oldest) info.oldest = row.written;
    info.newest = std::max(info.newest, row.written);
    if (row.kind != "function") return {};
    if (Result<TargetCosts> costs = target_costs_from_json(parse_json(row.value))) {
      ++info.targets[costs->target];
      info.variants += static_cast<int64_t>(costs->variants.size());
      for (const MeasuredVariant& variant : costs->variants)
        info.invalid += std::holds_alternative<Invalid>(variant.cost);
    }
    return {};
  }));
  return info;
}

Status export_costs(CostDatabase& database, std::ostream& out, const SigningKey* key) {
  out << json{{"collage_costs", kFormat}}.dump() << "\n";
  TRY(database.for_each([&](const CostRow& row) -> Status {
    json line = {{"kind", row.kind},
                 {"key", row.key},
                 {"text", row.text},
                 {"context", row.context},
                 {"value", parse_json(row.value)},
                 {"written", row.written}};
    if (key != nullptr) line["signature"] = key->sign(json_text(line));
    out << json_text(line) << "\n";
    return {};
  }));
  if (!out.flush()) return internal_error("cannot write the export");
  return {};
}

Result<ImportCounts> import_costs(CostDatabase& database, std::istream& in,
                                  const PublicKey* owner) {
  std::string line;
  json head;
  if (std::getline(in, line)) head = parse_json(line);
  if (!head.is_object() || !head.contains("collage_costs"))
    return bad_model("line 1: not an export of a cost database");
  if (head["collage_costs"] != kFormat)
    return bad_model("line 1: an export of format {}, this version reads {}",
                     json_text(head["collage_costs"]), kFormat);
  std::map<std::pair<std::string, std::string>, std::string> dates;
  TRY(database.for_each([&](const CostRow& row) -> Status {
    dates[{row.kind, row.key}] = row.foreign || owner != nullptr ? row.written : kNewest;
    return {};
  }));
  ImportCounts counts;
  TRY(database.transaction([&]() -> Status {
    for (int64_t number = 2; std::getline(in, line); ++number) {
      std::string where = "line " + std::to_string(number);
      if (line.size() > kMaxRowLine) return bad_model("{}: too long", where);
      json fields = parse_json(line);
      if (owner != nullptr) TRY(check_signature(fields, *owner).with_context(where));
      CostRow row = TRY(row_from_json(fields).with_context(where));
      row.foreign = owner == nullptr;
      auto [it, added] = dates.try_emplace({row.kind, row.key}, row.written);
      if (!added && it->second >= row.written) {
        ++counts.kept;
        continue;
      }
      it->second = row.written;
      ++(added ? counts.added : counts.replaced);
      TRY(database.insert(row));
    }
    return {};
  }));
  return counts;
}

Result<int64_t> prune_costs(CostDatabase& database, const PruneOptions& options) {
  std::vector<std::pair<std::string, std::string>> forgotten;
  TRY(database.for_each([&](const CostRow& row) -> Status {
    bool of_kind =
        std::find(options.kinds.begin(), options.kinds.end(), row.kind) != options.kinds.end();
    if (options.all || of_kind || (options.stale && is_stale(row)) ||
        (options.refused && is_refused(row)))
      forgotten.emplace_back(row.kind, row.key);
    return {};
  }));
  TRY(database.transaction([&]() -> Status {
    for (const auto& [kind, key] : forgotten) TRY(database.remove(kind, key));
    return {};
  }));
  TRY(database.compact());
  return static_cast<int64_t>(forgotten.size());
}

Result<int64_t> verify_costs(CostDatabase& database) {
  TRY(database.check_integrity());
  int64_t rows = 0;
  TRY(database.for_each([&](const CostRow& row) -> Status {
    ++rows;
    return check_row(row);
  }));
  return rows;
}

}  // namespace collage
