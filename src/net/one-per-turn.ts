/**
 * Runs tasks in the order in which they come, one in each turn of the event loop, so that others get
 * their share of it however many tasks come at once.
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
