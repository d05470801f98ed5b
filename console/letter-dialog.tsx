import { useState } from "preact/hooks";
import type { DeadLetterView } from "../src/admin/dead-letter.ts";
import { Dialog } from "./dialog.tsx";
import type { LetterAction } from "./letter-action.ts";

/** Asks the operator to confirm a replay or a discard. */
export function LetterDialog(props: {
  action: LetterAction;
  letters: readonly DeadLetterView[];
  onClose: (confirmed: boolean) => void;
}) {
  const { action, letters, onClose } = props;
  const [confirmed, setConfirmed] = useState(false);
  const what = letters.length === 1 ? "this callback" : `these ${letters.length} callbacks`;
  const verb = action === "replay" ? "Replay" : "Discard";
  return (
    <Dialog class="ask" label={`${verb} ${what}?`} onClose={() => onClose(confirmed)}>
      <h2>
        {verb} {what}?
      </h2>
      {action === "replay" ? (
        <p>
          The gateway reads {letters.length === 1 ? "it" : "each"} again. What it understands now
          becomes an event and leaves this list; the rest stays as it is.
        </p>
      ) : (
        <p>
          It is gone for good then, and nothing of it becomes an event. Discard only what tells of
          no payment or payout. The gateway logs who did it.
        </p>
      )}
      <form method="dialog" class="actions end">
        <button type="submit">Cancel</button>
        <button type="submit" class="main" onClick={() => setConfirmed(true)}>
          {verb}
        </button>
      </form>
    </Dialog>
  );
}
