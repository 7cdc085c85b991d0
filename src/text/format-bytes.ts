/** Formats a number of bytes for people, in decimal units. */
export function formatBytes(count: number): string {
  if (count < 1_000) return `${count} B`;
  const [unit, size] =
    count < 999_950
      ? (["kB", 1e3] as const)
      : count < 999_950_000
        ? (["MB", 1e6] as const)
        : (["GB", 1e9] as const);
  return `${(count / size).toFixed(1)} ${unit}`;
}
