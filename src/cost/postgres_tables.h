// The tables of a cost database on a PostgreSQL server:
//
//   collage_schema    one row, the version of the tables
//   collage_costs     the rows (postgres_storage.h)
//   collage_tasks     models to tune; collage_models: their files; collage_workers: who takes them
//                     (task_queue.h)
#pragma once

#include "cost/postgres_connection.h"

namespace collage {

// Makes or extends them where they are of an earlier version. kUnavailable: they are of a newer
// one.
Status make_tables(PostgresConnection& connection);

}  // namespace collage
