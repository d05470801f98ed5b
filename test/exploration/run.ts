import { parentPort, Worker } from "node:worker_threads";
import { type Defect, defects } from "./defects.ts";
import { explore, type Found } from "./engine.ts";
import { scenes } from "./scenes.ts";
import { World } from "./world.ts";

/** One world to go through. */
export interface Task {
  readonly scene: string;
  /** The promise that the planted defect breaks. Default: none is planted. */
  readonly breaks?: string | undefined;
  /** States to go through at most. */
  readonly max: number;
}

export interface Done extends Found {
  readonly task: Task;
  /** How many ledgers these states have: on each the production functions decided each step. */
  readonly ledgers: number;
}

/** Goes through worlds in two threads, each in one; `onDone` hears of each. */
export async function runAll(
  tasks: readonly Task[],
  onDone: (done: Done) => void = () => {},
): Promise<Done[]> {
  const all: Done[] = [];
  const left = [...tasks];
  const thread = () =>
    new Promise<void>((resolve, reject) => {
      const worker = new Worker(new URL("run.ts", import.meta.url), {
        resourceLimits: { maxYoungGenerationSizeMb: 128, maxOldGenerationSizeMb: 4_096 },
      });
      const give = () => {
        const task = left.shift();
        if (task) worker.postMessage(task);
        else void worker.terminate().then(() => resolve());
      };
      worker.on("message", (done: Done) => {
        all.push(done);
        onDone(done);
        give();
      });
      worker.once("error", reject);
      give();
    });
  await Promise.all([thread(), thread()]);
  return all;
}

parentPort?.on("message", (task: Task) => {
  const scene = scenes.find(({ name }) => name === task.scene);
  if (!scene) throw new Error(`no such world: ${task.scene}`);
  const isPlanted = ({ scene, breaks }: Defect) => scene === task.scene && breaks === task.breaks;
  const world = new World(scene, defects.find(isPlanted));
  const found = explore(world, task.max);
  parentPort?.postMessage({ ...found, task, ledgers: world.ledgers.size } satisfies Done);
});
