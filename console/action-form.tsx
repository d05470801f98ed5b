import { useMemo, useState } from "preact/hooks";
import type { SandboxOrder, ScenarioInfo } from "../src/admin/console-api.ts";
import type { KindName } from "../src/model/kinds.ts";
import { words } from "./format.ts";
import { kindNames, kindTexts } from "./kinds.ts";
import { capital } from "./parts.tsx";
import { plainText, titleOf } from "./scenario.ts";

/** The form that makes a payment or payout with any magic value, amount and id. */
export function ActionForm(props: {
  scenarios: readonly ScenarioInfo[];
  newId: (kind: KindName) => string;
  onTry: (
    kind: KindName,
    scenario: ScenarioInfo,
    order: Omit<SandboxOrder, "scenario">,
  ) => Promise<void>;
}) {
  const { scenarios, newId, onTry } = props;
  const [kind, setKind] = useState<KindName>("payment");
  const [name, setName] = useState("success");
  const [by, setBy] = useState<SandboxOrder["by"]>("card");
  const [amount, setAmount] = useState("10.00");
  const [externalId, setExternalId] = useState("");

  // A payout has no customer who could pass 3DS.
  const offered = useMemo(
    () => scenarios.filter(({ challenge }) => kind === "payment" || !challenge),
    [scenarios, kind],
  );
  const scenario = offered.find((each) => each.name === name) ?? offered[0];
  if (!scenario) return null;
  const { cents } = scenario;
  const byAmount = by === "amount" && cents !== undefined;
  const sent = byAmount ? withCents(amount, cents) : amount;

  function submit(event: Event): void {
    event.preventDefault();
    if (!scenario) return;
    const order = { amount: sent, currency: "UAH", by: byAmount ? by : "card" } as const;
    void onTry(kind, scenario, { ...order, externalId: externalId || newId(kind) });
    setExternalId("");
  }

  return (
    <details class="more form">
      <summary>All magic values, payouts, own amounts</summary>
      <form onSubmit={submit}>
        <fieldset class="segments">
          <legend class="unseen">What to make</legend>
          {kindNames.map((each) => (
            <label key={each}>
              <input
                type="radio"
                name="trial-kind"
                checked={kind === each}
                onChange={() => setKind(each)}
              />
              <span>{capital(each)}</span>
            </label>
          ))}
        </fieldset>
        <label>
          <span>What happens</span>
          <select
            value={scenario.name}
            onChange={({ currentTarget }) => setName(currentTarget.value)}
          >
            {groups(offered).map(([group, members]) => (
              <optgroup key={group} label={group}>
                {members.map((member) => (
                  <option key={member.name} value={member.name}>
                    {titleOf(member)}
                  </option>
                ))}
              </optgroup>
            ))}
          </select>
        </label>
        <p class="soft">
          {plainText(scenario.summary)}
          {scenario.outcome !== "success" && ` (${words(scenario.outcome)})`}.
        </p>
        <label>
          <span>Triggered by</span>
          <select
            value={byAmount ? "amount" : "card"}
            disabled={cents === undefined}
            onChange={({ currentTarget }) => setBy(currentTarget.value as SandboxOrder["by"])}
          >
            <option value="card">{`its card, ending in ${scenario.card}`}</option>
            {cents !== undefined && (
              <option value="amount">
                {`the amount's .${cents}, ${kindTexts[kind].anyMethod}`}
              </option>
            )}
          </select>
        </label>
        <div class="pair">
          <label>
            <span>Amount, UAH</span>
            <input
              inputMode="decimal"
              required
              pattern="\d{1,9}(\.\d{1,2})?"
              title="such as 10.00"
              value={amount}
              onInput={({ currentTarget }) => setAmount(currentTarget.value.trim())}
            />
          </label>
          <label>
            <span>External id</span>
            <input
              placeholder="made up"
              maxLength={100}
              autocomplete="off"
              spellcheck={false}
              value={externalId}
              onInput={({ currentTarget }) => setExternalId(currentTarget.value.trim())}
            />
          </label>
        </div>
        <button type="submit" class="main">
          Make the {kind}
          {byAmount && ` of ${sent}`}
        </button>
      </form>
    </details>
  );
}

function withCents(amount: string, cents: string): string {
  return `${amount.split(".")[0] || "10"}.${cents}`;
}

function groups(scenarios: readonly ScenarioInfo[]): [string, ScenarioInfo[]][] {
  return [...Map.groupBy(scenarios, groupOf)];
}

function groupOf({ challenge, answer, callbacks, settles, outcome }: ScenarioInfo): string {
  if (challenge) return "3DS";
  if (answer !== "normal") return "The answer goes wrong";
  if (callbacks !== "once") return "The callback goes wrong";
  if (settles === "later") return "Known later";
  return outcome === "success" ? "Success" : "Declined";
}
