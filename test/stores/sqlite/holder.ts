/** A process that holds the store of a directory until it is killed. */
import { openDirectory } from "../../../src/stores/sqlite/directory.ts";

const { close } = openDirectory(process.argv[2] ?? "");
process.once("exit", close);
// A lock without references would be collected here.
setInterval(() => globalThis.gc?.(), 5);
// Exits if the test ends first.
process.stdin.resume().once("end", () => process.exit());
process.stdout.write("held\n");
