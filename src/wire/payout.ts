import { type Payout, PayoutSchema } from "../gen/payments/v1/payout_pb.ts";
import { defaultPayoutEnds, isKnownStatus, noteEnds } from "../model/payout-statuses.ts";
import { unrecognizedText, unrecognizedValue } from "../model/unrecognized.ts";
import { type DecodeOptions, decode } from "./wire.ts";

/**
 * Reads a payout like `decode`. Its status is a text that the service may extend; one that the
 * gateway does not know is also reported and kept in `unrecognized`, as that of an enum would be.
 * @throws WireError when the text is not a JSON object.
 */
export function decodePayout(text: string, options: DecodeOptions): Payout {
  const payout = decode(PayoutSchema, text, options);
  const { payoutEnds: ends = defaultPayoutEnds } = options;
  if (ends !== defaultPayoutEnds) noteEnds(payout, ends);
  const { status = "" } = payout;
  if (isKnownStatus(status, ends)) return payout;
  const said = options.hideSecrets?.(status) ?? status;
  const [path, value] = ["status", unrecognizedText(said)];
  payout.unrecognized.push(unrecognizedValue(path, value));
  options.onFault?.({ path, kind: "unrecognized", value });
  return payout;
}
