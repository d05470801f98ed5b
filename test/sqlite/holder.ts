/** A process that holds the store of a directory until it is killed. */
import { openDirectory } from "../../src/sqlite/directory.ts";

openDirectory(process.argv[2] ?? "");
// A lock that is nobody's any more would be collected here.
setInterval(() => globalThis.gc?.(), 5);
// Who started it may be gone first.
process.stdin.resume().once("end", () => process.exit());
process.stdout.write("held\n");
