/** The short form of test/faults/leaks.ts, in a process whose heap nothing else fills. */
await import("../faults/leaks.ts");
