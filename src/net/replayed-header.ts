/** Response header of an answer that an earlier call with the same `Idempotency-Key` got. */
export const replayedHeader = "idempotent-replayed";
