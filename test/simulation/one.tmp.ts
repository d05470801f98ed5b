import { kept } from "/work/wt/simport/test/simulation/kept.ts";
import { runPlan } from "/work/wt/simport/test/simulation/run.ts";
const name = process.argv[2]!;
const t0=Date.now();
const { violations, history } = await runPlan((kept as any)[name], (process.argv[3] ?? "memory") as any);
console.log(name, violations.map(v=>JSON.stringify(v)).join("\n"), Date.now()-t0, "ms", history.lines.slice(-40).map((l:any)=>JSON.stringify(l)).join("\n"));
