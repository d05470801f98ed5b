import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { testSealed } from "../../contracts/sealed.ts";
import { directory } from "../../stores/sqlite/directories.ts";
import { openLog } from "./rig.ts";

testSealed("SQLite", async (t) => {
  const path = directory(t);
  return {
    open: (keys) => openLog(path, keys),
    held: async () =>
      readdirSync(path)
        .map((name) => readFileSync(join(path, name), "latin1"))
        .join("\n"),
  };
});
