/** Puts beside the compiled code what the compiler leaves behind: Lua scripts. */
import { cpSync, statSync } from "node:fs";

cpSync("src", "dist", {
  recursive: true,
  filter: (path) => statSync(path).isDirectory() || path.endsWith(".lua"),
});
