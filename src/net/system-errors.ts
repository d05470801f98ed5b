/** Says in words what a system error code means, if it is a common one; else returns the code. */
export function codeInWords(code: string): string {
  const words = [...ofNetwork, ...ofTls].find(([pattern]) => pattern.test(code))?.[1];
  return words === undefined ? code : `${words} (${code})`;
}

/** Whether a code says why TLS failed. */
export function isTlsFault(code: string): boolean {
  return ofTls.some(([pattern]) => pattern.test(code));
}

type Words = readonly (readonly [RegExp, string])[];

/** The codes of a connection that the other side closed. */
export const closedCode = /^(ECONNRESET|EPIPE|UND_ERR_SOCKET)$/;
const ofNetwork: Words = [
  [/^ECONNREFUSED$/, "nothing listens there"],
  [/^ENOTFOUND$/, "there is no such host"],
  [closedCode, "the connection was closed"],
];

const ofTls: Words = [
  [/^CERT_HAS_EXPIRED$/, "its certificate has expired"],
  [/^CERT_NOT_YET_VALID$/, "its certificate is not valid yet"],
  [
    /SELF_SIGNED_CERT|^UNABLE_TO_(VERIFY|GET_ISSUER)/,
    "its certificate is of an authority that is not trusted here",
  ],
  [/^ERR_TLS_CERT_ALTNAME_INVALID$/, "its certificate is for another name"],
  [/PEER_DID_NOT_RETURN_A_CERTIFICATE$/, "it showed no certificate"],
  [/_ALERT_CERTIFICATE_REQUIRED$/, "it asks for a client certificate"],
  [/_ALERT_HANDSHAKE_FAILURE$/, "it ends the handshake: it may ask for a client certificate"],
  [
    /_ALERT_(UNKNOWN_CA|BAD_CERTIFICATE|UNSUPPORTED_CERTIFICATE|CERTIFICATE_(EXPIRED|REVOKED|UNKNOWN))$/,
    "it does not accept the certificate that it was shown",
  ],
  [/^ERR_SSL_(WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG)$/, "it does not speak TLS"],
  [/^ERR_SSL_HTTP_REQUEST$/, "it speaks HTTP without TLS"],
];

/**
 * The first system error code in an error's chain of causes, such as ECONNREFUSED. A TLS error that
 * Node reports as EPROTO gets the code that Node gives it elsewhere.
 */
export function systemCode(error: unknown): string | undefined {
  for (let at = error, depth = 0; at instanceof Error && depth < 8; at = at.cause, depth++) {
    const inner = at instanceof AggregateError ? (at.errors[0] as Error) : at;
    const { code, message } = inner as NodeJS.ErrnoException;
    if (code === "EPROTO") {
      const reason = /:SSL routines:[^:]*:([^:]+):/.exec(message)?.[1];
      if (reason) return `ERR_SSL_${reason.toUpperCase().replaceAll(" ", "_")}`;
    }
    if (typeof code === "string" && /^(E[A-Z]+|ERR_|CERT_|DEPTH_|SELF_|UNABLE_|UND_)/.test(code))
      return code;
  }
  return undefined;
}
