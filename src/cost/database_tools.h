// Looking after a cost database: what `collage db` does.
#pragma once

#include <iosfwd>
#include <map>
#include <vector>

#include "base/signature.h"
#include "cost/database.h"

namespace collage {

struct DatabaseInfo {
  int64_t bytes = 0;
  std::map<std::string, int64_t> rows;     // by kind
  std::map<std::string, int64_t> targets;  // rows of functions by target
  int64_t variants = 0, invalid = 0;       // of functions
  int64_t stale = 0;                       // rows of versions that this build does not have
  int64_t foreign = 0;                     // rows that were not written here
  std::string oldest, newest;              // dates; empty without rows
};
Result<DatabaseInfo> describe_database(CostDatabase& database);

// Whether a row's measurement belongs to another version of its backends (or to a backend that this
// build lacks): nothing will find it again.
bool is_stale(const CostRow& row);

// Text, one row a line, after a line that says what it is; each row signed if there is a key.
Status export_costs(CostDatabase& database, std::ostream& out, const SigningKey* key = nullptr);
struct ImportCounts {
  int64_t added = 0, replaced = 0, kept = 0;  // kept: the database's row was written here, or newer
};
// They are foreign here (database.h). All rows, or none and kBadModel with the number of the first
// line that verify_costs would refuse. With `owner` each must be signed by that key, and counts as
// written here.
Result<ImportCounts> import_costs(CostDatabase& database, std::istream& in,
                                  const PublicKey* owner = nullptr);

struct PruneOptions {
  bool stale = false;              // what belongs to other versions
  bool refused = false;            // what found no variant, or is in quarantine: it is tried again
  std::vector<std::string> kinds;  // rows of these kinds
  bool all = false;
};
// The number of rows that were forgotten.
Result<int64_t> prune_costs(CostDatabase& database, const PruneOptions& options);

// Reads everything, decodes every value (row_values.h) and recomputes every key it can:
// kVerification with the first thing that is wrong. The number of rows read.
Result<int64_t> verify_costs(CostDatabase& database);

}  // namespace collage
