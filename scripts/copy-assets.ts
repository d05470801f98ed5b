/** Puts beside the compiled code what the compiler leaves behind: Lua scripts and pages. */
import { cpSync, statSync } from "node:fs";

cpSync("src", "dist", {
  recursive: true,
  filter: (path) => statSync(path).isDirectory() || /\.(lua|html|css|js)$/.test(path),
});
