import assert from "node:assert/strict";
import { type DescMessage, toJson } from "@bufbuild/protobuf";
import type { Seen } from "./fake-core.ts";
import type { Served } from "./serve.ts";

/** The only request that reached the core, as proto JSON with the proto's names. */
export function requestOf(gateway: Served, desc: DescMessage): unknown {
  const calls = gateway.seen();
  assert.equal(calls.length, 1, calls.map((call: Seen) => call.method).join());
  return toJson(desc, calls[0]?.args[0] as never, { useProtoFieldName: true });
}
