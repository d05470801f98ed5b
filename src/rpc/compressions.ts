import { promisify } from "node:util";
import { brotliCompress, constants } from "node:zlib";
import { Code, ConnectError } from "@connectrpc/connect";
import type { Compression } from "@connectrpc/connect/protocol";
import { compressionBrotli, compressionGzip } from "@connectrpc/connect-node";
import { intakeLimits } from "../net/intake-limits.ts";

const compressByBrotli = promisify(brotliCompress);

/**
 * Brotli's best quality, which is the default, takes a hundred times as long as the one here for a
 * tenth fewer bytes.
 */
export const quickBrotli = {
  params: { [constants.BROTLI_PARAM_QUALITY]: 4, [constants.BROTLI_PARAM_LGWIN]: 18 },
};

/** The compressions that callers may use for requests and accept for responses. */
export const compressions: Compression[] = [
  compressionGzip,
  {
    ...compressionBrotli,
    compress: (bytes) => compressByBrotli(bytes, quickBrotli) as Promise<Buffer<ArrayBuffer>>,
  },
];

/** Most bytes that a compressed message of this length may grow to. */
export function maxDecompressedBytes(length: number, readMaxBytes: number): number {
  return Math.min(readMaxBytes, intakeLimits.freeBytes + intakeLimits.ratio * length);
}

/** Decompresses a message. @throws ConnectError RESOURCE_EXHAUSTED if it grows beyond the limits */
export async function decompressed(
  compression: Compression,
  bytes: Uint8Array<ArrayBuffer>,
  readMaxBytes: number,
): Promise<Uint8Array<ArrayBuffer>> {
  const maxBytes = maxDecompressedBytes(bytes.length, readMaxBytes);
  try {
    return await compression.decompress(bytes, maxBytes);
  } catch (error) {
    const isTooLarge = error instanceof ConnectError && error.code === Code.ResourceExhausted;
    if (!isTooLarge || maxBytes === readMaxBytes) throw error;
    const message = `message grows more than ${intakeLimits.ratio} times as large by decompression`;
    throw new ConnectError(message, Code.ResourceExhausted);
  }
}
