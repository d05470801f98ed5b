import type { Command } from "commander";
import { CommandError } from "../src/cli/command-error.ts";
import { paint, print, printJson } from "../src/cli/terminal.ts";
import type { Environment } from "../src/config/environment.ts";
import type { Secret } from "../src/secrets/secret.ts";
import { verify } from "../src/wire/signature.ts";
import { bytesOf, passwordHelp, passwordsOf } from "./password.ts";

const help = `
${passwordHelp}
Without --password-file the passwords of UPSTREAM_PREVIOUS_PASSWORDS are accepted too, as the
gateway does.

Exit codes: 0 right, 1 wrong.

Examples:
  $ payments-gateway verify callback.json --signature 89-K9Rvm1VK0YJxz67__dOfbYCM= \\
      --password-file password.txt
  $ payments-gateway verify callback.json --signature "X-SERVICE-SIGNATURE: 89-K9Rvm…" && echo right`;

interface Options {
  signature: string;
  passwordFile?: string;
  json?: boolean;
}

export function configure(command: Command, env: Environment): void {
  command
    .argument("<file>", "the body, byte for byte; - for standard input")
    .requiredOption("--signature <header>", "the X-SERVICE-SIGNATURE header, or its value")
    .option("--password-file <file>", "file that holds the merchant's API password")
    .option("--json", "print {valid, hint}")
    .addHelpText("after", help)
    .action(async (file: string, { signature, passwordFile, json }: Options) => {
      const body = await bytesOf(file);
      const passwords = passwordsOf(passwordFile, env);
      const value = signature.replace(/^x-service-signature:\s*/i, "");
      const valid = verify(body, value, passwords);
      const hint = valid ? undefined : hintOf(body, value, passwords);
      if (json) printJson({ valid, ...(hint !== undefined && { hint }) });
      else if (valid) print(paint("green", "right: the signature is that of this body"));
      else print(`${paint("red", "wrong:")} ${hint ?? "another body, or another password"}`);
      if (!valid) throw new CommandError("");
    });
}

/** Checks for the usual mistakes in saving a body to a file and in copying a header. */
function hintOf(
  body: Buffer,
  value: string,
  passwords: readonly (Secret | string)[],
): string | undefined {
  const right = (bytes: Uint8Array, header: string) => verify(bytes, header, passwords);
  const newline = body.at(-1) === 0x0a;
  if (newline && (right(body.subarray(0, -1), value) || right(body.subarray(0, -2), value))) {
    return "it would be right without the line break at the body's end";
  }
  if (right(Buffer.concat([body, Buffer.from("\n")]), value)) {
    return "it would be right with a line break at the body's end";
  }
  const urlSafe = value
    .trim()
    .replace(/\+/g, "-")
    .replace(/\//g, "_")
    .replace(/(?<!=)=+$/, "");
  if (right(body, urlSafe.padEnd(Math.ceil(urlSafe.length / 4) * 4, "="))) {
    return "the digest is right, its text is not base64url with padding (A-Z a-z 0-9 - _ =)";
  }
  return undefined;
}
