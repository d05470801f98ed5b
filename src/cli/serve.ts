import type { Command } from "commander";
import type { Environment } from "../config/environment.ts";

const help = `
With no UPSTREAM_URL it starts the sandbox inside the same process and uses that. State is kept in
REDIS_URL, or in DATA_DIR for one process alone, or, with the sandbox, in memory. When all listeners
accept connections it prints one line that begins with \`ready \`. SIGTERM and SIGINT drain it.

Exit codes: 0 stopped by a signal, 1 failed at start, 78 wrong configuration (see also \`check\`).

Examples:
  $ payments-gateway serve
  $ DATA_DIR=./data payments-gateway serve
  $ REDIS_URL=redis://127.0.0.1:6379 PUBLIC_ADDR=127.0.0.1:8080 payments-gateway serve`;

export function configure(command: Command, env: Environment): void {
  command.addHelpText("after", help).action(async () => {
    const { serve } = await import("../app/serve.ts");
    await serve(env);
  });
}
