import { createMemoryLedger } from "../../../src/ledger/memory.ts";
import { testIntentStore } from "../../contracts/intent-store.ts";

testIntentStore("memory", async (options) => {
  const store = createMemoryLedger({ retentionMs: 7 * 86_400_000, ...options });
  return [store, store];
});
