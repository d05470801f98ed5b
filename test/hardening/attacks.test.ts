/** The short form of test/faults/hardening.ts. */
await import("../faults/hardening.ts");
