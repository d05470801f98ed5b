/** Writes docs/configuration.md, from the table of variables that the gateway itself reads. */
import { writeFileSync } from "node:fs";
import { sections, type Variable } from "../../src/config/variables.ts";

const code = (text: string) => `\`${text}\``;

function row(name: string, variable: Variable): string {
  const { kind, default: text, defaultDoc, inFile, doc } = variable;
  const names = inFile ? `${code(name)} or ${code(`${name}_FILE`)}` : code(name);
  const fallback = defaultDoc ?? (typeof text === "string" && text !== "" ? code(text) : "");
  return `| ${names} | ${fallback} | ${kind.accepts} | ${doc} |`;
}

const tables = sections.map(({ title, intro, table }) => [
  `## ${title}\n`,
  ...(intro === undefined ? [] : [`${intro}\n`]),
  "| variable | default | accepted | meaning |",
  "| --- | --- | --- | --- |",
  ...Object.entries<Variable>(table)
    .filter(([, { doc }]) => doc !== undefined)
    .map(([name, variable]) => row(name, variable)),
  "",
]);

export const configurationPage = [
  "<!-- made by `npm run generate` from src/config/variables.ts; do not edit -->\n",
  "# Configuration\n",
  "Environment variables configure the gateway; one that is empty counts as not set. The gateway checks them at start. If any are wrong, the process ends with exit code 78 and a line for each: the variable, its value (never that of a secret) and what is accepted. A variable that looks like one of these and is none has no effect; the log warns about it and names the variable that is most like it. Where a row also names a `_FILE`, that variable may hold the path of a file with the value instead. `payments-gateway check` validates all variables and connects to the services that they name.\n",
  ...tables.flat(),
  "## The command line\n",
  "`PAYMENTS_GATEWAY_URL`, `PAYMENTS_GATEWAY_ADMIN_URL`, `PAYMENTS_GATEWAY_SANDBOX_URL`, `PAYMENTS_GATEWAY_KEY`, `PAYMENTS_GATEWAY_KEY_FILE`, `PAYMENTS_GATEWAY_TLS_CA_FILE`, `PAYMENTS_GATEWAY_TLS_CERT_FILE`, `PAYMENTS_GATEWAY_TLS_KEY_FILE` are read only by [its commands](cli.md).",
  "",
].join("\n");

if (import.meta.main) writeFileSync("docs/configuration.md", configurationPage);
