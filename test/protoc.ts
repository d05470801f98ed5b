import { spawnSync } from "node:child_process";

const args = ["--descriptor_set_out=/dev/null", "google/protobuf/duration.proto"];

/** Whether protoc is there with Google's own files, which Debian has in another package. */
export const hasProtoc = spawnSync("protoc", args).status === 0;
