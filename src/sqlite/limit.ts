/**
 * How many rows at most, told when the statement runs. Of a bare `LIMIT ?` SQLite 3.53 wants to know the
 * value when it plans, and parses the statement anew each time that it is bound; of an expression not.
 */
export const boundLimit = "LIMIT (? + 0)";
