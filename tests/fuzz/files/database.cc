// Rows of the cost database, and exported ones: changed by whoever can write the file. What reads
// them gives costs or nothing.
#include "cost/database.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>

#include "backend/targets/backends.h"
#include "choose/in_situ_ratio.h"
#include "cost/database_tools.h"
#include "cost/measured_costs.h"
#include "cost/row_values.h"
#include "fuzz/files/measured.h"
#include "fuzz/fuzz.h"
#include "fuzz/mutate_json.h"
#include "fuzz/mutate_text.h"
#include "ir/text_parser.h"
#include "measure/task.h"

namespace collage::fuzz {
namespace {

using nlohmann::json;

constexpr const char* kColumns[] = {"kind", "key", "text", "context", "value", "written", "used"};

json to_json(const std::vector<CostRow>& rows) {
  json list = json::array();
  for (const CostRow& row : rows)
    list.push_back({{"kind", row.kind},
                    {"key", row.key},
                    {"text", row.text},
                    {"context", row.context},
                    {"value", row.value},
                    {"written", row.written},
                    {"used", row.used}});
  return list;
}

std::string column(const json& row, const char* name) {
  if (!row.is_object() || !row.contains(name)) return "";
  const json& value = row[name];
  return value.is_string() ? value.get<std::string>()
                           : value.dump(-1, ' ', false, json::error_handler_t::replace);
}

const std::filesystem::path& database_file() {
  static const std::filesystem::path file =
      std::filesystem::path(scratch_folder()) / "changed-costs.db";
  return file;
}

// What compiling asks the database.
void look_up(CostDatabase& database, const std::vector<CostRow>& rows) {
  for (const CacheState cache : {CacheState::kStreaming, CacheState::kWarm}) {
    CostOptions options;
    options.compile.threads = kMeasuredThreads;
    options.cache = cache;
    options.frozen = true;
    MeasuredCosts costs(database, options);
    (void)costs.store().seconds_per_measurement();
    (void)known_in_situ_ratio(database, "", costs.store().program_context());
    for (const CostRow& row : rows) {
      if (row.kind != "function" && row.kind != "trial") continue;
      const Result<Function> function = parse_function(row.text);
      if (!function.ok()) continue;
      for (const char* target : {"native", "onednn", "reference"}) {
        const auto found = costs.function_costs(*function, {Target{target, {}, {}}});
        if (!found.ok()) {
          EXPECT_EQ(found.status().code(), ErrorCode::kFrozenCosts);
        }
      }
      break;
    }
    const TensorType type{{1, 16, 6, 6}, DType::kFloat32};
    Encoding plain, blocked;
    blocked.layout = Layout::channels_blocked(4, 16);
    (void)costs.known_conversion(type, plain, blocked);
    (void)costs.known_conversion(type, blocked, plain);
  }
}

Outcome run_rows(const std::string& input) {
  const json rows = parse_json(input);
  if (!rows.is_array()) return Outcome::kNoSyntax;
  std::filesystem::remove(database_file());
  const std::unique_ptr<CostDatabase> database = CostDatabase::open(database_file());
  EXPECT_TRUE(database->on_disk());
  std::vector<CostRow> inserted;
  const Status status = database->transaction([&]() -> Status {
    for (const json& row : rows) {
      std::string cells[std::size(kColumns)];
      for (size_t c = 0; c < std::size(kColumns); ++c) cells[c] = column(row, kColumns[c]);
      inserted.push_back({cells[0], cells[1], cells[2], cells[3], cells[4], cells[5], cells[6]});
      TRY(database->insert(inserted.back()));
    }
    return {};
  });
  EXPECT_TRUE(status.ok()) << status.to_string();
  bool sound = true;
  for (const CostRow& row : inserted) {
    const json value = parse_json(row.value);
    if (row.kind == "function" || row.kind == "trial")
      sound = target_costs_from_json(value).ok() && sound;
    (void)task_from_json(value);
    (void)conversion_row_from_json(value);
    (void)quarantine_from_json(value);
    (void)cover_row_from_json(value);
    (void)check_row_from_json(value);
    (void)in_situ_row_from_json(value);
    (void)budget_list_from_json(value);
    (void)is_stale(row);
  }
  look_up(*database, inserted);
  (void)describe_database(*database);
  (void)verify_costs(*database);
  std::stringstream exported;
  if (export_costs(*database, exported).ok()) {
    const std::unique_ptr<CostDatabase> other = CostDatabase::open(database_file().string() + "2");
    (void)import_costs(*other, exported);
    std::filesystem::remove(database_file().string() + "2");
  }
  PruneOptions prune;
  prune.stale = prune.refused = true;
  (void)prune_costs(*database, prune);
  return sound ? Outcome::kAccepted : Outcome::kRefused;
}

// Lines of `collage db export`.
Outcome run_import(const std::string& input) {
  std::filesystem::remove(database_file());
  const std::unique_ptr<CostDatabase> database = CostDatabase::open(database_file());
  std::istringstream lines(input);
  const Result<ImportCounts> counts = import_costs(*database, lines);
  if (counts.ok()) return Outcome::kAccepted;
  EXPECT_EQ(counts.status().code(), ErrorCode::kBadModel) << counts.status().to_string();
  std::istringstream again(input);
  for (std::string line; std::getline(again, line);)
    if (!line.empty() && parse_json(line).is_null()) return Outcome::kNoSyntax;
  return Outcome::kRefused;
}

std::string exported(const std::vector<CostRow>& rows) {
  const std::unique_ptr<CostDatabase> database = CostDatabase::open(database_file());
  for (const CostRow& row : rows) EXPECT_TRUE(database->insert(row).ok());
  std::ostringstream out;
  EXPECT_TRUE(export_costs(*database, out).ok());
  return out.str();
}

// A row's value is JSON inside of JSON.
std::string other_rows(json rows, Random& random) {
  for (size_t n = 1 + random.below(3); n > 0; --n) {
    json& row = rows[random.below(rows.size())];
    const char* name = random.one_in(3) ? kColumns[random.below(std::size(kColumns))] : "value";
    const std::string old = row[name];
    const json inner = parse_json(old);
    row[name] = inner.is_structured() ? changed_json(inner, random)
                                      : TextMutator({old + " "}).changed(old, random);
  }
  return random.one_in(8) ? changed_json(rows, random)
                          : rows.dump(-1, ' ', false, json::error_handler_t::replace);
}

// One line of it, as JSON.
std::string other_lines(const std::string& text, Random& random) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  std::string& line = lines[random.below(lines.size())];
  line = changed_json(json::parse(line), random);
  std::string changed;
  for (const std::string& one : lines) changed += one + "\n";
  return changed;
}

}  // namespace

FuzzTarget database() {
  register_all();
  const json rows = to_json(measured().rows);
  const std::string lines = exported(measured().rows);
  return {"database",
          {rows.dump(), lines},
          [rows, lines](Random& random) {
            return random.one_in(4) ? other_lines(lines, random) : other_rows(rows, random);
          },
          [](const std::string& input) {
            return input.starts_with("[") ? run_rows(input) : run_import(input);
          }};
}

}  // namespace collage::fuzz
