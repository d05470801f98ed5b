/** The long forms of test/stores/sqlite/kills.test.ts and test/gateway/data-dir.test.ts. */
process.env.FAULTS = "long";
await import("../stores/sqlite/kills.test.ts");
await import("../gateway/data-dir.test.ts");
