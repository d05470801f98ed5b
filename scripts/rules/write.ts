/**
 * Writes src/gen/rules.ts: for each message of a request, whether it certainly keeps the rules in
 * its proto.
 */
import { writeFileSync } from "node:fs";
import { services } from "../../src/rpc/services/routes.ts";
import { checksOf, patterns } from "./code.ts";

const inputs = services.flatMap(({ methods }) => methods.map(({ input }) => input));
const checks = [...checksOf(inputs)];
const text = `// Generated from the rules in the proto by scripts/rules. Do not edit.

/**
 * Checks by the names of messages: whether a message certainly keeps the rules in its proto. False
 * decides nothing: protovalidate, which evaluates all rules and words the refusals, is asked then.
 */
export const surelyValid: Readonly<Record<string, ((message: any) => boolean) | undefined>> = {
${checks.map(([{ typeName, name }]) => `  "${typeName}": ${name},\n`).join("")}};

${[...patterns].map(([pattern, name]) => `const ${name} = ${pattern};\n`).join("")}
${checks.map(([{ name }, code]) => `function ${name}(m: any): boolean {\n  return ${lines(code)};\n}\n`).join("\n")}`;
writeFileSync("src/gen/rules.ts", text);

function lines(code: string): string {
  return code.replaceAll(") && (", ") &&\n    (");
}
