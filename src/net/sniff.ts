import type { Socket } from "node:net";

/**
 * Detects the HTTP version of a connection by its first bytes, and gives the bytes back to the
 * socket. Calls back once: with undefined, after destroying the socket, if the connection ends or
 * `timeoutMs` passes before that.
 */
export function sniff(
  socket: Socket,
  timeoutMs: number,
  done: (protocol: "h1" | "h2" | undefined) => void,
): void {
  let seen = Buffer.alloc(0);
  const timer = setTimeout(fail, timeoutMs);
  // This listener stays: without one, an error before the HTTP server takes over would end the
  // process.
  socket.on("error", () => {});
  socket.on("readable", read);
  socket.once("close", fail);

  function read(): void {
    const chunk: Buffer | null = socket.read();
    if (chunk === null) {
      if (socket.readableEnded) fail();
      return;
    }
    seen = Buffer.concat([seen, chunk]);
    const compared = Math.min(seen.length, preface.length);
    const likeH2 = seen.subarray(0, compared).equals(preface.subarray(0, compared));
    if (likeH2 && compared < preface.length) return;
    settle();
    socket.unshift(seen);
    done(likeH2 ? "h2" : "h1");
  }

  function fail(): void {
    settle();
    socket.destroy();
    done(undefined);
  }

  function settle(): void {
    clearTimeout(timer);
    socket.off("readable", read);
    socket.off("close", fail);
  }
}

/** What an HTTP/2 client sends first (RFC 9113, section 3.4). */
const preface = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
