/**
 * Runs tasks in order, one per turn of the event loop, so that other work gets its share of the
 * loop however many tasks arrive at once.
 */
export function onePerTurn(): (task: () => void) => void {
  const tasks: (() => void)[] = [];

  function next(): void {
    const task = tasks.shift();
    if (tasks.length > 0) setImmediate(next);
    task?.();
  }

  return (task) => {
    tasks.push(task);
    if (tasks.length === 1) setImmediate(next);
  };
}
