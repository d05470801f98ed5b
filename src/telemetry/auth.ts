import type { Logger } from "pino";
import { AuthFileError, type AuthObserver } from "../auth/create-authentication.ts";

/** Logs reloads of the key files, and changed key files that cannot be used. */
export function authTelemetry(log: Logger): AuthObserver {
  return {
    onReload(variable) {
      log.info({ variable }, "key file changed and reloaded");
    },
    onProblem(variable, error) {
      const reason = error instanceof AuthFileError ? error.message : undefined;
      log.error(
        { variable, reason, err: error },
        "cannot read the changed key file: the previous keys stay valid",
      );
    },
  };
}
