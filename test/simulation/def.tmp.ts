import { defects, redisDefects } from "./defects.ts";
import { kept } from "./kept.ts";
import { planting } from "./plant.ts";
const which = process.argv[2] ?? "memory";
const part = Number(process.argv[3] ?? 0), parts = Number(process.argv[4] ?? 1);
const list = which === "redis" ? redisDefects : defects;
for (const [n, defect] of list.entries()) {
  if (n % parts !== part) continue;
  const t0 = Date.now();
  try {
    const { runSeed, runPlan } = await planting(defect);
    const { shownBy, brokenChecks } = defect as any;
    const store = (defect as any).store ?? which;
    const shows = (r: any) => r.violations.some(({ check }: any) => brokenChecks.includes(check));
    const first = typeof shownBy === "number" ? await runSeed(shownBy, store) : await runPlan((kept as any)[shownBy], store);
    if (shows(first)) { console.log("ok", defect.name, Date.now() - t0); continue; }
    let found = 0;
    for (let seed = 1; seed <= 300 && Date.now() - t0 < 40000; seed++) {
      const r = typeof shownBy === "number" ? await runSeed(seed, store) : await runPlan({ ...(kept as any)[shownBy], seed }, store);
      if (shows(r)) { found = seed; break; }
    }
    console.log(found ? "MOVED" : "NOTFOUND", JSON.stringify(defect.name), "shownBy", shownBy, "->", found, Date.now() - t0);
  } catch (e) { console.log("ERR", defect.name, (e as Error).message.slice(0, 200)); }
}
console.log("done"); process.exit();
