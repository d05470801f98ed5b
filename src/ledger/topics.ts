import type { Event, EventKind } from "../gen/payments/v1/event_pb.ts";
import type { Topic } from "./log.ts";

/** Key of one payment or payout within an account. */
export function subjectKey(kind: EventKind, externalId: string): string {
  return `${kind}:${externalId}`;
}

/** Whether a topic includes an event. */
export function isAbout(topic: Topic, event: Event): boolean {
  if ("externalId" in topic) {
    return topic.kind === event.kind && topic.externalId === event.externalId;
  }
  return topic.kinds.length === 0 || topic.kinds.includes(event.kind);
}
