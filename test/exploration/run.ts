import { doTasks, inThreads } from "../in-threads.ts";
import { type Defect, defects } from "./defects.ts";
import { explore } from "./engine.ts";
import { scenes } from "./scenes.ts";
import { createWorld } from "./world.ts";

/** One world to go through. */
interface Task {
  readonly scene: string;
  /** The promise that the planted defect breaks. Default: none is planted. */
  readonly breaks?: string | undefined;
  /** States to go through at most. */
  readonly max: number;
}

type Done = ReturnType<typeof goThrough>;

/** Goes through worlds in two threads, each in one; `onDone` hears of each. */
export function runAll(tasks: readonly Task[], onDone?: (done: Done) => void): Promise<Done[]> {
  return inThreads(import.meta.url, tasks, { threads: 2, onDone });
}

doTasks(goThrough);

function goThrough(task: Task) {
  const scene = scenes.find(({ name }) => name === task.scene);
  if (!scene) throw new Error(`no such world: ${task.scene}`);
  const isPlanted = ({ scene, breaks }: Defect) => scene === task.scene && breaks === task.breaks;
  const world = createWorld(scene, defects.find(isPlanted));
  const found = explore(world, task.max);
  // On each of its ledgers the production functions decided each step.
  return { ...found, task, ledgers: world.ledgers.size };
}
