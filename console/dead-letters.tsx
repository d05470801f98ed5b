import { useState } from "preact/hooks";
import type { Letter, LetterBody, Letters } from "../src/admin/console-api.ts";
import { ApiError, type Client, messageOf } from "./client.ts";
import { Dialog } from "./dialog.tsx";
import { bytesOf, momentOf, plural, timeOf } from "./format.ts";
import { Panel, Problem, Skeleton } from "./parts.tsx";
import type { Polled } from "./polled.ts";

/** Letters that are listed at first. */
const shownAtFirst = 5;

/** Callbacks that nobody understood: looked at, and tried again. */
export function DeadLetters(props: { client: Client; account: string; letters: Polled<Letters> }) {
  const { client, account, letters } = props;
  const { value, problem } = letters;
  const [asked, setAsked] = useState<readonly Letter[]>();
  const [results, setResults] = useState<ReadonlyMap<string, string>>(new Map());
  const [progress, setProgress] = useState<{ done: number; of: number }>();
  const [summary, setSummary] = useState("");
  const [showAll, setShowAll] = useState(false);

  async function replay(some: readonly Letter[]): Promise<void> {
    const told: string[] = [];
    setSummary("");
    for (const [done, letter] of some.entries()) {
      setProgress({ done, of: some.length });
      const result = await replayOne(client, account, letter);
      told.push(result);
      setResults((held) => new Map([...held, [letter.id, result] as const].slice(-1_000)));
    }
    setProgress(undefined);
    setSummary(summaryOf(told));
    letters.again();
  }

  const all = value?.letters ?? [];
  const shown = showAll ? all : all.slice(0, shownAtFirst);
  return (
    <Panel
      id="letters"
      title="Dead letters"
      aside={
        all.length > 1 ? (
          <button
            type="button"
            class="small"
            disabled={progress !== undefined}
            onClick={() => setAsked(all)}
          >
            Replay all
          </button>
        ) : (
          <span class={`chip ${all.length > 0 ? "warn" : ""}`}>{all.length || "none"}</span>
        )
      }
    >
      {!value && !problem && <Skeleton lines={2} />}
      {value && all.length === 0 && <p class="empty">Every callback was understood.</p>}
      {shown.length > 0 && (
        <ul class="cards">
          {shown.map((letter) => (
            <LetterCard
              key={letter.id}
              client={client}
              account={account}
              letter={letter}
              result={results.get(letter.id)}
              disabled={progress !== undefined}
              onReplay={() => setAsked([letter])}
            />
          ))}
        </ul>
      )}
      {all.length > shown.length && (
        <button type="button" class="small" onClick={() => setShowAll(true)}>
          Show all {all.length}
        </button>
      )}
      {value && value.total > all.length && (
        <p class="soft">{`The newest ${all.length} of ${value.total}.`}</p>
      )}
      {progress && (
        <p class="progress">
          <progress max={progress.of} value={progress.done} aria-label="Replaying" />
          <span>{`${progress.done} of ${progress.of}`}</span>
        </p>
      )}
      <p class="result" role="status">
        {summary}
      </p>
      <Problem text={problem} old={value !== undefined} />
      {asked && (
        <ReplayDialog
          letters={asked}
          onClose={(confirmed) => {
            setAsked(undefined);
            if (confirmed) void replay(asked);
          }}
        />
      )}
    </Panel>
  );
}

function LetterCard(props: {
  client: Client;
  account: string;
  letter: Letter;
  result: string | undefined;
  disabled: boolean;
  onReplay: () => void;
}) {
  const { client, account, letter, result, disabled, onReplay } = props;
  const { id, resource, reason, receivedAtMs, bytes } = letter;
  const [body, setBody] = useState<string>();

  async function show(): Promise<void> {
    if (body !== undefined) return setBody(undefined);
    try {
      const path = `/api/dead-letters/${encodeURIComponent(account)}/${encodeURIComponent(id)}`;
      const { text } = await client.get<LetterBody>(path);
      setBody(text ?? "It is no text (not UTF-8).");
    } catch (error) {
      setBody(`It cannot be shown: ${messageOf(error)}`);
    }
  }

  return (
    <li class="card">
      <div class="card-head">
        <strong>{resource === "payouts" ? "Payout callback" : "Payment callback"}</strong>
        <time
          class="soft"
          dateTime={new Date(receivedAtMs).toISOString()}
          title={momentOf(receivedAtMs)}
        >
          {timeOf(receivedAtMs)}
        </time>
      </div>
      <p class="reason">{reason}</p>
      <p class="actions">
        <button
          type="button"
          class="small"
          aria-expanded={body !== undefined}
          disabled={bytes === undefined}
          onClick={() => void show()}
        >
          {body === undefined ? "Show body" : "Hide body"}
        </button>
        <button type="button" class="small" disabled={disabled} onClick={onReplay}>
          Replay
        </button>
        <span class="soft">{bytes === undefined ? "locked" : bytesOf(bytes)}</span>
      </p>
      {result && <p class="note">{result}</p>}
      {body !== undefined && (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, and so must by key
        <pre tabIndex={0}>{body}</pre>
      )}
    </li>
  );
}

function ReplayDialog(props: {
  letters: readonly Letter[];
  onClose: (confirmed: boolean) => void;
}) {
  const { letters, onClose } = props;
  const [confirmed, setConfirmed] = useState(false);
  const what = letters.length === 1 ? "this callback" : `these ${letters.length} callbacks`;
  return (
    <Dialog class="ask" label={`Replay ${what}?`} onClose={() => onClose(confirmed)}>
      <h2>Replay {what}?</h2>
      <p>
        The gateway reads {letters.length === 1 ? "it" : "each"} again. What it understands now
        becomes an event and leaves this list; the rest stays as it is.
      </p>
      <form method="dialog" class="actions end">
        <button type="submit">Cancel</button>
        <button type="submit" class="main" onClick={() => setConfirmed(true)}>
          Replay
        </button>
      </form>
    </Dialog>
  );
}

const outcomes: Readonly<Record<string, string>> = {
  stored: "Understood now: it became an event.",
  duplicate: "Understood now: its event was known already.",
};

const staying: Readonly<Record<string, string>> = {
  locked: "It was sealed with a password that is no longer accepted: it stays here.",
};

const stillNot = "Still not understood: it stays here.";

async function replayOne(client: Client, account: string, { id }: Letter): Promise<string> {
  const path = `/dead-letters/${encodeURIComponent(account)}/${encodeURIComponent(id)}/replay`;
  try {
    const { outcome } = await client.post<{ outcome: string }>(path, {});
    return outcomes[outcome] ?? outcome;
  } catch (error) {
    if (error instanceof ApiError && error.status === 422)
      return staying[error.message] ?? stillNot;
    if (error instanceof ApiError && error.status === 404)
      return "It is gone: somebody replayed it.";
    return `It could not be replayed: ${messageOf(error)}.`;
  }
}

function summaryOf(results: readonly string[]): string {
  const [only] = results;
  if (results.length === 1 && only) return only;
  const understood = results.filter((result) => Object.values(outcomes).includes(result)).length;
  return `${plural(results.length, "callback")} replayed, ${understood} understood now.`;
}
