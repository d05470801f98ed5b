/** A process that holds the store of a directory until it is killed. */
import { openDirectory } from "../../src/sqlite/directory.ts";

const { database } = openDirectory(process.argv[2] ?? "");
setInterval(() => database.isOpen, 60_000);
// Who started it may be gone first.
process.stdin.resume().once("end", () => process.exit());
process.stdout.write("held\n");
