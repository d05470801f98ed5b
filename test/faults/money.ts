/** The long form of test/gateway/money-replicas.test.ts. */
process.env.MONEY_SIZE ??= "100";
process.env.MONEY_KILLS ??= "3";
await import("../gateway/money-replicas.test.ts");
