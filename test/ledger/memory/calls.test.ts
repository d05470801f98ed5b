import { createMemoryLedger } from "../../../src/ledger/memory.ts";
import { testIntentStore } from "../../contracts/intent-store.ts";

testIntentStore("memory", async (options) => {
  const store = createMemoryLedger(options);
  return [store, store];
});
