import { createHash, timingSafeEqual } from "node:crypto";
import { Secret } from "../src/secrets/secret.ts";
import { createEmulator, type Emulator } from "./emulator.ts";
import type { SavedState } from "./ledger/saved-state.ts";
import type { Settings } from "./options.ts";

/** Most runs besides the main one. Beyond it, the least recently used run ends with its ledger. */
const maxRuns = 100;

/**
 * The sandbox's runs: the main one, and one for each login `<login>+<name>` that has called.
 * @param saved what the main run keeps beyond the process; the others keep nothing
 */
export function createRuns(settings: Settings, baseUrl: string, saved?: SavedState) {
  const { login, password } = settings;
  const main = createEmulator(settings, baseUrl, saved);
  /** In the order of their last calls, the oldest first. */
  const further = new Map<string, Emulator>();

  function open(name: string): Emulator {
    const run =
      further.get(name) ??
      createEmulator(
        { ...settings, password: new Secret(`${password.reveal()}+${name}`) },
        baseUrl,
      );
    further.delete(name);
    further.set(name, run);
    const [oldest] = further;
    if (oldest && further.size > maxRuns) {
      further.delete(oldest[0]);
      void oldest[1].close();
    }
    return run;
  }

  return {
    main,
    /** The run of an `Authorization` header (HTTP Basic); undefined for other credentials. */
    of(header: string | undefined): Emulator | undefined {
      const encoded = /^basic +([a-z0-9+/=]+)$/i.exec(header ?? "")?.[1];
      if (encoded === undefined) return undefined;
      const given = Buffer.from(encoded, "base64").toString();
      const name = /^[^:]*\+([\w.-]{1,64}):/.exec(given)?.[1];
      // The main run's own login may contain a plus sign.
      if (isSame(given, `${login}:${password.reveal()}`)) return main;
      if (name === undefined) return undefined;
      return isSame(given, `${login}+${name}:${password.reveal()}+${name}`)
        ? open(name)
        : undefined;
    },
    /** The run of a page, whose requests have no credentials. Default: the main run. */
    ofPage(pageToken: string): Emulator {
      for (const run of further.values()) if (run.hasPage(pageToken)) return run;
      return main;
    },
    *all(): Iterable<Emulator> {
      yield main;
      yield* further.values();
    },
  };
}

/** Compares digests, which have equal lengths, so that the time reveals no text length. */
function isSame(given: string, expected: string): boolean {
  return timingSafeEqual(digest(given), digest(expected));
}

function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
