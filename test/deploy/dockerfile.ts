import { posix } from "node:path";

const instructions = new Set([
  ...["ADD", "ARG", "CMD", "COPY", "ENTRYPOINT", "ENV", "EXPOSE", "FROM", "HEALTHCHECK", "LABEL"],
  ...["ONBUILD", "RUN", "SHELL", "STOPSIGNAL", "USER", "VOLUME", "WORKDIR"],
]);

/**
 * What `docker build` would refuse or warn about, as far as a Dockerfile's text shows it; empty if
 * there is nothing. Here-documents are not supported.
 */
export function faultsOf(dockerfile: string): string[] {
  const faults: string[] = [];
  /** Instructions found in this stage of which only the last one would count. */
  let single = new Set<string>();
  let hasStage = false;
  const lines = dockerfile.split("\n");
  for (let at = 0; at < lines.length; at++) {
    const number = at + 1;
    const isComment = () => /^\s*#/.test(lines[at] ?? "");
    if (isComment() || lines[at]?.trim() === "") continue;
    let text = lines[at] ?? "";
    while (text.trimEnd().endsWith("\\")) {
      at++;
      if (isComment()) continue;
      if (!lines[at]?.trim()) faults.push(`${number}: nothing follows the backslash`);
      text = `${text.trimEnd().slice(0, -1)} ${lines[at] ?? ""}`;
    }
    const [, name = "", rest = ""] = /^\s*(\S+)\s*(.*)$/.exec(text) ?? [];
    const fault = (what: string) => faults.push(`${number}: ${name} ${what}`);
    if (!instructions.has(name)) fault("is no instruction, in capitals");
    if (rest === "") fault("says nothing");
    if (name === "FROM") {
      hasStage = true;
      single = new Set();
    } else if (!hasStage && name !== "ARG") fault("stands before the first FROM");
    if (["CMD", "ENTRYPOINT", "HEALTHCHECK"].includes(name)) {
      if (single.has(name)) fault("is in its stage twice");
      single.add(name);
    }
    if (name === "WORKDIR" && !posix.isAbsolute(rest) && !rest.startsWith("$"))
      fault("is relative");
    const exec = rest.match(/(?:^|\sCMD\s+)(\[.*)$/)?.[1];
    if (exec !== undefined && ["CMD", "ENTRYPOINT", "HEALTHCHECK", "RUN"].includes(name)) {
      if (!isListOfStrings(exec)) fault("has a list that is no JSON");
    }
  }
  if (!hasStage) faults.push("there is no FROM");
  return faults;
}

function isListOfStrings(text: string): boolean {
  try {
    const list: unknown = JSON.parse(text);
    return Array.isArray(list) && list.every((one) => typeof one === "string");
  } catch {
    return false;
  }
}
