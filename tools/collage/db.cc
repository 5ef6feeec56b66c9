// collage db: looks after the cost database.
//
//   collage db info                 how many rows of what, how large, how old
//   collage db verify               reads all of it, decodes its values and recomputes its keys
//   collage db export FILE          as text; `import` brings such a file in, newer rows winning
//   collage db ship FILE            what is installed with Collage: costs of this processor
//   collage db prune stale …        forgets rows

#include <fmt/format.h>

#include <fstream>
#include <iostream>

#include "backend/targets/backends.h"
#include "base/files.h"
#include "base/printable.h"
#include "base/signature.h"
#include "cost/database_tools.h"
#include "cost/machine.h"
#include "cost/shipped_costs.h"
#include "cost/task_queue.h"
#include "options.h"

namespace collage::tool {

namespace {

struct DbOptions {
  std::string database, json, file, signing_key, owner;
  std::vector<std::string> forgotten;  // all, stale, refused, a kind of row
};

Result<std::string> place_of(const DbOptions& options) {
  if (!options.database.empty()) return options.database;
  return (TRY(cache_folder()) / "costs.db").string();
}

Result<std::unique_ptr<CostDatabase>> open_database(const DbOptions& options) {
  register_all();  // versions of backends decide what is stale
  return CostDatabase::open_existing(TRY(place_of(options)));
}

std::string megabytes(int64_t bytes) {
  return fmt::format("{:.1f} MB", static_cast<double>(bytes) / (1 << 20));
}

Status info(const DbOptions& options) {
  std::unique_ptr<CostDatabase> database = TRY(open_database(options));
  DatabaseInfo info = TRY(describe_database(*database));
  nlohmann::json limit = kDatabaseLimit, fingerprints = nlohmann::json::array();
  const std::vector<Machine> measured_for_it = machines_of(*database);
  for (const Machine& machine : measured_for_it) fingerprints.push_back(to_json(machine));
  std::map<std::string, int64_t> tasks;
  std::vector<FleetMachine> machines;
  nlohmann::json noisy = nlohmann::json::object();
  if (database->is_server()) {
    limit = nullptr;
    const std::unique_ptr<TaskQueue> queue = TRY(TaskQueue::open(TRY(place_of(options))));
    tasks = TRY(queue->counts());
    machines = TRY(queue->machines());
    for (const FleetMachine& machine : machines)
      if (!machine.noise.empty()) noisy[machine.name] = machine.noise;
  }
  if (!options.json.empty())
    TRY(write_json(options.json, {{"bytes", info.bytes},
                                  {"limit_bytes", limit},
                                  {"rows", info.rows},
                                  {"targets", info.targets},
                                  {"variants", info.variants},
                                  {"invalid", info.invalid},
                                  {"stale", info.stale},
                                  {"foreign", info.foreign},
                                  {"fingerprints", fingerprints},
                                  {"tasks", tasks},
                                  {"noisy", noisy},
                                  {"oldest", info.oldest},
                                  {"newest", info.newest}}));
  fmt::print("{}{}\n", megabytes(info.bytes),
             limit.is_null() ? "" : " of at most " + megabytes(kDatabaseLimit));
  for (const auto& [kind, rows] : info.rows) fmt::print("{:<12} {:>8} rows\n", kind, rows);
  for (const auto& [target, rows] : info.targets)
    fmt::print("  {:<10} {:>8} functions\n", target, rows);
  fmt::print("{} variants, {} of them invalid; {} rows of other versions, {} not written here\n",
             info.variants, info.invalid, info.stale, info.foreign);
  if (!info.oldest.empty()) fmt::print("from {} to {} UTC\n", info.oldest, info.newest);
  for (const Machine& machine : measured_for_it)
    fmt::print("{} {}, {} threads\n", printable(machine.fingerprint), printable(machine.processor),
               machine.threads);
  for (const auto& [state, count] : tasks)
    fmt::print("{:<12} {:>8} {}\n", state, count, state == "workers" ? "present" : "tasks");
  for (const FleetMachine& machine : machines)
    fmt::print("{:<12} {:>8} samples{}\n", printable(machine.name), machine.samples,
               machine.noise.empty() ? "" : ", which decide nothing: " + machine.noise);
  return {};
}

using WriteRows = std::function<Status(CostDatabase&, std::ostream&)>;

Status write_rows(const DbOptions& options, const WriteRows& write) {
  std::unique_ptr<CostDatabase> database = TRY(open_database(options));
  if (options.file == "-") return write(*database, std::cout);
  std::ostringstream text;
  TRY(write(*database, text));
  return write_file_atomically(options.file, text.str());
}

Status export_rows(const DbOptions& options) {
  if (options.signing_key.empty())
    return write_rows(options, [](CostDatabase& database, std::ostream& out) {
      return export_costs(database, out);
    });
  const Result<SigningKey> key = SigningKey::parse(TRY(read_key("--sign", options.signing_key)));
  if (!key) return Status(key.status()).with_context("--sign " + options.signing_key);
  return write_rows(options, [&](CostDatabase& database, std::ostream& out) {
    return export_costs(database, out, &*key);
  });
}

Status import_rows(const DbOptions& options) {
  std::ifstream in(options.file, std::ios::binary);
  std::error_code ec;
  if (!in || std::filesystem::is_directory(options.file, ec))
    return bad_model("{}: cannot be read", options.file);
  std::optional<PublicKey> owner;
  if (!options.owner.empty())
    owner = TRY(PublicKey::parse(TRY(read_key("--require-signature", options.owner)))
                    .with_context("--require-signature " + options.owner));
  register_all();
  const std::string place = TRY(place_of(options));
  std::unique_ptr<CostDatabase> database = TRY(CostDatabase::open_at(place));
  if (!database->on_disk()) return internal_error("{}: cannot be written", place);
  ImportCounts counts =
      TRY(import_costs(*database, in, owner ? &*owner : nullptr).with_context(options.file));
  fmt::print("{} rows added, {} replaced, {} kept as they were\n", counts.added, counts.replaced,
             counts.kept);
  return {};
}

Status prune(const DbOptions& options) {
  PruneOptions prune;
  for (const std::string& what : options.forgotten) {
    if (what == "all") {
      prune.all = true;
    } else if (what == "stale") {
      prune.stale = true;
    } else if (what == "refused") {
      prune.refused = true;
    } else {
      prune.kinds.push_back(what);
    }
  }
  std::unique_ptr<CostDatabase> database = TRY(open_database(options));
  int64_t forgotten = TRY(prune_costs(*database, prune));
  if (database->is_server()) {  // what was done may be to do again
    const std::unique_ptr<TaskQueue> queue = TRY(TaskQueue::open(TRY(place_of(options))));
    TRY(queue->forget_ended());
    if (prune.refused || prune.all) TRY(queue->forget_noisy());
  }
  fmt::print("{} rows forgotten, {} left\n", forgotten, megabytes(TRY(database->used_bytes())));
  return {};
}

Status verify_rows(const DbOptions& options) {
  std::unique_ptr<CostDatabase> database = TRY(open_database(options));
  fmt::print("{} rows, all of them good\n", TRY(verify_costs(*database)));
  return {};
}

}  // namespace

Command add_db(CLI::App& app) {
  auto options = std::make_shared<DbOptions>();
  CLI::App* command = app.add_subcommand("db", "look after the database of measured costs");
  command->require_subcommand(1);
  command->fallthrough();
  command->add_option(
      "--db", options->database,
      "the cost database, a file or postgresql://... (default: in the cache folder)");
  CLI::App* info_command = command->add_subcommand("info", "what is in it");
  info_command->add_option("--json", options->json, "write the same as JSON here");
  CLI::App* export_command = command->add_subcommand("export", "write all rows as text");
  export_command->add_option("FILE", options->file, "where to, or -")->required();
  export_command->add_option("--sign", options->signing_key,
                             "a private key (Ed25519, PEM) that signs each row");
  CLI::App* ship_command = command->add_subcommand(
      "ship", "write what kernels took on this processor, as share/collage/costs holds it");
  ship_command->add_option("FILE", options->file, "where to, or -")->required();
  CLI::App* import_command =
      command->add_subcommand("import", "add the rows of an export; of two the newer wins");
  import_command->add_option("FILE", options->file, "an export")->required();
  import_command->add_option(
      "--require-signature", options->owner,
      "a public key (Ed25519, PEM): refuse rows that its owner did not sign; "
      "the others count as if written here");
  CLI::App* prune_command =
      command->add_subcommand("prune", "forget rows, which are then measured again where needed");
  std::vector<std::string> known = {"all", "stale", "refused"};
  known.insert(known.end(), std::begin(kRowKinds), std::end(kRowKinds));
  prune_command
      ->add_option("WHAT", options->forgotten,
                   "all; stale: of other versions of the backends than this build's; refused: that "
                   "found nothing usable, or killed a worker; or a kind of row")
      ->required()
      ->check(CLI::IsMember(known));
  CLI::App* verify_command =
      command->add_subcommand("verify", "read all of it, decode its values and recompute its keys");
  return {command, [=]() -> Status {
            if (info_command->parsed()) return info(*options);
            if (export_command->parsed()) return export_rows(*options);
            if (ship_command->parsed()) return write_rows(*options, write_shipped_costs);
            if (import_command->parsed()) return import_rows(*options);
            if (prune_command->parsed()) return prune(*options);
            return verify_command->parsed() ? verify_rows(*options) : Status();
          }};
}

}  // namespace collage::tool
