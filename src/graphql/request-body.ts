import type { Socket } from "node:net";
import type { Slot } from "../net/admission.ts";
import { excessOfJson } from "../net/bounded-json.ts";
import { type Body, type Intake, receiveWhole } from "../net/intake.ts";
import { limits } from "./limits.ts";
import { RequestError } from "./request-error.ts";

/**
 * Takes the whole body of a request, to be decoded in this turn of the event loop.
 * @throws RequestError for a body that is too large or would hold too many values, GatewayError if
 * it was dropped to free memory or its client has left
 */
export type TakeBody = () => Buffer | Promise<Buffer>;

export function bodyTaker(body: Body, intake: Intake, socket: Socket, slot: Slot): TakeBody {
  async function receive(): Promise<Buffer> {
    const maxBytes = limits.messageBytes;
    const received = await receiveWhole(body, { maxBytes, slot }, tooLarge);
    await intake.turn(socket);
    return checked(received);
  }

  return () => {
    const atHand = body.atHand(limits.messageBytes);
    return atHand ? checked(atHand) : receive();
  };
}

function checked(body: Buffer): Buffer | Promise<Buffer> {
  // UTF-8 has the bytes of JSON's own characters nowhere else.
  const excess = body.length > 1_000 ? excessOfJson(body.toString("latin1")) : undefined;
  if (!excess) return body;
  const error = new RequestError(`the request ${excess}`, "BAD_USER_INPUT", { status: 400 });
  return Promise.reject(error);
}

function tooLarge(): RequestError {
  const message = `the body must not exceed ${limits.messageBytes} bytes`;
  return new RequestError(message, "BAD_REQUEST", { status: 413 });
}
