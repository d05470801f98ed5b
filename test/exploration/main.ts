/**
 * Goes through all states of small worlds, and prints which promises are broken in them.
 *
 *   npm run explore -- [--states <most of each world>] [--world <words of its name>]
 *                      [--defect <words of the promise that it breaks>]
 */
import { parseArgs } from "node:util";
import { defects } from "./defects.ts";
import { runAll } from "./run.ts";
import { scenes } from "./scenes.ts";

const { states, world, defect } = parseArgs({
  options: {
    states: { type: "string", default: "40000000" },
    world: { type: "string", default: "" },
    defect: { type: "string" },
  },
}).values;
const max = Number(states);
const tasks =
  defect === undefined
    ? scenes.map(({ name }) => ({ scene: name, max }))
    : defects
        .filter(({ breaks }) => breaks.includes(defect))
        .map(({ scene, breaks }) => ({ scene, breaks, max }));
const wanted = tasks.filter(({ scene }) => scene.includes(world));
await runAll(wanted, ({ task, broken, ...found }) => {
  const extent = found.isWhole ? "all" : "not all";
  console.log(`${task.scene}: ${extent} of its states, ${found.states} of them,`);
  console.log(`  with ${found.ledgers} ledgers; ${found.steps} steps, ${found.ends} ends`);
  if (!broken) return;
  process.exitCode = 1;
  console.log(`  broken: ${broken.promise}\n    ${broken.story.join("\n    ")}`);
});
