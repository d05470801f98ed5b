import * as z from "zod";
import type { SandboxClock } from "../clock.ts";
import type { Journal, JournalType } from "../ledger/journal.ts";
import { invalid } from "./api-error.ts";
import { integer, readBody } from "./fields.ts";
import { json, type Route } from "./http.ts";

/** Endpoints for tests: move the emulator's clock, and read or clear the journal. */
export function createTestRoutes(clock: SandboxClock, journal: Journal): Route[] {
  const now = () => json(JSON.stringify({ now: new Date(clock.now()).toISOString() }));
  return [
    { method: "GET", path: "/__sandbox/clock", handle: now },
    {
      method: "POST",
      path: "/__sandbox/clock",
      handle(request) {
        clock.advance(readBody(clockBody, request.body).advance_ms);
        return now();
      },
    },
    {
      method: "GET",
      path: "/__sandbox/journal",
      handle({ query }) {
        const type = query.get("type") ?? undefined;
        if (type !== undefined && !isJournalType(type)) {
          throw invalid("type", "must be request or callback");
        }
        return json(journal.read(type, query.get("external_id") ?? undefined));
      },
    },
    {
      method: "DELETE",
      path: "/__sandbox/journal",
      handle() {
        journal.clear();
        return json("{}");
      },
    },
  ];
}

function isJournalType(text: string): text is JournalType {
  return text === "request" || text === "callback";
}

/** At most a year. */
const clockBody = z.object({ advance_ms: integer(1, 366 * 86_400_000) });
