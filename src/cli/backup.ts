import type { Command } from "commander";
import type { Environment } from "../config/environment.ts";
import { readVariables } from "../config/environment.ts";
import { CommandError, exitCodes } from "./command-error.ts";
import { print } from "./terminal.ts";

const help = `
The copy is of one instant, and whole or not there at all; the gateway may run meanwhile, and is not
held up. It needs nothing but DATA_DIR and the rights of the gateway's user, as a timer has them.

To restore it: stop the gateway, empty the directory, put the copy there as gateway.sqlite, start the
gateway. Watchers start again without their cursors. What was acknowledged after the copy was made is
lost: have the payments service send those callbacks again, and look up the payments of that time.

Example:
  $ DATA_DIR=/var/lib/payments-gateway payments-gateway backup /backups/gateway-monday.sqlite`;

export function configure(command: Command, env: Environment): void {
  command
    .argument("<file>", "the file to make; it must not be there yet")
    .addHelpText("after", help)
    .action(async (file: string) => {
      const { DATA_DIR: directory } = readVariables(env, ["DATA_DIR"]);
      if (directory === undefined) throw noDirectory();
      const { backUp } = await import("../stores/sqlite/backup.ts");
      const bytes = await backUp(directory, file);
      print(`${file}: ${(bytes / 1024 / 1024).toFixed(1)} MiB`);
    });
}

export function noDirectory(): CommandError {
  return new CommandError("no directory is named: set DATA_DIR", exitCodes.config);
}
