import type { Command } from "commander";
import { print, printJson } from "../src/cli/terminal.ts";
import type { Environment } from "../src/config/environment.ts";
import { sign } from "../src/wire/signature.ts";
import { bytesOf, passwordHelp, passwordOf } from "./password.ts";

const signatureHeader = "X-SERVICE-SIGNATURE";

const help = `
${passwordHelp}

Examples:
  $ payments-gateway sign callback.json --password-file password.txt
  $ curl http://127.0.0.1:4000/callbacks/default/payments --data-binary @callback.json \\
      -H "$(payments-gateway sign callback.json --password-file password.txt)"
  $ printf '{}' | UPSTREAM_PASSWORD=secret payments-gateway sign -`;

export function configure(command: Command, env: Environment): void {
  command
    .argument("<file>", "the body, byte for byte; - for standard input")
    .option("--password-file <file>", "file that holds the merchant's API password")
    .option("--json", "print {header, signature}")
    .addHelpText("after", help)
    .action(async (file: string, options: { passwordFile?: string; json?: boolean }) => {
      const signature = sign(await bytesOf(file), passwordOf(options.passwordFile, env));
      if (options.json) printJson({ header: signatureHeader, signature });
      else print(`${signatureHeader}: ${signature}`);
    });
}
