/**
 * The command line without the limits on what a message may hold, so that a control can show what
 * they prevent.
 */
import { limits } from "../../src/graphql/limits.ts";
import { socketLimits } from "../../src/graphql/transport/socket-flow.ts";
import { intakeLimits } from "../../src/net/intake-limits.ts";

const most = Number.MAX_SAFE_INTEGER;
Object.assign(intakeLimits, {
  ...{ values: most, answerValues: most, answerBytes: most, depth: most, numberChars: most },
  ...{ ratio: most, smallBytes: 0 },
});
Object.assign(limits, { repeats: most });
Object.assign(socketLimits, { initBytes: limits.messageBytes, atOnceBytes: most });
await import("../../src/cli.ts");
