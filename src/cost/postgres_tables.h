// The tables of a cost database on a PostgreSQL server:
//
//   collage_schema    one row, the version of the tables
//   collage_costs     samples: of each row (postgres_storage.h) the newest of each machine
//   collage_answers   a view of them: of each row the newest sample, but for those of machines that
//                     are noisy (calibration.h), which count on these machines alone
//   collage_calibrations, collage_noisy: what says that they are
//   collage_tasks     models to tune; collage_models: their files; collage_workers: who takes them
//                     (task_queue.h)
#pragma once

#include <string>

#include "cost/postgres_connection.h"

namespace collage {

// Under which samples are kept: this host and the user's cache folder on it.
std::string machine_name();

// Makes or extends them where they are of an earlier version. kUnavailable: they are of a newer
// one. What is written on the connection is this machine's.
Status make_tables(PostgresConnection& connection);

}  // namespace collage
