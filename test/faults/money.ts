/** The long forms of test/gateway/money-faults.test.ts and money-replicas.test.ts. */
process.env.MONEY_TRIES ??= "300";
process.env.MONEY_SIZE ??= "100";
process.env.MONEY_KILLS ??= "3";
await import("../gateway/money-faults.test.ts");
await import("../gateway/money-replicas.test.ts");
