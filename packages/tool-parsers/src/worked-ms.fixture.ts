/**
 * Milliseconds that this process has worked. Unlike those of the clock they do not pass while other
 * processes have the processor, so tests of how work grows hold on a busy machine.
 */
export function workedMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}
