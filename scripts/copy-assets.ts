/** Puts beside the compiled code what the compiler leaves behind: Lua scripts, the console's page. */
import { cpSync, statSync } from "node:fs";

cpSync("src", "dist", {
  recursive: true,
  filter: (path) => statSync(path).isDirectory() || /\.(?:lua|gen\.html)$/.test(path),
});
