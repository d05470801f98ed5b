import { isIP } from "node:net";
import { connect } from "node:tls";
import type { ClientTlsOptions } from "../net/client-tls.ts";
import { closedCode, codeInWords, isTlsFault, systemCode } from "../net/system-errors.ts";

/** Says what cannot be reached and what to do. `why` is a system error code or any text. */
export function unreachable(what: string, url: string, why: string, option: string): string {
  // The server may close the connection before its reason is read.
  const perhaps =
    url.startsWith("https:") && closedCode.test(why) ? ": it may ask for a client certificate" : "";
  return `cannot reach ${what} at ${url}: ${codeInWords(why)}${perhaps}. Is it running there? Else give ${option}`;
}

/** A short reason why a request over HTTP failed. */
export function fetchFault(error: unknown): string {
  const code = systemCode(error);
  if (code !== undefined) return code;
  if (!(error instanceof Error)) return "failed";
  const { cause } = error;
  if ([error, cause].some((one) => one instanceof Error && one.name === "TimeoutError"))
    return "no answer in time";
  // undici's message, such as "bad port".
  return cause instanceof Error ? cause.message : error.message;
}

/**
 * Why a request to this URL failed, in words. An HTTP client may only see that the connection was
 * closed; then a connection without HTTP shows whether TLS was the reason.
 */
export async function faultOf(error: unknown, url: string): Promise<string> {
  const why = fetchFault(error);
  if (isTlsFault(why)) return codeInWords(why);
  const { protocol, hostname, port } = new URL(url);
  if (protocol !== "https:") return codeInWords(why);
  const host = hostname.replace(/^\[|\]$/g, "");
  return codeInWords((await tlsFault({ host, port: Number(port || 443) })) ?? why);
}

/**
 * The code of what is wrong with TLS at an address; undefined if nothing is, or if nothing answers.
 */
export function tlsFault(
  { host, port }: { readonly host: string; readonly port: number },
  options: ClientTlsOptions = {},
): Promise<string | undefined> {
  const { promise, resolve } = Promise.withResolvers<string | undefined>();
  const socket = connect({
    ...{ host, port, ...options },
    ...(isIP(host) === 0 && { servername: host }),
    timeout: answerMs,
  });
  const end = (code?: string) => {
    socket.destroy();
    resolve(code !== undefined && isTlsFault(code) ? code : undefined);
  };
  socket.on("error", (error) => end(systemCode(error)));
  socket.on("close", () => end());
  socket.on("timeout", () => end());
  // With TLS 1.3 the server looks at our certificate after this, and sends a ticket if it will do.
  socket.on("secureConnect", () => socket.getProtocol() !== "TLSv1.3" && end());
  socket.on("session", () => end());
  socket.resume();
  return promise;
}

const answerMs = 2_000;

/** A base URL as it may be printed: it may hold a user name and a password. */
export function withoutUserinfo(url: string): string {
  const { origin, pathname } = new URL(url);
  return `${origin}${pathname.replace(/\/$/, "")}`;
}
