/** A standard HTTP method (RFC 9110, PATCH of RFC 5789, QUERY); undefined for any other text. */
export function knownMethodOf(method: string): string | undefined {
  return methods.has(method) ? method : undefined;
}

const methods: ReadonlySet<string> = new Set([
  ...["CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "QUERY", "TRACE"],
]);
