import type { Http2Session } from "node:http2";

/**
 * Closes an HTTP/2 session that has had no open stream for `idleMs`. Node has no time-out for a
 * client that only connects, or that sends headers without end. PINGs do not keep a session open.
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
