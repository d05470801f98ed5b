import { useEffect, useRef, useState } from "preact/hooks";
import type {
  SandboxOrder,
  SandboxResult,
  ScenarioInfo,
  Scenarios,
} from "../src/admin/console-api.ts";
import type { KindName } from "../src/model/kinds.ts";
import { type Client, messageOf } from "./client.ts";
import type { Feed } from "./feed.ts";
import { kindTexts } from "./kinds.ts";
import { Panel, Problem, Skeleton } from "./parts.tsx";
import type { Subject } from "./route.ts";
import { plainText } from "./scenario.ts";
import { ScenarioTable, type Try } from "./scenario-table.tsx";
import { type Tried, TriedList } from "./tried-list.tsx";

const maxTried = 40;

/** Lets the operator make payments and payouts with each of the sandbox's magic values. */
export function Sandbox(props: { client: Client; feed: Feed; link: (subject: Subject) => string }) {
  const { client, feed, link } = props;
  const [scenarios, setScenarios] = useState<readonly ScenarioInfo[]>();
  const [problem, setProblem] = useState<string>();
  const [tried, setTried] = useState<readonly Tried[]>([]);
  const [told, setTold] = useState("");
  const count = useRef(0);

  useEffect(() => {
    client.get<Scenarios>("/api/sandbox").then(
      (answer) => setScenarios(answer.scenarios),
      (error) => setProblem(messageOf(error)),
    );
  }, [client]);

  const attempt: Try = async (kind, scenario, by) => {
    const externalId = newId(kind);
    const isThis = (each: Tried) => each.externalId === externalId && each.kind === kind;
    const setAnswer = (answer: Tried["answer"]) =>
      setTried((held) => held.map((each) => (isThis(each) ? { ...each, answer } : each)));
    setTried((held) => [
      { kind, externalId, scenario, answer: undefined },
      ...held.slice(0, maxTried - 1),
    ]);
    try {
      const path = `/api/sandbox/${kindTexts[kind].resource}`;
      const order: SandboxOrder = { scenario: scenario.name, externalId, by };
      setAnswer(await client.post<SandboxResult>(path, order));
    } catch (error) {
      setAnswer({ kind: "failed", message: messageOf(error) });
    }
  };

  const newId = (kind: KindName) => {
    count.current += 1;
    return `${kindTexts[kind].idPrefix}-${Date.now().toString(36).slice(-5)}-${count.current}`;
  };

  const quick = (scenario: ScenarioInfo) => attempt("payment", scenario, "card");

  /** At most three at a time, since they use the merchant account's rate budget. */
  async function eachOnce(all: readonly ScenarioInfo[]): Promise<void> {
    setTold(`Making ${all.length} payments, one with each magic value.`);
    const queue = all.toReversed();
    const worker = async () => {
      for (let next = queue.shift(); next; next = queue.shift()) await quick(next);
    };
    await Promise.all([worker(), worker(), worker()]);
    setTold("One payment with each magic value was made.");
  }

  return (
    <Panel id="sandbox" title="Try it: the sandbox">
      <p class="soft">An emulator stands in for the payments service. No real money moves here.</p>
      {!scenarios && !problem && <Skeleton lines={4} />}
      {scenarios && (
        <>
          <QuickActions scenarios={scenarios} onTry={quick} onEach={eachOnce} />
          <ScenarioTable scenarios={scenarios} onTry={attempt} />
        </>
      )}
      <p class="result" role="status">
        {told}
      </p>
      <Problem text={problem} />
      {tried.length > 0 && <TriedList tried={tried} feed={feed} link={link} />}
    </Panel>
  );
}

/** The most instructive scenarios, each with its own button. */
const quickOnes: readonly (readonly [scenario: string, text: string])[] = [
  ["success", "Pay"],
  ["3ds", "Pay with 3DS"],
  ["insufficient_funds", "Decline"],
  ["delayed", "Pay later"],
  ["answer_and_callback_lost", "Lose answer"],
];

function QuickActions(props: {
  scenarios: readonly ScenarioInfo[];
  onTry: (scenario: ScenarioInfo) => Promise<void>;
  onEach: (all: readonly ScenarioInfo[]) => Promise<void>;
}) {
  const { scenarios, onTry, onEach } = props;
  const [busy, setBusy] = useState(false);
  return (
    <div class="quick">
      {quickOnes.map(([name, text]) => {
        const scenario = scenarios.find((each) => each.name === name);
        if (!scenario) return null;
        return (
          <button
            key={name}
            type="button"
            class={name === "3ds" ? "main" : ""}
            title={plainText(scenario.summary)}
            onClick={() => void onTry(scenario)}
          >
            {text}
          </button>
        );
      })}
      <button
        type="button"
        disabled={busy}
        onClick={() => {
          setBusy(true);
          void onEach(scenarios).finally(() => setBusy(false));
        }}
      >
        One of each
      </button>
    </div>
  );
}
