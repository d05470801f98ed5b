/**
 * The entry file of gateway processes that tests start: the bundle that `npm test` builds, as in
 * the image, or the sources if a test file runs by itself.
 */
export const commandLine =
  process.env.BUILT_COMMAND_LINE ?? new URL("../src/cli.ts", import.meta.url).pathname;
