/**
 * SQL for a row limit that is bound when the statement runs. SQLite 3.53 plans a bare `LIMIT ?`
 * with its value, so it parses the statement anew at each binding; it does not do so for an
 * expression.
 */
export const boundLimit = "LIMIT (? + 0)";
