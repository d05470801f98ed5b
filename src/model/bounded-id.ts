import { createHash } from "node:crypto";

/**
 * An id for use in a key's name or in a state: the id itself, or its digest if it is longer than
 * the ids of requests, since ids in callbacks have any length. An id that looks like a digest is
 * digested too, so that no two ids become one.
 */
export function boundedId(id: string): string {
  if (Buffer.byteLength(id) <= maxIdBytes && !id.startsWith(digestMark)) return id;
  return `${digestMark}${createHash("sha256").update(id).digest("hex")}`;
}

/** Longest id in a request by the proto's rules, in bytes. */
const maxIdBytes = 255;
const digestMark = "sha256:";
