import type { Http2Session } from "node:http2";

/**
 * Closes an HTTP/2 session that has had no open stream for `idleMs`, since Node has no time-out for
 * one that only connects, or sends its headers without end. PINGs do not keep it.
 */
export function closeWhenIdle(session: Http2Session, idleMs: number): void {
  let open = 0;
  let timer: NodeJS.Timeout;
  const arm = () => {
    timer = setTimeout(() => session.close(), idleMs);
  };
  arm();
  session.on("stream", (stream) => {
    open += 1;
    clearTimeout(timer);
    stream.on("close", () => {
      open -= 1;
      if (open === 0 && !session.closed) arm();
    });
  });
  session.on("close", () => clearTimeout(timer));
}
