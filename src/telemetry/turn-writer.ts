import type { DestinationStream } from "pino";

/** Beyond so many characters nothing waits for the end of the turn. */
const maxWaiting = 64 * 1024;

/**
 * Writes the lines of one turn of the event loop together, at its end: a system call each would cost
 * more than the lines do. `flush` writes what waits; a process that ends flushes by itself.
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
