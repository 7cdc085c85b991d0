/**
 * Watches the event loop. Reports the time between two turns in milliseconds: of the wall clock or of the CPU, whichever
 * is less, because other processes may use the machine.
 *
 * @param onTurn - Called with the time of each turn.
 * @returns a function that ends the watch.
 */
export function watchLoop(onTurn: (ms: number) => void): () => void {
  let isOver = false;
  let [wall, cpu] = [performance.now(), process.cpuUsage()];
  const turn = (): void => {
    const { user, system } = process.cpuUsage(cpu);
    onTurn(Math.min(performance.now() - wall, (user + system) / 1000));
    [wall, cpu] = [performance.now(), process.cpuUsage()];
    if (!isOver) setImmediate(turn);
  };
  setImmediate(turn);
  return () => {
    isOver = true;
  };
}
