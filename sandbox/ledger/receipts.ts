import { FiscalizationStatus } from "../../src/gen/payments/v1/payment_pb.ts";

/** The fiscalization codes of the spec with their meanings. */
const receiptCodes = {
  1000: "test result",
  1001: "operation successful",
  1002: "operation in progress",
  2001: "invalid fiscalization data (verify product information)",
  2002: "internal error",
  2003: "not authorized (check permissions)",
  2004: "temporary failure, retry later",
  2005: "fiscalization service temporarily unavailable",
  2006: "not authorized (verify token)",
  3001: "required data not found",
  3002: "duplicate attempt detected",
  4001: "cash register not activated in tax system",
  4002: "cash register blocked",
  4003: "cash register data conflict, retry later",
  4004: "cash register processing another operation, retry later",
  4005: "cannot change cash register operating mode",
  4006: "cash register locked by another application",
  4050: "fiscal shift not opened",
  4051: "fiscal shift is not closed",
  5001: "electronic signature key not registered with tax authorities",
  5002: "electronic signature key revoked",
  5003: "electronic signature verification failed",
  6001: "tax authority service error",
  6002: "tax authority service unavailable",
  6003: "tax authority response timeout",
  7001: "fiscal receipt validation failed, receipt sequence broken",
  7002: "fiscal receipt generation failed",
} as const;

export type ReceiptCode = keyof typeof receiptCodes;

/** The state of a fiscal receipt's registration. */
export function receiptOf(code: ReceiptCode) {
  const description = receiptCodes[code];
  if (code === 1002) return { code, status: FiscalizationStatus.PENDING, description };
  const { SUCCESS, FAILED } = FiscalizationStatus;
  return { code, status: code < 2000 ? SUCCESS : FAILED, description };
}

/**
 * The receipt codes that a payload `fiscal-<code>` requests: Pending (1002) first, then the code.
 * Empty for any other payload.
 */
export function receiptOfPayload(payload: string | undefined): readonly ReceiptCode[] {
  const code = Number(/^fiscal-(\d{4})$/.exec(payload ?? "")?.[1]);
  if (!isReceiptCode(code)) return [];
  return code === 1002 ? [code] : [1002, code];
}

function isReceiptCode(code: number): code is ReceiptCode {
  return Object.hasOwn(receiptCodes, code);
}
