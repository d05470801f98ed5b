import type { DestinationStream } from "pino";

/** Characters beyond which lines are written before the turn ends. */
const maxWaiting = 64 * 1024;

/**
 * Writes the lines of one turn of the event loop together at its end: a system call per line would
 * cost more than the line itself. `flush` writes what waits: call it before `process.exit`. A
 * process that ends by itself needs no flush.
 */
export function createTurnWriter(out: DestinationStream): DestinationStream & { flush(): void } {
  let lines = "";
  const flush = () => {
    if (lines === "") return;
    const text = lines;
    lines = "";
    out.write(text);
  };
  return {
    write(line) {
      if (lines === "") setImmediate(flush);
      lines += line;
      if (lines.length > maxWaiting) flush();
    },
    flush,
  };
}
