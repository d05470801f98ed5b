import { testIntentStore } from "../../contracts/intent-store.ts";
import { createMemoryLedger } from "../create.ts";

testIntentStore("memory", async (options) => {
  const store = createMemoryLedger(options);
  return [store, store];
});
