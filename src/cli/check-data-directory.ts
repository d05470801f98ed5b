import { StoreRefused } from "../stores/sqlite/errors.ts";
import { inspectDirectory } from "../stores/sqlite/inspect.ts";
import { type Finding, findings } from "./finding.ts";

const mebi = 1024 * 1024;
/** About as much as ten events a second take in a day. */
const littleBytes = 1024 * mebi;

/** Reads the database in DATA_DIR from end to end, and checks the free disk space. */
export function checkDataDirectory(directory: string): Finding[] {
  const { ok, warning, failed } = findings("DATA_DIR");
  try {
    const { lockedBy, database, freeBytes } = inspectDirectory(directory);
    const found = database
      ? `${whole(database.bytes)} MiB, schema version ${database.version}, every page is in order`
      : "not there yet: created at the first start";
    const free = `${whole(freeBytes)} MiB are free`;
    return [
      lockedBy === undefined
        ? ok(found)
        : warning(
            `${found}; held by the process with the pid ${lockedBy}`,
            "fine if your gateway is running: a second one would not start",
          ),
      freeBytes >= littleBytes
        ? ok(free)
        : warning(free, "free space: while the disk is full callbacks are answered 503"),
    ];
  } catch (error) {
    if (!(error instanceof StoreRefused)) throw error;
    return [failed(error.message)];
  }
}

function whole(bytes: number): string {
  return Math.round(bytes / mebi).toLocaleString("en");
}
