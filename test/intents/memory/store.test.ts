import { createMemoryIntents } from "../../../src/intents/memory/store.ts";
import { testIntentStore } from "../../contracts/intent-store.ts";

testIntentStore("memory", async (options) => {
  const store = createMemoryIntents(options);
  return [store, store];
});
