/**
 * The file that processes of their own run for tests: what `npm test` built, as the image has it; the
 * sources where a test file runs by itself.
 */
export const commandLine =
  process.env.BUILT_COMMAND_LINE ?? new URL("../src/cli.ts", import.meta.url).pathname;
