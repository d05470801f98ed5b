/** Whether a `Content-Type` says JSON, with or without parameters. */
export function isJsonType(contentType = ""): boolean {
  return jsonType.test(contentType);
}

const jsonType = /^application\/json *(?:;|$)/i;

/** Whether a parsed value is an object: neither a list nor null. */
export function isJsonObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
