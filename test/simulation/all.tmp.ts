import { kept } from "./kept.ts";
import { runPlan } from "./run.ts";
const store = (process.argv[2] ?? "memory") as any;
for (const [name, plan] of Object.entries(kept)) {
  const t0 = Date.now();
  process.stdout.write(`${name}: `);
  const { violations } = await runPlan(plan as any, store);
  console.log(Date.now() - t0, "ms", violations.map((v) => JSON.stringify(v)).join("\n"));
}
console.log("all done");
process.exit();
