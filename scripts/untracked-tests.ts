/**
 * Preloaded by run-tests.ts. node:test follows each promise by an async hook, so that it can say in
 * which test an uncaught error began: that takes up to half of the processor time of tests that
 * await much. Without promises such an error fails the file instead of the test.
 */
import hooks from "node:async_hooks";

const { createHook } = hooks;

/** The first hook of a process is that of node:test, which also knows by it which suite is open. */
hooks.createHook = (callbacks) => {
  hooks.createHook = createHook;
  return createHook({ ...callbacks, trackPromises: false });
};
