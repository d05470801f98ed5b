import { createHash } from "node:crypto";

/** As many bytes as an id of a request may have: the rules in the proto. */
const maxIdBytes = 255;
const digestMark = "sha256:";

/**
 * An id within a key's name or a state: itself, or its digest where it is longer than the ids of
 * requests. Callbacks bring ids of any length. An id that looks like a digest is digested too, so that
 * no two ids become one.
 */
export function boundedId(id: string): string {
  if (Buffer.byteLength(id) <= maxIdBytes && !id.startsWith(digestMark)) return id;
  return `${digestMark}${createHash("sha256").update(id).digest("hex")}`;
}
