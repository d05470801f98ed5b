import { after, before, type TestContext } from "node:test";

type Closable = { close(): unknown } | { stop(): unknown };

const end = (opened: Closable) => ("close" in opened ? opened.close() : opened.stop());

/** Started before the tests of the suite or file that calls this, and closed after them. */
export function ofSuite<T extends Closable>(start: () => Promise<T>): T {
  let started: T | undefined;
  before(async () => {
    started = await start();
  });
  after(() => started && end(started));
  return new Proxy({} as T, {
    get(_, name) {
      const value: unknown = Reflect.get(started as T, name, started);
      return typeof value === "function" ? value.bind(started) : value;
    },
  });
}

/** Closes it after the test. */
export function closing<T extends Closable>(t: TestContext, opened: T): T {
  t.after(() => end(opened));
  return opened;
}
