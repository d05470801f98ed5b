import type { SandboxOrder, ScenarioInfo } from "../src/admin/console-api.ts";
import type { KindName } from "../src/model/kinds.ts";
import { words } from "./format.ts";
import { kindNames } from "./kinds.ts";
import { capital } from "./parts.tsx";
import { plainText, titleOf } from "./scenario.ts";

export type Try = (kind: KindName, scenario: ScenarioInfo, by: SandboxOrder["by"]) => Promise<void>;

/** Every magic value, each with a button that makes a payment or payout with it. */
export function ScenarioTable(props: { scenarios: readonly ScenarioInfo[]; onTry: Try }) {
  const { scenarios, onTry } = props;
  return (
    <details class="more">
      <summary>All magic values: the end of a card, or an amount</summary>
      <div class="scroll">
        <table class="magic">
          <thead>
            <tr>
              <th scope="col">what happens</th>
              {kindNames.map((kind) => (
                <th key={kind} scope="col">
                  {capital(kind)}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {scenarios.map((scenario) => (
              <tr key={scenario.name}>
                <th scope="row">
                  {titleOf(scenario)}
                  <span class="soft">
                    {plainText(scenario.summary)}
                    {scenario.outcome !== "success" && ` (${words(scenario.outcome)})`}
                  </span>
                </th>
                {kindNames.map((kind) => (
                  <td key={kind}>
                    {/* A payout has no customer who could pass 3DS. */}
                    {(kind === "payment" || !scenario.challenge) &&
                      valuesOf(scenario).map(([by, value]) => (
                        <button
                          key={by}
                          type="button"
                          class="small"
                          aria-label={`${capital(kind)}, ${titleOf(scenario)}, ${value}`}
                          onClick={() => void onTry(kind, scenario, by)}
                        >
                          {value}
                        </button>
                      ))}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </details>
  );
}

/** The end of its card, and the cents of its amount if it has one. */
function valuesOf({ card, cents }: ScenarioInfo) {
  const byCard = ["card", `…${card}`] as const;
  return cents === undefined ? [byCard] : [byCard, ["amount", `10.${cents}`] as const];
}
