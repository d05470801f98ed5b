import { useState } from "preact/hooks";
import type {
  DeadLetterDetails,
  DeadLetterPage,
  DeadLetterView,
} from "../src/admin/console-api.ts";
import { type Client, messageOf } from "./client.ts";
import { Confirm } from "./confirm.tsx";
import { bytesOf, momentOf, timeOf } from "./format.ts";
import { kindOfResource } from "./kinds.ts";
import { act, type Done, type LetterAction, pathOf, summaryOf } from "./letter-action.ts";
import { capital, Panel, Problem, Skeleton } from "./parts.tsx";
import type { PolledPages } from "./polled.ts";

/** Number of letters that are listed at first. */
const shownAtFirst = 5;
const noText = "It is no text (not UTF-8).";
/** Most characters that are shown of a body. */
const maxShown = 64 * 1024;

/** Callbacks that the gateway did not understand: the operator can read, replay or discard them. */
export function DeadLetters(props: {
  client: Client;
  account: string;
  letters: PolledPages<DeadLetterPage>;
}) {
  const { client, account, letters } = props;
  const { value, problem } = letters;
  const [asked, setAsked] = useState<{
    action: LetterAction;
    letters: readonly DeadLetterView[];
  }>();
  const [results, setResults] = useState<ReadonlyMap<string, Done>>(new Map());
  const [progress, setProgress] = useState<{ done: number; of: number }>();
  const [summary, setSummary] = useState("");
  const [showAll, setShowAll] = useState(false);

  async function run(action: LetterAction, some: readonly DeadLetterView[]): Promise<void> {
    const done: Done[] = [];
    setSummary("");
    for (const letter of some) {
      setProgress({ done: done.length, of: some.length });
      const result = await act(action, client, account, letter);
      done.push(result);
      setResults((held) => new Map([...held, [letter.id, result] as const].slice(-1_000)));
    }
    setProgress(undefined);
    setSummary(summaryOf(action, done));
    letters.again();
  }

  const all = value?.flatMap((page) => page.dead_letters) ?? [];
  const last = value?.at(-1);
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
            onClick={() => setAsked({ action: "replay", letters: all })}
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
              result={results.get(letter.id)?.text}
              disabled={progress !== undefined}
              onAction={(action) => setAsked({ action, letters: [letter] })}
            />
          ))}
        </ul>
      )}
      {all.length > shown.length ? (
        <button type="button" class="small" onClick={() => setShowAll(true)}>
          Show all {all.length}
        </button>
      ) : (
        last?.next_cursor !== undefined && (
          <button
            type="button"
            class="small"
            onClick={() => {
              setShowAll(true);
              letters.more();
            }}
          >
            Load older
          </button>
        )
      )}
      {last?.next_cursor !== undefined && (
        <p class="soft">{`The newest ${all.length} of ${last.total}.`}</p>
      )}
      {progress && (
        <p class="progress">
          <progress max={progress.of} value={progress.done} aria-label="Done so far" />
          <span>{`${progress.done} of ${progress.of}`}</span>
        </p>
      )}
      <p class="result" role="status">
        {summary}
      </p>
      <Problem text={problem} old={value !== undefined} />
      {asked && (
        <LetterConfirm
          {...asked}
          onClose={(confirmed) => {
            setAsked(undefined);
            if (confirmed) void run(asked.action, asked.letters);
          }}
        />
      )}
    </Panel>
  );
}

function LetterConfirm(props: {
  action: LetterAction;
  letters: readonly DeadLetterView[];
  onClose: (confirmed: boolean) => void;
}) {
  const { action, letters, onClose } = props;
  const what = letters.length === 1 ? "this callback" : `these ${letters.length} callbacks`;
  const verb = action === "replay" ? "Replay" : "Discard";
  const danger = action === "discard";
  return (
    <Confirm title={`${verb} ${what}?`} verb={verb} danger={danger} onClose={onClose}>
      {danger ? (
        <p>
          It is gone for good then, and nothing of it becomes an event. Discard only what tells of
          no payment or payout. The gateway logs who did it.
        </p>
      ) : (
        <p>
          The gateway reads {letters.length === 1 ? "it" : "each"} again. What it understands now
          becomes an event and leaves this list; the rest stays as it is. It costs nothing of the
          rate budget.
        </p>
      )}
    </Confirm>
  );
}

function LetterCard(props: {
  client: Client;
  account: string;
  letter: DeadLetterView;
  result: string | undefined;
  disabled: boolean;
  onAction: (action: LetterAction) => void;
}) {
  const { client, account, letter, result, disabled, onAction } = props;
  const { id, resource, reason, receivedAt, bytes } = letter;
  const receivedAtMs = Date.parse(receivedAt);
  const [body, setBody] = useState<string>();

  async function show(): Promise<void> {
    if (body !== undefined) return setBody(undefined);
    try {
      const path = `${pathOf(account, id)}?raw=false`;
      const { text = noText } = await client.get<DeadLetterDetails>(path);
      setBody(text.length > maxShown ? `${text.slice(0, maxShown)}\n…` : text);
    } catch (error) {
      setBody(`It cannot be shown: ${messageOf(error)}`);
    }
  }

  return (
    <li class="card">
      <div class="card-head">
        <strong>{capital(kindOfResource(resource))} callback</strong>
        <time class="soft" dateTime={receivedAt} title={momentOf(receivedAtMs)}>
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
        {(["replay", "discard"] as const).map((action) => (
          <button
            key={action}
            type="button"
            class={action === "discard" ? "small danger" : "small"}
            disabled={disabled}
            onClick={() => onAction(action)}
          >
            {action === "replay" ? "Replay" : "Discard"}
          </button>
        ))}
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
