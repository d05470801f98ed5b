const messageBytes = 1024 * 1024;

/** Limits on what arrives, and on what it holds once it is decoded. */
export const intakeLimits = {
  /** Memory of all bodies and unread answers together, in bytes: the default of the budget. */
  bufferedBytes: 128 * 1024 * 1024,
  /** Share of it that the bodies of one connection may take. */
  shareOfConnection: 1 / 4,
  /** Largest message of a call, of an operation or of a callback, in bytes. */
  messageBytes,
  /** Largest body of a request, in bytes: a message and what frames it. */
  bodyBytes: messageBytes + 1024,
  /** All that one call may send to a service that needs no credentials, in bytes. */
  openBodyBytes: 64 * 1024,
  /** Largest message of such a service. */
  openMessageBytes: 4 * 1024,
  /** A piece of a body below this size counts as small. */
  smallBytes: 256,
  /** Small pieces of bodies that one connection may send, after the first few of each body. */
  smallPieces: { burst: 1_000, perSecond: 200 },
  /** Values of one message at all depths: fields, list elements, objects, unknown fields. */
  values: 10_000,
  /** Largest answer of the payments service, in bytes; a small piece counts as `smallBytes`. */
  answerBytes: 1024 * 1024,
  /** Values of such an answer. */
  answerValues: 50_000,
  /** Objects and lists within each other. */
  depth: 64,
  /** Digits of a number. */
  numberChars: 1_000,
  /** Bytes that a compressed message may grow to for each of its own, beyond `freeBytes`. */
  ratio: 100,
  freeBytes: 64 * 1024,
};
